// OptimizerAlgorithm: what an optimizer does to its parameters; what it keeps for them is in
// OptimizerState and UpdateRule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/autograd/parameter.h"
#include "rensa/core/update_rules.h"
#include "rensa/links/visitor.h"
#include "rensa/optimizers/update_rule.h"

namespace rensa {

class JointUpdate;

/// A parameter in an update.
struct UpdatedParameter {
  ParameterRef parameter;
  std::shared_ptr<UpdateRule> rule;  // what is kept for it
  Array array;  // what is to be changed: the parameter's, or the float32 copy of it
  Array grad;   // lies as `array` does; hooks change it in place
};

/// An update of a model's parameters.
struct UpdateCall {
  std::vector<UpdatedParameter> parameters;  // those with gradients
  /// With whom it is made (optimizers/joint_update.h); null of an optimizer that is alone.
  JointUpdate* joint = nullptr;
  /// Undefined, or one float64 on the parameters' device: where it is 0 (a gradient was too great
  /// for its dtype) nothing is to change.
  Array enabled;
};

/// Subclass it for an optimizer that no row and no text says:
///
///   struct SignSGD : OptimizerAlgorithm {
///     double lr = 0.01;
///     const char* name() const override { return "SignSGD"; }
///     NamedNumbers hyperparameters() override { return {{"lr", &lr}}; }
///     void update(const UpdateCall& call) override {
///       for (const UpdatedParameter& p : call.parameters) p.array -= lr * xp::sign(p.grad);
///     }
///   };
///   Optimizer optimizer(std::make_shared<SignSGD>());
///
/// A number of the host's, as lr is here, is in the operations themselves: where it is changed, a
/// captured step is recorded anew. Those of a RowLaunch (optimizers/row_launch.h) are asked anew by
/// replays: asks_anew() says so.
class OptimizerAlgorithm : public std::enable_shared_from_this<OptimizerAlgorithm> {
 public:
  using NamedNumbers = std::vector<std::pair<std::string, double*>>;
  virtual ~OptimizerAlgorithm() = default;
  virtual const char* name() const = 0;
  /// The arrays that UpdateRule::states holds for a parameter.
  virtual std::vector<UpdateState> states() const;
  /// By name, for attribute(), files and values of a parameter's own.
  virtual NamedNumbers hyperparameters() { return {}; }
  /// Shows what lasts of it beside these, to files: v("k", k_).
  virtual void members(Visitor&) {}
  /// Whether all numbers that it takes from the host (hyperparameters, members) reach the device
  /// through a RowLaunch. Of others a recording holds only while they stay what they are.
  virtual bool asks_anew() const { return false; }
  /// Changes the arrays by their gradients. The counts t have been raised, the states are there.
  virtual void update(const UpdateCall& call) = 0;
  /// Whether update() changes nothing where UpdateCall::enabled is 0. Others are refused with a
  /// dynamic loss scale.
  virtual bool heeds_enabled() const { return false; }
  /// Whether update() also rounds the float32 copies to the parameters.
  virtual bool writes_parameters() const { return false; }
};

/// The hyperparameter of that name. Throws ValueError where there is none.
double& number_of(const OptimizerAlgorithm& algorithm,
                  const OptimizerAlgorithm::NamedNumbers& numbers, const std::string& name);

/// A row of core/update_rules.def, in one launch for all parameters of a device and dtype.
class RowAlgorithm : public OptimizerAlgorithm {
 public:
  RowAlgorithm(const char* name, UpdateRuleId rule) : name_(name), rule_(rule) {}
  const char* name() const override { return name_; }
  std::vector<UpdateState> states() const override;
  void update(const UpdateCall& call) override;
  bool asks_anew() const override { return true; }
  bool heeds_enabled() const override { return true; }
  bool writes_parameters() const override { return true; }
  /// The row's hyperparameters for the `t`-th update (1 is the first) of a parameter that has
  /// values of its own. Called on the host before each update, in replays too.
  virtual std::vector<double> numbers(const Hyperparameters& own, std::int64_t t) const = 0;

 protected:
  UpdateRuleId rule() const { return rule_; }

 private:
  const char* name_;
  UpdateRuleId rule_;
};

/// A row with its options: a struct of numbers that names them once,
///
///   struct SGDOptions {
///     double lr = 0.01;
///     void fields(auto&& v) { v("lr", lr); }
///   };
///
/// A hyperparameter of the row is the option of its name, unless `numbers` computes them all.
template <class Options> class OptionsAlgorithm final : public RowAlgorithm {
 public:
  /// The row's numbers, of the options and the count of updates.
  using Numbers = std::function<std::vector<double>(const Options&, std::int64_t t)>;
  OptionsAlgorithm(const char* name, UpdateRuleId rule, const Options& options, Numbers numbers)
      : RowAlgorithm(name, rule), options_(options), numbers_(std::move(numbers)) {}

  NamedNumbers hyperparameters() override { return named(options_); }
  std::vector<double> numbers(const Hyperparameters& own, std::int64_t t) const override {
    Options options = options_;
    if (numbers_ && own.empty()) return numbers_(options, t);
    NamedNumbers all = named(options);
    for (const auto& [name, value] : own) number_of(*this, all, name) = value;
    if (numbers_) return numbers_(options, t);
    std::vector<double> values;
    for (const std::string& name : row_of(rule()).hyperparameters) {
      values.push_back(number_of(*this, all, name));
    }
    return values;
  }

 private:
  static NamedNumbers named(Options& options) {
    NamedNumbers all;
    options.fields([&](const char* name, double& value) { all.emplace_back(name, &value); });
    return all;
  }

  Options options_;
  Numbers numbers_;
};

}  // namespace rensa
