// The thread-local state and how it gets from a thread to the threads it starts.
#include "rensa/core/thread_state.h"

#include <utility>

namespace rensa {

ThreadState& ThreadState::current() {
  thread_local ThreadState state;
  return state;
}

ThreadState ThreadState::snapshot() const {
  ThreadState copy = *this;
  copy.recorder = nullptr;
  return copy;
}

void ThreadState::install(ThreadState state) { current() = std::move(state); }

}  // namespace rensa
