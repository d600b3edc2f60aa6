// Triggers beside the interval: by a value that is observed, by a list of times, once, by the
// clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/links/reporter.h"
#include "rensa/training/trigger.h"

namespace rensa::triggers {

/// The mean of what is observed under a key from one firing of a trigger to the next.
class ObservedMean {
 public:
  /// What is made of the mean, or of none, where the interval is over.
  using Agreement = std::function<std::optional<double>(std::optional<double> own)>;
  ObservedMean(std::string owner, std::string key, training::Trigger interval,
               Agreement agreement = {});
  /// To be asked in each iteration. Where the interval is over, the mean, for which it waits for
  /// the device; none where nobody has reported the key, of which stderr is told once.
  std::optional<double> operator()(training::Trainer& trainer);
  const std::string& key() const { return key_; }  // what is looked at
  void members(Visitor& v);

 private:
  std::string owner_, key_;  // who says so, and of what
  training::Trigger interval_;
  Agreement agreement_;
  DictSummary summary_;
  bool told_ = false;
};

/// Fires where the mean of `key` over an interval is better than all before; the first one is.
/// A mean that is not a number is never better. `compare(best, value)` tells whether `value` is.
class BestValueTrigger {
 public:
  /// Whether `value` is better than `best`.
  using Compare = std::function<bool(double best, double value)>;
  BestValueTrigger(std::string key, Compare compare, training::Trigger trigger = {1, "epoch"});
  bool operator()(training::Trainer& trainer);
  /// The best so far; none before the first.
  std::optional<double> best_value() const { return best_; }
  void members(Visitor& v);

 private:
  ObservedMean mean_;
  Compare compare_;
  std::optional<double> best_;
};

/// Fires where the mean of `key` over an interval is the greatest so far.
class MaxValueTrigger : public BestValueTrigger {
 public:
  explicit MaxValueTrigger(std::string key, training::Trigger trigger = {1, "epoch"});
};

/// Fires where the mean of `key` over an interval is the least so far.
class MinValueTrigger : public BestValueTrigger {
 public:
  explicit MinValueTrigger(std::string key, training::Trigger trigger = {1, "epoch"});
};

struct EarlyStoppingOptions {
  training::Trigger check_trigger = {1, "epoch"};  // how often the mean is looked at
  std::string monitor = "main/loss";
  int patience = 3;
  /// "max": more is better; "min"; "auto": more where `monitor` has "accuracy" in its name.
  std::string mode = "auto";
  bool verbose = false;                            // a line on stdout when it stops the run
  training::Trigger max_trigger = {100, "epoch"};  // fires in any case
};

/// Fires when `monitor`'s mean has been no better than the best for `patience` looks in a row. A
/// trainer's stop trigger.
class EarlyStoppingTrigger {
 public:
  /// Throws ValueError for another `mode`, and where `patience` is less than 1.
  explicit EarlyStoppingTrigger(EarlyStoppingOptions options = {})
      : EarlyStoppingTrigger(std::move(options), {}) {}
  bool operator()(training::Trainer& trainer);
  void members(Visitor& v);

 protected:
  EarlyStoppingTrigger(EarlyStoppingOptions options, ObservedMean::Agreement agreement);

 private:
  EarlyStoppingOptions options_;
  ObservedMean mean_;
  bool more_is_better_;
  double best_;
  std::int64_t count_ = 0;
};

/// Fires whenever one of `points`, in epochs or iterations, has been reached.
class ManualScheduleTrigger {
 public:
  /// Throws ValueError for no points and for a unit that is neither "epoch" nor "iteration".
  ManualScheduleTrigger(std::vector<double> points, std::string unit);
  bool operator()(training::Trainer& trainer);
  void members(Visitor& v);

 private:
  std::vector<double> points_;
  bool epochs_, finished_ = false;
  std::int64_t previous_iteration_ = 0;
  double previous_epoch_detail_ = 0;
};

/// Fires the first time that it is asked, and with `call_on_resume` also the first time in a run
/// that goes on from a file.
class OnceTrigger {
 public:
  explicit OnceTrigger(bool call_on_resume = false) : resumed_(call_on_resume) {}
  bool operator()(training::Trainer& trainer);
  void members(Visitor& v) { v("_flag_first", first_); }

 private:
  bool first_ = true, resumed_;
};

/// Fires whenever `period` more seconds of the run have gone by.
class TimeTrigger {
 public:
  /// Throws ValueError for a period that is not positive.
  explicit TimeTrigger(double period);
  bool operator()(training::Trainer& trainer);
  void members(Visitor& v) { v("next_time", next_time_); }

 private:
  double period_, next_time_;
};

}  // namespace rensa::triggers
