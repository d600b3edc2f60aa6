// Adam: row adam of core/update_rules.def.
#include "rensa/optimizers/adam.h"

#include <cmath>
#include <utility>

namespace rensa::optimizers {

namespace {

class AdamState final : public OptimizerState {
 public:
  explicit AdamState(const AdamOptions& options) : options_(options) {}
  UpdateRuleId rule() const override { return UpdateRuleId::adam; }
  const char* name() const override { return "Adam"; }
  std::vector<const char*> state_names() const override { return {"m", "v"}; }

  /// alpha_t, 1 - beta1, 1 - beta2, eps, eta, weight_decay_rate.
  std::vector<double> hyperparameters(std::int64_t t) const override {
    const AdamOptions& o = options_;
    auto steps = static_cast<double>(t);
    double alpha_t =
        o.alpha * std::sqrt(1 - std::pow(o.beta2, steps)) / (1 - std::pow(o.beta1, steps));
    return {alpha_t, 1 - o.beta1, 1 - o.beta2, o.eps, o.eta, o.weight_decay_rate};
  }

  double* attribute(const std::string& name) override {
    const std::pair<const char*, double*> attributes[] = {
        {"alpha", &options_.alpha}, {"beta1", &options_.beta1},
        {"beta2", &options_.beta2}, {"eps", &options_.eps},
        {"eta", &options_.eta},     {"weight_decay_rate", &options_.weight_decay_rate}};
    for (const auto& [known, value] : attributes) {
      if (name == known) return value;
    }
    return nullptr;
  }

 private:
  AdamOptions options_;
};

}  // namespace

Adam::Adam(const AdamOptions& options) : Optimizer(std::make_shared<AdamState>(options)) {}

}  // namespace rensa::optimizers
