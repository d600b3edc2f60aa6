// Hooks of optimizers: what is done to gradients (or parameters) before or after each update.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rensa/optimizers/algorithm.h"

namespace rensa {

class Link;

/// optimizer.add_hook(hook) is for all parameters, parameter.update_rule()->add_hook(hook) for one.
/// A hook is called once for all that it is for. What it launches is recorded in captured steps.
class OptimizerHook : public std::enable_shared_from_this<OptimizerHook> {
 public:
  enum class Timing { pre, post };  // before the update, or after it
  virtual ~OptimizerHook() = default;
  virtual const char* name() const = 0;  // unique among the hooks of an optimizer or a parameter
  virtual Timing timing() const { return Timing::pre; }  // when it is called
  /// Before the update the gradients are changed in place; they are those without a loss scale.
  virtual void operator()(const UpdateCall& call) = 0;
  /// Shows what lasts of it, to files. What calls count is a Counter: replays count on.
  virtual void members(Visitor&) {}
  /// Whether all numbers that members() shows reach the device through a RowLaunch
  /// (optimizers/row_launch.h), which replays of captured steps ask anew, and calls do not change
  /// them. Of others a recording holds only while they stay what they are.
  virtual bool asks_anew() const { return false; }
  /// Whether it makes other numbers on each replica of a model (ParallelUpdater has no such hooks).
  virtual bool is_random() const { return false; }
};

/// Hooks, in the order in which they are called.
using HookList = std::vector<std::shared_ptr<OptimizerHook>>;
/// Throws ValueError where the list has one of that name.
void add_to(HookList& hooks, std::shared_ptr<OptimizerHook> hook);
/// Throws ValueError where the list has none of that name.
void remove_from(HookList& hooks, const std::string& name);

/// The sums of squares of n arrays of one device, and of all: float64, (n + 1,). Does not wait.
[[nodiscard]] Array squared_sums(const std::vector<Array>& arrays);
/// The sum of the squares of all gradients of an update, of other ranks' parts of it too: float64,
/// (1,).
[[nodiscard]] Array squared_norm(const UpdateCall& call);

namespace optimizer_hooks {

/// Those of the library, but Function: public numbers that may be changed at any time, in captured
/// steps too, and are saved with the optimizer.
struct NumbersHook : OptimizerHook {
  bool asks_anew() const final { return true; }
};

/// grad += rate * param.
struct WeightDecay : NumbersHook {
  explicit WeightDecay(double rate) : rate(rate) {}
  const char* name() const override { return "WeightDecay"; }
  void members(Visitor& v) override { v.optional("rate", rate); }
  void operator()(const UpdateCall& call) override;
  double rate;
};

/// grad += rate * sign(param).
struct Lasso : NumbersHook {
  explicit Lasso(double rate) : rate(rate) {}
  const char* name() const override { return "Lasso"; }
  void members(Visitor& v) override { v.optional("rate", rate); }
  void operator()(const UpdateCall& call) override;
  double rate;
};

/// Makes the norm of all gradients together at most `threshold`: grad *= min(threshold / norm, 1).
/// The norm stays on the device: nothing waits. Parameters on several devices have a norm on each,
/// so that is refused with NotImplementedError.
struct GradientClipping : NumbersHook {
  explicit GradientClipping(double threshold) : threshold(threshold) {}
  const char* name() const override { return "GradientClipping"; }
  void members(Visitor& v) override { v.optional("threshold", threshold); }
  void operator()(const UpdateCall& call) override;
  double threshold;
};

/// grad = clip(grad, lower_bound, upper_bound).
struct GradientHardClipping : NumbersHook {
  GradientHardClipping(double lower_bound, double upper_bound)
      : lower_bound(lower_bound), upper_bound(upper_bound) {}
  const char* name() const override { return "GradientHardClipping"; }
  void members(Visitor& v) override {
    v.optional("lower_bound", lower_bound), v.optional("upper_bound", upper_bound);
  }
  void operator()(const UpdateCall& call) override;
  double lower_bound, upper_bound;
};

/// Neelakantan et al., "Adding gradient noise improves learning for very deep networks":
/// grad += N(0, eta / (1 + t)^0.55), t the updates of the parameter so far.
struct GradientNoise : NumbersHook {
  explicit GradientNoise(double eta) : eta(eta) {}
  const char* name() const override { return "GradientNoise"; }
  void members(Visitor& v) override { v.optional("eta", eta); }
  void operator()(const UpdateCall& call) override;
  bool is_random() const override { return true; }
  double eta;
};

/// You, Gitman and Ginsburg, "Large batch training of convolutional networks":
/// grad = (grad + weight_decay * param) * |param| / (eps + |grad| + weight_decay * |param|), by
/// parameter; without the quotient where |param| is at most `threshold`.
struct GradientLARS : NumbersHook {
  explicit GradientLARS(double threshold = 1e-2, double weight_decay = 0, double eps = 1e-9)
      : threshold(threshold), weight_decay(weight_decay), eps(eps) {}
  const char* name() const override { return "GradientLARS"; }
  void members(Visitor& v) override {
    v.optional("threshold", threshold), v.optional("weight_decay", weight_decay),
        v.optional("eps", eps);
  }
  void operator()(const UpdateCall& call) override;
  double threshold, weight_decay, eps;
};

/// The exponential moving average of a model's weights, kept in another one: after each update
/// average += (1 - decay) * (param - average), for the parameters that were updated.
///
///   auto average = model.copy(CopyMode::copy);
///   optimizer.add_hook(optimizer_hooks::MovingAverage(model, average, 0.999));
///
/// It starts from the weights that `average` has; a parameter that waits for its shape there is
/// given the model's at its first update. Averages of 16-bit parameters are kept in float32 and
/// rounded. Other arrays than parameters are copied by average.copy_persistents(model). Saved with
/// the optimizer. Throws ValueError where the two have not the same parameters.
struct MovingAverage : NumbersHook {
  MovingAverage(const Link& model, const Link& average, double decay);
  const char* name() const override { return "MovingAverage"; }
  Timing timing() const override { return Timing::post; }
  void members(Visitor& v) override;
  void operator()(const UpdateCall& call) override;
  double decay;

 private:
  struct Entry {
    std::string path;
    ParameterRef parameter, average;
    Array wide;  // of a 16-bit average
    /// What is averaged into, on the parameter's device.
    Array prepare();
  };
  std::vector<Entry> entries_;
};

/// A function as a hook: optimizer_hooks::Function("double", [](const UpdateCall& call) {...}).
/// What it shows in members(Visitor&), where it has them, lasts.
struct Function : OptimizerHook {
  template <std::invocable<const UpdateCall&> F>
  Function(std::string name, F function, Timing timing = Timing::pre)
      : name_(std::move(name)), timing_(timing) {
    auto held = std::make_shared<F>(std::move(function));
    function_ = [held](const UpdateCall& call) { (*held)(call); };
    if constexpr (HasMembers<F>) members_ = [held](Visitor& v) { held->members(v); };
  }
  const char* name() const override { return name_.c_str(); }
  Timing timing() const override { return timing_; }
  void operator()(const UpdateCall& call) override { function_(call); }
  void members(Visitor& v) override {
    if (members_) members_(v);
  }

 private:
  std::string name_;
  std::function<void(const UpdateCall&)> function_;
  std::function<void(Visitor&)> members_;
  Timing timing_;
};

}  // namespace optimizer_hooks

}  // namespace rensa
