// Trainer: the training loop.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/links/reporter.h"
#include "rensa/training/extension.h"
#include "rensa/training/updater.h"

namespace rensa::training {

/// What stands in for an extension's own when given.
struct ExtendOptions {
  std::string name = {};
  Trigger trigger = {};              // the extension's own when left out
  std::optional<int> priority = {};  // the extension's own when left out
};

/// Ctrl-C or SIGTERM ended a run before its stop trigger fired.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& what) : Error(what), signal_(signal) {}
  /// SIGINT or SIGTERM. Shells have 128 + signal() as the exit status of who was ended so.
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Calls the updater until `stop` fires (an interval: until it is over, if it is not yet), and
/// after each update the extensions whose triggers fire. What models report in an iteration (under
/// the name of their optimizer, "main/...") and extensions add is its observation. A shared handle;
/// runs once.
class Trainer {
 public:
  /// `out` is the folder that extensions write to, made by run().
  Trainer(Updater updater, Trigger stop, std::string out = "result");

  /// A name taken already gets "_1", "_2" ... appended. Throws ValueError once running.
  template <std::derived_from<Extension> E>
  const Trainer& extend(E extension, const ExtendOptions& options = {}) const {
    return add(std::make_shared<E>(std::move(extension)), options);
  }
  /// Any function of the trainer; what it shows in members(Visitor&), where it has them, lasts.
  template <std::invocable<Trainer&> F>
  requires(!std::derived_from<F, Extension>) const Trainer& extend(
      F function, const ExtendOptions& options = {}) const {
    struct Function final : Extension {
      explicit Function(F f) : call(std::move(f)) {}
      void operator()(Trainer& trainer) override { call(trainer); }
      void members(Visitor& v) override {
        if constexpr (HasMembers<F>) call.members(v);
      }
      F call;
    };
    return add(std::make_shared<Function>(std::move(function)), options);
  }
  /// Throws ValueError for a name there is not.
  Extension& get_extension(const std::string& name) const;

  /// The whole run. An exception of the updater or an extension is shown to every extension's
  /// on_error (one that is no std::exception as an Error that says so) and rethrown after every
  /// finalize. After Ctrl-C or SIGTERM the iteration is finished, every on_interrupt and finalize
  /// called, then Interrupted is thrown; Ctrl-C after that ends the process. Throws
  /// SerializationError where the folder `out` cannot be made, ValueError when called again.
  void run();

  /// Ends the run after this iteration, as if the stop trigger had fired. For extensions, and for
  /// other threads; before run() it is a run of no iterations.
  void stop() const;

  const Updater& updater() const;    // what does the updates
  const Reporter& reporter() const;  // what takes the reports
  /// Of the current iteration; arrays on their devices.
  Observation& observation() const;
  const std::string& out() const;
  const Trigger& stop_trigger() const;  // what ends the run
  /// Seconds since the run began, with those of the run that it goes on from.
  double elapsed_time() const;

  /// Shows all that the run is made of, under Chainer's names: "updater/...", "stop_trigger/...",
  /// "extensions/<name>/...", "extension_triggers/<name>/...", "_snapshot_elapsed_time", and the
  /// states of the random generators; where the stop trigger is no interval, what was observed too.
  /// A trainer made the same way that reads such a file before run() goes on bit for bit as the one
  /// that wrote it. To be written by an extension after all others (of a priority below theirs):
  /// those that come after it miss that iteration. "_format" numbers what such files hold: one of
  /// a later number is refused with SerializationError, those of earlier ones are read.
  void members(Visitor& v) const;

 private:
  const Trainer& add(std::shared_ptr<Extension> extension, const ExtendOptions& options) const;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rensa::training
