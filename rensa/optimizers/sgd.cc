// SGD and momentum SGD: rows sgd and momentum_sgd of core/update_rules.def.
#include "rensa/optimizers/sgd.h"

namespace rensa::optimizers {

namespace {

class SGDState final : public OptimizerState {
 public:
  explicit SGDState(const SGDOptions& options) : options_(options) {}
  UpdateRuleId rule() const override { return UpdateRuleId::sgd; }
  const char* name() const override { return "SGD"; }
  std::vector<const char*> state_names() const override { return {}; }
  /// lr.
  std::vector<double> hyperparameters(std::int64_t) const override { return {options_.lr}; }
  double* attribute(const std::string& name) override {
    return name == "lr" ? &options_.lr : nullptr;
  }

 private:
  SGDOptions options_;
};

class MomentumSGDState final : public OptimizerState {
 public:
  explicit MomentumSGDState(const MomentumSGDOptions& options) : options_(options) {}
  UpdateRuleId rule() const override { return UpdateRuleId::momentum_sgd; }
  const char* name() const override { return "MomentumSGD"; }
  std::vector<const char*> state_names() const override { return {"v"}; }
  /// lr, momentum.
  std::vector<double> hyperparameters(std::int64_t) const override {
    return {options_.lr, options_.momentum};
  }
  double* attribute(const std::string& name) override {
    if (name == "lr") return &options_.lr;
    return name == "momentum" ? &options_.momentum : nullptr;
  }

 private:
  MomentumSGDOptions options_;
};

}  // namespace

SGD::SGD(const SGDOptions& options) : Optimizer(std::make_shared<SGDState>(options)) {}

MomentumSGD::MomentumSGD(const MomentumSGDOptions& options)
    : Optimizer(std::make_shared<MomentumSGDState>(options)) {}

}  // namespace rensa::optimizers
