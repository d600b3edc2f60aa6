// GradientWatch: who is told of gradients while backward still computes others.
#pragma once

#include <memory>

#include "rensa/autograd/variable.h"

namespace rensa {

/// Told by Variable::backward of each leaf's gradient as soon as it is complete. (The first of a
/// pass are the last layers'.)
class GradientWatch {
 public:
  virtual ~GradientWatch() = default;
  virtual void begin() {}  // a scope: what an earlier one left, where it failed, is to be forgotten
  /// `gradient` is what the pass adds to the leaf's gradient at its end; unless this takes it and
  /// sees to that (autograd::added_to_grad). A leaf that is used within F::forget, too, comes more
  /// than once.
  virtual bool take(const std::shared_ptr<VariableBody>& leaf, const Variable& gradient) = 0;
  virtual void end() {}  // of a pass that has not failed
};

/// Variable::backward of this thread tells `watch` (null: nobody).
class [[nodiscard]] GradientWatchScope {
 public:
  explicit GradientWatchScope(GradientWatch* watch);
  ~GradientWatchScope();
  GradientWatchScope(const GradientWatchScope&) = delete;
  GradientWatchScope& operator=(const GradientWatchScope&) = delete;
  /// Null where there is none.
  static GradientWatch* current();

 private:
  GradientWatch* previous_;
};

}  // namespace rensa
