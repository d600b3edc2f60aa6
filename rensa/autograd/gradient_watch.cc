#include "rensa/autograd/gradient_watch.h"

#include <utility>

namespace rensa {

namespace {
constinit thread_local GradientWatch* current_watch = nullptr;
}  // namespace

GradientWatchScope::GradientWatchScope(GradientWatch* watch)
    : previous_(std::exchange(current_watch, watch)) {
  if (watch) watch->begin();
}
GradientWatchScope::~GradientWatchScope() { current_watch = previous_; }
GradientWatch* GradientWatchScope::current() { return current_watch; }

}  // namespace rensa
