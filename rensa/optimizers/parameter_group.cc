#include "rensa/optimizers/parameter_group.h"

namespace rensa {

ParameterGroup::ParameterGroup(std::vector<ParameterRef> parameters)
    : parameters_(std::move(parameters)) {}
ParameterGroup::ParameterGroup(const Link& link) : ParameterGroup(link.params()) {}

const ParameterGroup& ParameterGroup::set_hyperparam(const std::string& name, double value) const {
  for (const ParameterRef& p : parameters_) p.update_rule()->set_hyperparam(name, value);
  return *this;
}

const ParameterGroup& ParameterGroup::set_update_enabled(bool on) const {
  for (const ParameterRef& p : parameters_) p.set_update_enabled(on);
  return *this;
}

}  // namespace rensa
