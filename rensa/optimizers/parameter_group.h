// ParameterGroup: parameters that are updated in a way of their own.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/links/link.h"
#include "rensa/optimizers/hooks.h"
#include "rensa/optimizers/update_rule.h"

namespace rensa {

/// Some of the parameters of a model that an optimizer has been set up on:
///
///   ParameterGroup(model.backbone).set_hyperparam("lr", 1e-4);
///   ParameterGroup biases(model, [](const NamedParameter& p) { return p.path.ends_with("/b"); });
///   biases.set_hyperparam("weight_decay_rate", 0);
///
/// A list of handles: what is set stands with each parameter, and is saved there. Parameters of the
/// same values are one set of numbers in the update's launch, which takes four sets.
class ParameterGroup {
 public:
  explicit ParameterGroup(std::vector<ParameterRef> parameters);
  explicit ParameterGroup(const Link& link);
  /// Those of which `belongs` gives true.
  template <std::predicate<const NamedParameter&> Belongs>
  ParameterGroup(const Link& link, Belongs belongs) {
    for (const NamedParameter& named : link.namedparams()) {
      if (belongs(named)) parameters_.push_back(named.parameter);
    }
  }

  /// UpdateRule::set_hyperparam for each. Throws as that, and ValueError before Optimizer::setup.
  const ParameterGroup& set_hyperparam(const std::string& name, double value) const;
  /// Calls one hook for all of them, after the optimizer's: a GradientClipping of a group looks at
  /// the norm of its gradients alone. Throws as UpdateRule::add_hook and before Optimizer::setup.
  template <std::derived_from<OptimizerHook> Hook> const ParameterGroup& add_hook(Hook hook) const {
    auto shared = std::make_shared<Hook>(std::move(hook));
    for (const ParameterRef& p : parameters_) p.update_rule()->add_hook(shared);
    return *this;
  }
  /// Lets updates change them, or leaves them as they are.
  const ParameterGroup& set_update_enabled(bool on) const;
  const std::vector<ParameterRef>& parameters() const { return parameters_; }  // those of the group

 private:
  std::vector<ParameterRef> parameters_;
};

}  // namespace rensa
