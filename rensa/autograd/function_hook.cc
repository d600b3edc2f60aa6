// The hooks of functions of a thread.
#include "rensa/autograd/function_hook.h"

#include <vector>

namespace rensa {

namespace autograd {

constinit std::atomic<int> function_hooks = 0;

namespace {

std::vector<FunctionHook*>& hooks() {
  thread_local std::vector<FunctionHook*> list;
  return list;
}

}  // namespace

void CalledHooks::call(HookEvent event) const {
  for (FunctionHook* hook : hooks()) (hook->*event)(function_, variables_);
}

}  // namespace autograd

FunctionHookScope::FunctionHookScope(FunctionHook& hook) {
  autograd::hooks().push_back(&hook);
  ++autograd::function_hooks;
}

FunctionHookScope::~FunctionHookScope() {
  autograd::hooks().pop_back();
  --autograd::function_hooks;
}

}  // namespace rensa
