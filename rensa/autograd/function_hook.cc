// The hooks of functions of a thread.
#include "rensa/autograd/function_hook.h"

#include <algorithm>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace autograd {

constinit std::atomic<int> function_hooks = 0;

namespace {

std::vector<FunctionHook*>& hooks() {
  thread_local std::vector<FunctionHook*> list;
  return list;
}

}  // namespace

void CalledHooks::begin(HookEvent before) {
  try {
    for (std::size_t count = hooks().size(); called_ < count; ++called_) {
      (hooks()[called_]->*before)(function_, variables_);
    }
  } catch (...) {
    unwind();
    throw;
  }
}

void CalledHooks::tell_result(const std::vector<Array>& outputs) const {
  for (std::size_t i = 0; i < called_; ++i) {
    hooks()[i]->forward_result(function_, variables_, outputs);
  }
}

void CalledHooks::tell() {
  while (told_ < called_) (hooks()[told_++]->*after_)(function_, variables_);
}

void CalledHooks::unwind() noexcept {
  while (told_ < called_) {
    try {
      tell();
    } catch (...) {
      // The exception that is on its way is the one to be heard.
    }
  }
}

}  // namespace autograd

FunctionHookScope::FunctionHookScope(FunctionHook& hook) : hook_(hook) {
  std::vector<FunctionHook*>& open = autograd::hooks();
  if (std::find(open.begin(), open.end(), &hook) != open.end()) {
    throw ValueError(
        "FunctionHookScope: the hook is that of a scope around, and would be told of everything "
        "twice");
  }
  stay_eager("it hooks functions: its replays would not call the hook");
  hook.added();
  open.push_back(&hook);
  ++autograd::function_hooks;
}

FunctionHookScope::~FunctionHookScope() {
  --autograd::function_hooks;
  autograd::hooks().pop_back();
  hook_.deleted();
}

bool FunctionHookScope::is_open() {
  return autograd::function_hooks.load(std::memory_order_relaxed) > 0 && !autograd::hooks().empty();
}

}  // namespace rensa
