// Optimizer: walks a model's parameters and updates all of them in one launch. A shared handle:
// copies are the same optimizer.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "rensa/links/link.h"
#include "rensa/optimizers/algorithm.h"
#include "rensa/optimizers/hooks.h"

namespace rensa {

class JointUpdate;

/// Dynamic loss scaling: the scale lies on the parameters' device, where it is doubled until a
/// gradient overflows, then halved at each overflow and raised to its double in `interval` updates.
struct DynamicLossScale {
  /// Makes the arrays, and moves them to `device`.
  void prepare(Device device);

  double interval = 1000;
  Array scale, overflowed, enabled;  // float64, of one element; made at the first use
};

/// The part of an optimizer that its handles share.
class OptimizerState : public std::enable_shared_from_this<OptimizerState> {
 public:
  explicit OptimizerState(std::shared_ptr<OptimizerAlgorithm> a);
  const char* name() const { return algorithm->name(); }  // the algorithm's
  /// Called by what decides which operations an update has: steps are recorded anew, and one that
  /// does it itself stays eager.
  void change_structure();
  /// Holds a recording in progress to what the update is made of now.
  void bind_structure();
  /// The parameter's rule; one that came into the model after setup gets one. Throws ValueError
  /// where it was since set up with another optimizer.
  std::shared_ptr<UpdateRule> rule_of(const ParameterRef& parameter);
  /// Makes what is kept for an initialized parameter, where it is missing: its states and the
  /// float32 copy. Throws as rule_of does.
  void prepare_for_update(const ParameterRef& parameter);
  /// Shows what is kept for one parameter, with those of its hooks that are not in `shown`, and
  /// enters them there. A file of one that was not updated yet may lack its states: the first
  /// update makes them.
  void members_of(const ParameterRef& parameter, std::set<const OptimizerHook*>& shown, Visitor& v);
  /// Takes what the user has set of `main`, whose model this one's is a replica of.
  void follow(const OptimizerState& main);

  std::shared_ptr<OptimizerAlgorithm> algorithm;  // what updates do
  std::shared_ptr<LinkAnchor> target;             // the model; null before setup()
  std::int64_t t = 0;                             // updates so far
  std::int64_t epoch = 0;                         // new_epoch() calls so far
  HookList hooks;                                 // for all parameters
  bool fp32_update = false;                       // parameters of 16 bits are updated in float32
  double loss_scale = 1;                          // unless dynamic
  std::optional<DynamicLossScale> dynamic;        // where the scale is dynamic
  std::shared_ptr<JointUpdate> joint;             // with whom updates are made; null where alone

 private:
  void read_states(const ParameterRef& parameter, const std::shared_ptr<UpdateRule>& rule,
                   const std::vector<UpdateState>& states, Visitor& v);

  std::vector<Array> structures_;  // the last one stands for the structure; none is used again
};

struct LossScalingOptions {
  double interval = 1000;            // updates in which a dynamic scale doubles
  std::optional<double> scale = {};  // a scale that stays
};

class Optimizer {
 public:
  /// An optimizer of the user's own.
  explicit Optimizer(std::shared_ptr<OptimizerAlgorithm> algorithm);

  /// Holds on to `model` (following its moves) and gives every parameter an update rule. Throws
  /// ValueError where the model's members() names something twice (Link::check_members).
  const Optimizer& setup(Link& model) const;
  /// The model. Throws ValueError before setup and after the model is gone.
  Link& target() const;

  /// Calls hooks and updates all parameters with the gradients they have; those without are left
  /// alone. In a recording the hyperparameters are asked anew by each replay. In debug mode throws
  /// ValueError where backward gave a gradient to a parameter that no walk over any members() has
  /// met: nothing would ever update it. Throws NotImplementedError with a dynamic loss scale for an
  /// algorithm that does not heed UpdateCall::enabled.
  void update() const;
  /// cleargrads, loss = lossfun(args...), backward, update(). Returns the loss, cut off its graph,
  /// which backward gives up as it goes. `lossfun` is a function or a model that gives a loss of
  /// one element, else ValueError.
  template <class LossFunction, class... Args>
  Variable update(LossFunction&& lossfun, const Args&... args) const {
    static_assert(
        std::is_invocable_r_v<Variable, LossFunction&, const Args&...>,
        "optimizer.update(lossfun, x, t): lossfun(x, t) gives the loss as a Variable; of a "
        "model of x alone L::Classifier(model) makes such a function, or write one: "
        "[&](const Variable& x, const Variable& t) { return F::...(model(x), t); }");
    Variable loss = lossfun(args...);
    if constexpr (std::is_base_of_v<Link, std::remove_cvref_t<LossFunction>>) {
      check_loss(loss, &lossfun);
    } else {
      check_loss(loss, nullptr);
    }
    target().cleargrads();
    Variable result = constant(loss.array());
    backward(std::move(loss));
    update();
    return result;
  }

  /// Chainer's old name for target().cleargrads(): afterwards there are no gradients, where the old
  /// one filled them with zeros. A parameter that backward does not reach is left alone by
  /// update().
  void zero_grads() const { target().cleargrads(); }
  /// std::move(loss).backward(), the loss times the loss scale (and `weight`).
  void backward(Variable loss, double weight = 1) const;

  /// Hooks are called before or after each update in the order in which they were added, and before
  /// those of single parameters. Throws ValueError for a second hook of a name.
  template <std::derived_from<OptimizerHook> Hook> const Optimizer& add_hook(Hook hook) const {
    return add_hook(std::make_shared<Hook>(std::move(hook)));
  }
  template <std::derived_from<OptimizerHook> Hook>
  const Optimizer& add_hook(std::shared_ptr<Hook> hook) const {
    return add_any_hook(std::move(hook));
  }
  /// Throws ValueError where there is none of that name.
  void remove_hook(const std::string& name) const;

  /// UpdateRule::use_fp32_update for all parameters.
  const Optimizer& use_fp32_update(bool on = true) const;
  /// Gradients of float16 are often too small for their dtype. With a loss scale backward starts
  /// from it, and the gradients are divided by it before the hooks. A dynamic one (without
  /// `scale`) is kept on the device: updates with a gradient that is no finite number are left out
  /// there, and nothing waits. t counts them too.
  const Optimizer& loss_scaling(const LossScalingOptions& options = {}) const;
  /// A scale that stays: Chainer's name for loss_scaling({.scale = scale}).
  const Optimizer& set_loss_scale(double scale) const { return loss_scaling({.scale = scale}); }
  /// The scale now: float64, of one element.
  Array loss_scale() const;

  /// Updates, and new_epoch() calls, so far. A captured step that asks for them, or for a
  /// hyperparameter, stays eager: its replays would not ask again.
  std::int64_t t() const;
  std::int64_t epoch() const;  // new_epoch() calls so far
  void new_epoch() const;
  /// The named hyperparameter, readable and writable. Throws ValueError for a name there is not.
  double& attribute(const std::string& name) const;
  /// The counts, hyperparameters, loss scale, and what is kept for each parameter of the model
  /// under its path, with whether it is updated: "t", "hyperparam/alpha", "l1/W/t", "l1/W/m",
  /// "l1/W/update_enabled". Hooks show theirs as "hook/<name>/...", those of a single parameter as
  /// "l1/W/hook/<name>/..." (of several parameters: of the first). Throws as target() does.
  void members(Visitor& v) const;
  const std::shared_ptr<OptimizerState>& state() const { return state_; }  // what the handles share

 protected:
  explicit Optimizer(std::shared_ptr<OptimizerState> state) : state_(std::move(state)) {}
  /// A row of core/update_rules.def with its options (OptionsAlgorithm).
  template <class Options>
  Optimizer(const char* name, UpdateRuleId rule, const Options& options,
            typename OptionsAlgorithm<Options>::Numbers numbers = {})
      : Optimizer(std::shared_ptr<OptimizerAlgorithm>(std::make_shared<OptionsAlgorithm<Options>>(
            name, rule, options, std::move(numbers)))) {}
  std::shared_ptr<OptimizerState> state_;

 private:
  const Optimizer& add_any_hook(std::shared_ptr<OptimizerHook> hook) const;
  /// Throws ValueError unless `loss`, which `giver` (null: a function) gave, is of one element.
  void check_loss(const Variable& loss, const Link* giver) const;
};

}  // namespace rensa
