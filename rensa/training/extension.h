// Extension: what a Trainer calls beside the updates.
#pragma once

#include <exception>
#include <string>

#include "rensa/training/trigger.h"

namespace rensa::training {

/// Chainer's priorities: extensions of a higher one are called first, of one priority in the order
/// in which they were added.
inline constexpr int kPriorityWriter = 300;  // writes into the observation
inline constexpr int kPriorityEditor = 200;  // reads and changes it
inline constexpr int kPriorityReader = 100;  // reads it

/// What a Trainer calls beside its updates: to report, to write files, to change optimizers.
class Extension {
 public:
  virtual ~Extension() = default;
  /// Called in each iteration in which its trigger fires, after the update.
  virtual void operator()(Trainer& trainer) = 0;
  /// Called first of all: what goes on from a file reads it here.
  virtual void resume(Trainer&) {}
  /// Called before the first iteration.
  virtual void initialize(Trainer&) {}
  /// Called at the end of the run, also of one that fails or is ended by a signal.
  virtual void finalize() {}
  /// Asked before each iteration with the signal that has come, 0 for none: gives what the run is
  /// to take for it. For who knows of other ranks.
  virtual int agreed_signal(int own) { return own; }
  /// Called when the run fails with `error`, before finalize.
  virtual void on_error(Trainer&, const std::exception&) {}
  /// Called when Ctrl-C or SIGTERM ends the run, after an iteration and before finalize.
  virtual void on_interrupt(Trainer&) {}

  /// Shows what lasts of it, so that a run that goes on from a file goes on as this one:
  /// v("best", best_). The trainer's file has it under "extensions/<name>/".
  virtual void members(Visitor&) {}

  /// The name where extend() gives none; of several equal ones the later get "_1", "_2".
  virtual std::string default_name() const { return "extension"; }
  /// The trigger where extend() gives none.
  virtual Trigger default_trigger() const { return {1, "iteration"}; }
  /// The priority where extend() gives none.
  virtual int default_priority() const { return kPriorityReader; }

  /// The name that the trainer gave it.
  std::string name;
};

}  // namespace rensa::training
