// Adam and its kin: rows adam, amsgrad, adabound and amsbound of core/update_rules.def.
#include "rensa/optimizers/adam.h"

#include <cmath>

#include "rensa/core/update_rule_ids.h"

namespace rensa::optimizers {

namespace {

UpdateRuleId rule_of(const AdamOptions& o) {
  if (o.adabound) return o.amsgrad ? UpdateRuleId::amsbound : UpdateRuleId::adabound;
  return o.amsgrad ? UpdateRuleId::amsgrad : UpdateRuleId::adam;
}

const char* name_of(const AdamOptions& o) {
  if (o.adabound) return o.amsgrad ? "AMSBound" : "AdaBound";
  return o.amsgrad ? "AMSGrad" : "Adam";
}

/// The row's hyperparameters in its order; `alpha` is that of the options in the beginning.
std::vector<double> numbers(const AdamOptions& o, std::int64_t t, double alpha) {
  auto steps = static_cast<double>(t);
  double alpha_t =
      o.alpha * std::sqrt(1 - std::pow(o.beta2, steps)) / (1 - std::pow(o.beta1, steps));
  std::vector<double> h = {alpha_t, 1 - o.beta1, 1 - o.beta2, o.eps, o.eta, o.weight_decay_rate};
  if (o.adabound) {
    double final_lr = o.final_lr * o.alpha / alpha;
    h.push_back(final_lr * (1 - 1 / (o.gamma * steps + 1)));
    h.push_back(final_lr * (1 + 1 / (o.gamma * steps)));
  }
  return h;
}

}  // namespace

Adam::Adam(const AdamOptions& options)
    : Optimizer(name_of(options), rule_of(options), options,
                [alpha = options.alpha](const AdamOptions& o, std::int64_t t) {
                  return numbers(o, t, alpha);
                }) {}

}  // namespace rensa::optimizers
