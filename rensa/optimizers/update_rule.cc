// What a parameter has of its own.
#include "rensa/optimizers/update_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/optimizers/hooks.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa {

std::shared_ptr<OptimizerState> UpdateRule::optimizer(const char* what) const {
  std::shared_ptr<OptimizerState> state = owner.lock();
  if (!state) {
    throw ValueError(fmt::format(
        "UpdateRule.{}: the optimizer that the parameter was set up with is gone", what));
  }
  return state;
}

double UpdateRule::hyperparam(const std::string& name) const {
  stay_eager("it asks a parameter for a hyperparameter");
  std::shared_ptr<OptimizerState> state = optimizer("hyperparam");
  double shared = number_of(*state->algorithm, state->algorithm->hyperparameters(), name);
  for (const auto& [known, value] : own_) {
    if (known == name) return value;
  }
  return shared;
}

void UpdateRule::set_hyperparam(const std::string& name, double value) {
  std::shared_ptr<OptimizerState> state = optimizer("set_hyperparam");
  number_of(*state->algorithm, state->algorithm->hyperparameters(), name);
  stay_eager("it sets a hyperparameter of a parameter");
  for (auto& [known, own] : own_) {
    if (known == name) {
      own = value;
      return;
    }
  }
  own_.emplace_back(name, value);
  state->change_structure();
}

bool UpdateRule::has_own(const std::string& name) const {
  return std::ranges::any_of(own_, [&](const auto& entry) { return entry.first == name; });
}

void UpdateRule::reset_hyperparam(const std::string& name) {
  std::shared_ptr<OptimizerState> state = optimizer("reset_hyperparam");
  number_of(*state->algorithm, state->algorithm->hyperparameters(), name);
  stay_eager("it sets a hyperparameter of a parameter");
  if (!has_own(name)) return;
  std::erase_if(own_, [&](const auto& entry) { return entry.first == name; });
  state->change_structure();
}

void UpdateRule::add_hook(std::shared_ptr<OptimizerHook> hook) {
  optimizer("add_hook")->change_structure();
  add_to(hooks_, std::move(hook));
}

void UpdateRule::remove_hook(const std::string& name) {
  optimizer("remove_hook")->change_structure();
  remove_from(hooks_, name);
}

void UpdateRule::follow(const UpdateRule& source) {
  if (own_ == source.own_ && hooks_ == source.hooks_ && fp32_update_ == source.fp32_update_) return;
  optimizer("follow")->change_structure();
  own_ = source.own_;
  hooks_ = source.hooks_;
  fp32_update_ = source.fp32_update_;
}

void UpdateRule::use_fp32_update(bool on) {
  if (fp32_update_ == on) return;
  optimizer("use_fp32_update")->change_structure();
  fp32_update_ = on;
}

UpdateRule::UpdateRule(std::weak_ptr<OptimizerState> optimizer) : owner(std::move(optimizer)) {}

}  // namespace rensa
