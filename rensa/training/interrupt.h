// InterruptScope: Ctrl-C, or SIGTERM, as a request to end a run.
#pragma once

namespace rensa::training {

/// While one lives, a first Ctrl-C (SIGINT) or SIGTERM is noted instead of ending the process;
/// Ctrl-C after that ends it. (SIGTERM comes twice from some programs that send it.) A program that
/// has a handler of its own for one of them, or ignores it, is left alone. What was before comes
/// back with the last scope.
class [[nodiscard]] InterruptScope {
 public:
  [[nodiscard]] InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// The signal that came since this scope began; 0: none did.
  int interrupted() const;

 private:
  int before_;
};

}  // namespace rensa::training
