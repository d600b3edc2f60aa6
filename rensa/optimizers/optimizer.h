// Optimizer: walks a model's parameters and updates all of them in one launch. A shared handle:
// copies are the same optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "rensa/core/update_rules.h"
#include "rensa/device/host_scalar.h"
#include "rensa/links/link.h"
#include "rensa/optimizers/update_rule.h"

namespace rensa {

/// The part of an optimizer that its handles share. An optimizer is a subclass that says which row
/// of core/update_rules.def it runs, what its states are called and how the hyperparameters of a
/// step come about.
class OptimizerState : public std::enable_shared_from_this<OptimizerState> {
 public:
  virtual ~OptimizerState() = default;
  virtual UpdateRuleId rule() const = 0;
  virtual const char* name() const = 0;
  virtual std::vector<const char*> state_names() const = 0;
  /// The values h[0..] of the rule for a parameter's `t`-th update (1 at the first). Called on the
  /// host before each update, in replays too.
  virtual std::vector<double> hyperparameters(std::int64_t t) const = 0;
  /// The hyperparameter `attribute` ("lr", "alpha"), for extensions and files; null when there is
  /// none of that name.
  virtual double* attribute(const std::string& name) = 0;

  std::shared_ptr<LinkAnchor> target;
  std::int64_t t = 0;      // updates so far
  std::int64_t epoch = 0;  // new_epoch() calls so far
};

class Optimizer {
 public:
  /// Holds on to `model` (following its moves) and gives every parameter an update rule. Throws
  /// ValueError where the model's members() names something twice (Link::check_members).
  const Optimizer& setup(Link& model) const;
  /// The model. Throws ValueError before setup and after the model is gone.
  Link& target() const;

  /// Updates all parameters with the gradients they have; those without are left alone. In a
  /// recording the hyperparameters are asked anew by each replay. Throws ValueError where backward
  /// gave a gradient to a parameter that no model's members() names: nothing would ever update it.
  void update() const;
  /// cleargrads, loss = lossfun(args...), backward, update(). Returns the loss. `lossfun` is a
  /// function or a model that gives a loss of one element, else ValueError.
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
    loss.backward();
    update();
    return loss;
  }

  /// Updates, and new_epoch() calls, so far. A captured step that asks for them, or for a
  /// hyperparameter, stays eager: its replays would not ask again.
  std::int64_t t() const;
  std::int64_t epoch() const;
  void new_epoch() const;
  /// The named hyperparameter, readable and writable. Throws ValueError for a name there is not.
  double& attribute(const std::string& name) const;
  const std::shared_ptr<OptimizerState>& state() const { return state_; }

 protected:
  explicit Optimizer(std::shared_ptr<OptimizerState> state) : state_(std::move(state)) {}
  std::shared_ptr<OptimizerState> state_;

 private:
  /// Throws ValueError unless `loss`, which `giver` (null: a function) gave, is of one element.
  void check_loss(const Variable& loss, const Link* giver) const;
};

}  // namespace rensa
