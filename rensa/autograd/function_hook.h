// FunctionHook: told of each function that a thread applies and goes back through, as Chainer's.
// function_hooks.h has those that come with the library.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa {

/// What its methods throw, the call of the function throws.
class FunctionHook {
 public:
  virtual ~FunctionHook() = default;
  /// A FunctionHookScope of this hook begins, and ends.
  virtual void added() {}
  virtual void deleted() {}  // its scope ends
  /// Before and after forward, on the function's device; after it also where it throws. `inputs`
  /// are what forward gets: of an Autocast, what it has cast.
  virtual void forward_preprocess(const FunctionNode&, const Variables& /*inputs*/) {}
  virtual void forward_postprocess(const FunctionNode&, const Variables& /*inputs*/) {}
  /// What forward gives, ahead of forward_postprocess.
  virtual void forward_result(const FunctionNode&, const Variables& /*inputs*/,
                              const std::vector<Array>& /*outputs*/) {}
  /// Before and after a function's backward, and the functions that it applies.
  virtual void backward_preprocess(const FunctionNode&, const Variables& /*grad_outputs*/) {}
  virtual void backward_postprocess(const FunctionNode&, const Variables& /*grad_outputs*/) {}
};

/// Chainer's `with hook:`. Hooks are the calling thread's and last for a scope; those of scopes
/// around are called first. Threads that work beside it, as a ParallelUpdater's, have their own. A
/// captured step (graph/capture.h) that is called in the scope, or has such a scope in it, runs
/// eagerly: replays call no functions.
class [[nodiscard]] FunctionHookScope {
 public:
  /// Throws ValueError for the hook of a scope around.
  [[nodiscard]] explicit FunctionHookScope(FunctionHook& hook);
  ~FunctionHookScope();
  FunctionHookScope(const FunctionHookScope&) = delete;
  FunctionHookScope& operator=(const FunctionHookScope&) = delete;

  /// Whether the calling thread is in one.
  static bool is_open();

 private:
  FunctionHook& hook_;
};

namespace autograd {

/// How many hooks all threads have: one branch where there are none.
extern constinit std::atomic<int> function_hooks;

/// One of FunctionHook's methods.
using HookEvent = void (FunctionHook::*)(const FunctionNode&, const Variables&);

/// Calls the thread's hooks before what is done in its scope, and after it: in end(), or at the end
/// of a scope that is left by an exception.
class CalledHooks {
 public:
  CalledHooks(HookEvent before, HookEvent after, const FunctionNode& function,
              const Variables& variables)
      : after_(after), function_(function), variables_(variables) {
    if (function_hooks.load(std::memory_order_relaxed) > 0) begin(before);
  }
  ~CalledHooks() {
    if (told_ < called_) unwind();
  }
  CalledHooks(const CalledHooks&) = delete;
  CalledHooks& operator=(const CalledHooks&) = delete;

  /// Tells them what forward gave.
  void result(const std::vector<Array>& outputs) const {
    if (called_ > 0) tell_result(outputs);
  }
  void end() {
    if (told_ < called_) tell();
  }

 private:
  void begin(HookEvent before);
  void tell_result(const std::vector<Array>& outputs) const;
  void tell();
  void unwind() noexcept;

  HookEvent after_;
  const FunctionNode& function_;
  const Variables& variables_;
  // Hooks that were told of the beginning; of these, how many were told of the end.
  std::size_t called_ = 0, told_ = 0;
};

}  // namespace autograd
}  // namespace rensa
