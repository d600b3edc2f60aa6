// What the files of autograd/ share: making variables' bodies, and the one place where gradients
// are stored.
#pragma once

#include <memory>

#include "rensa/autograd/parameter.h"
#include "rensa/device/launcher.h"

namespace rensa::autograd {

/// A new leaf; `array` may be undefined (a parameter that waits for its shape).
std::shared_ptr<VariableBody> make_body(Array array, bool requires_grad);
/// A variable that stands at `node`.
std::shared_ptr<VariableBody> make_body(Array array, std::shared_ptr<VariableNode> node);

/// Whether variables of `dtype` can have gradients.
inline bool is_differentiable(Dtype dtype) {
  return dtype_kind(dtype) == 'f' || dtype_kind(dtype) == 'c';
}

/// Makes `node` that of an array like this.
void describe(VariableNode& node, const Array& array);

/// What copies made on this thread do now: a CopyModeScope's mode.
CopyMode copy_mode();

/// Gives `parameter` another array, of any shape and on any device; its first one to those too that
/// share it (CopyMode::share).
void set_array(const Variable& parameter, Array array);
/// Memory for the first array of a parameter that waits for its shape.
Array array_for(const ParameterRef& parameter, const Shape& shape);
/// Its dtype.
Dtype dtype_for(const ParameterRef& parameter);
/// Where an uninitialized parameter will be.
Device home_device(const VariableBody& body);

/// Makes `gradient` (undefined: none) the gradient of `body`: a host effect, done again by each
/// replay of a recording.
void store_grad(const std::shared_ptr<VariableBody>& body, Variable gradient);

/// `gradient`, and with it the gradient of `body` where that has one.
Variable added_to_grad(const std::shared_ptr<VariableBody>& body, const Variable& gradient);

/// A walk over some members() has met `parameter`.
void note_named(const ParameterRef& parameter);
/// Backward gave the parameter `body` a gradient. In debug mode one that no walk has met yet is
/// remembered for the thread's next update.
void note_gradient(const std::shared_ptr<VariableBody>& body);
/// In debug mode the parameters with a gradient of backward on this thread that no walk has met,
/// those left out whose updates are off.
std::vector<ParameterRef> unnamed_with_gradient();

/// Throws ShapeError, DtypeError or DeviceError, naming `operation`, unless `g` is of that kind.
void check_gradient(const char* operation, const Shape& shape, Dtype dtype, Device device,
                    const Array& g);

/// Ties a recording in progress to the memory that `current` gives for `body` now.
template <class F> void bind_recording(const std::shared_ptr<VariableBody>& body, F current) {
  if (Recorder* recorder = ThreadState::current().recorder) {
    recorder->binding([weak = std::weak_ptr(body), current]() -> const Storage* {
      auto target = weak.lock();
      return target ? current(*target) : nullptr;
    });
  }
}

/// What a function's backward does with a graph of its own: the gradients of `inputs`, from those
/// of `outputs`; where Variable::backward is what runs, leaves between them get theirs, as its own
/// do.
Variables gradients_within(const Variables& outputs, const Variables& grad_outputs,
                           const Variables& inputs);

/// Debug mode: throws ValueError when one of `arrays` holds a NaN, which a function of these inputs
/// made: names it and the functions before it. Waits for the device.
void check_nan(const char* when, const char* function,
               const std::vector<std::shared_ptr<VariableNode>>& inputs,
               const std::vector<Array>& arrays);

/// Makes `device` the thread's current one for a scope, without asking whether it is there: arrays
/// are on it.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device device)
      : state_(ThreadState::current()), previous_(std::exchange(state_.device, device)) {}
  ~CurrentDevice() { state_.device = previous_; }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  ThreadState& state_;
  Device previous_;
};

}  // namespace rensa::autograd
