// Reporter: how a model's values (its loss, its accuracy) find their way to whoever watches a
// training run. Reported arrays stay on their device; nothing here waits but what says so.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "rensa/links/link.h"

namespace rensa {

/// Reported values by key: "main/loss".
using Observation = std::map<std::string, Array>;

/// A value under the name that its reporter gives it: {"loss", loss}. A number that is computed on
/// the host and changes from call to call keeps a captured step eager; given as a function,
/// {"lr", [&] { return optimizer.lr(); }}, it is asked for anew by each replay.
struct Report {
  Report(std::string n, const Variable& v);
  Report(std::string n, Array v);
  template <class T>
  requires std::is_arithmetic_v<T> Report(std::string n, T v)
      : name(std::move(n)), fixed(static_cast<double>(v)) {
    number = [v = fixed] { return v; };
  }
  template <class F>
  requires std::is_arithmetic_v<std::invoke_result_t<F&>> Report(std::string n, F f)
      : name(std::move(n)), number(std::move(f)) {}
  std::string name;
  Array value;                     // undefined where it is a number
  Variable variable = {};          // whose value it is, if of one
  std::function<double()> number;  // of the host's
  double fixed = 0;                // the number that `number` gives, where that is known
};

/// Hands `values` to the thread's current reporter, under "<name of the observer>/<name>"; the form
/// without an observer takes the names as keys. Does nothing where no reporter is current. In a
/// captured step every replay reports anew. Throws ValueError for a link that the reporter was not
/// told of.
void report(std::initializer_list<Report> values, const Link& observer);
void report(std::initializer_list<Report> values);

struct ReporterState;

/// Knows the names of the links that report, and where their values go. A handle: copies share.
class Reporter {
 public:
  Reporter();

  /// `link` reports under `name`; follows a move of the link.
  void add_observer(const std::string& name, const Link& link) const;
  /// `link` under `name`, and every link below it under its path: "main/predictor/l1".
  void add_observers(const std::string& name, const Link& link) const;

  /// Makes this the thread's current reporter, writing into `observation`, until it goes.
  class [[nodiscard]] Scope {
   public:
    [[nodiscard]] Scope(const Reporter& reporter, Observation& observation);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<Reporter> previous_;
    std::shared_ptr<ReporterState> state_;
    Observation* previous_observation_;
  };
  Scope scope(Observation& observation) const { return Scope(*this, observation); }  // a Scope

  /// As rensa::report, to this reporter.
  void report(const std::string& name, const Array& value, LinkAnchor* observer) const;
  /// Keeps the variable that is reported under that name, with the graph that it was computed by,
  /// until this reporter's next scope begins.
  void keep_graph(const std::string& name, const Variable& variable, LinkAnchor* observer) const;
  /// The variable that was reported under `key` ("main/loss") while config().keep_graph_on_report
  /// was set; undefined where none was. A captured step that reports so stays eager.
  Variable reported_variable(const std::string& key) const;

 private:
  std::string key_of(const std::string& name, LinkAnchor* observer) const;
  std::shared_ptr<ReporterState> state_;
};

/// A running mean. Values are added up in float64 on their device, without a wait.
class Summary {
 public:
  void add(const Array& value);                  // one more value, of one element
  std::int64_t count() const { return count_; }  // how many values were added
  /// The sum so far, 0-d; undefined when nothing was added.
  const Array& total() const { return total_; }
  /// Waits for the device. NaN when nothing was added.
  double mean() const;
  /// The sum and the count, for files, as in Chainer (whose sum of squares is read and left out).
  void members(Visitor& v);

 private:
  Array total_;
  std::int64_t count_ = 0;
};

/// A Summary for each key of the observations added.
class DictSummary {
 public:
  /// Values of more than one element are left out, as in Chainer.
  void add(const Observation& observation);
  /// Waits for the device.
  std::map<std::string, double> compute_mean() const;
  /// The summaries by their keys, for files, as in Chainer.
  void members(Visitor& v);

 private:
  std::map<std::string, Summary> summaries_;
};

}  // namespace rensa
