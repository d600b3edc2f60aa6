// InterruptScope: Ctrl-C as a request to end a run.
#pragma once

namespace rensa::training {

/// While one lives, a first Ctrl-C (SIGINT) is noted instead of ending the process; a second one
/// ends it. A program that has a handler of its own, or ignores the signal, is left alone. What was
/// before comes back with the last scope.
class [[nodiscard]] InterruptScope {
 public:
  [[nodiscard]] InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Whether Ctrl-C came since this scope began.
  bool interrupted() const;

 private:
  int before_;
};

}  // namespace rensa::training
