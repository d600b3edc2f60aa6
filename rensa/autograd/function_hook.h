// FunctionHook: told of each function that a thread applies and goes back through, as Chainer's.
#pragma once

#include <atomic>

#include "rensa/autograd/variable.h"

namespace rensa {

class FunctionHook {
 public:
  virtual ~FunctionHook() = default;
  /// Before and after forward; after it also where it throws. `inputs` are what forward gets: of an
  /// Autocast, what it has cast.
  virtual void forward_preprocess(const FunctionNode&, const Variables& /*inputs*/) {}
  virtual void forward_postprocess(const FunctionNode&, const Variables& /*inputs*/) {}
  /// Before and after a function's backward, and the functions that it applies.
  virtual void backward_preprocess(const FunctionNode&, const Variables& /*grad_outputs*/) {}
  virtual void backward_postprocess(const FunctionNode&, const Variables& /*grad_outputs*/) {}
};

/// Hooks are the calling thread's and last for a scope; those of scopes around are called first. A
/// captured step calls them as it is recorded, not in its replays.
class [[nodiscard]] FunctionHookScope {
 public:
  [[nodiscard]] explicit FunctionHookScope(FunctionHook& hook);
  ~FunctionHookScope();
  FunctionHookScope(const FunctionHookScope&) = delete;
  FunctionHookScope& operator=(const FunctionHookScope&) = delete;
};

namespace autograd {

/// How many hooks all threads have: one branch where there are none.
extern constinit std::atomic<int> function_hooks;

using HookEvent = void (FunctionHook::*)(const FunctionNode&, const Variables&);

/// Calls the thread's hooks before and after what is done in its scope.
class CalledHooks {
 public:
  CalledHooks(HookEvent before, HookEvent after, const FunctionNode& function,
              const Variables& variables)
      : after_(after), function_(function), variables_(variables) {
    if (function_hooks.load(std::memory_order_relaxed) > 0) call(before);
  }
  ~CalledHooks() {
    if (function_hooks.load(std::memory_order_relaxed) > 0) call(after_);
  }
  CalledHooks(const CalledHooks&) = delete;
  CalledHooks& operator=(const CalledHooks&) = delete;

 private:
  void call(HookEvent event) const;
  HookEvent after_;
  const FunctionNode& function_;
  const Variables& variables_;
};

}  // namespace autograd
}  // namespace rensa
