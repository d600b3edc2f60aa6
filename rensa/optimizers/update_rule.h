// UpdateRule: what an optimizer keeps for one parameter, and what that parameter has of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

class OptimizerState;
class OptimizerHook;

/// Hyperparameters by their names, as far as they differ from the optimizer's.
using Hyperparameters = std::vector<std::pair<std::string, double>>;

/// Belongs to one optimizer; state arrays are named by the optimizer ("m", "v") and made on the
/// parameter's device at the first update.
class UpdateRule {
 public:
  explicit UpdateRule(std::weak_ptr<OptimizerState> optimizer);

  /// The value of a hyperparameter for this parameter: its own, or the optimizer's. Throws
  /// ValueError for a name that the optimizer has not.
  double hyperparam(const std::string& name) const;
  /// Gives the parameter a value of its own, whatever the optimizer's becomes.
  void set_hyperparam(const std::string& name, double value);
  /// Whether it has a value of its own.
  bool has_own(const std::string& name) const;
  /// Back to the optimizer's.
  void reset_hyperparam(const std::string& name);

  /// Called for this parameter after the optimizer's hooks. Throws ValueError for a second one of
  /// a name.
  void add_hook(std::shared_ptr<OptimizerHook> hook);
  /// Throws ValueError where there is none of that name.
  void remove_hook(const std::string& name);
  /// In the order in which they are called.
  const std::vector<std::shared_ptr<OptimizerHook>>& hooks() const { return hooks_; }

  /// Updates a float16 or bfloat16 parameter in float32: of the parameter a float32 copy is kept,
  /// with the states, and its values are rounded to the parameter's.
  void use_fp32_update(bool on = true);
  bool uses_fp32_update() const { return fp32_update_; }

  /// Takes what the user has set of `source`: hooks, values of its own, whether it is updated in
  /// float32. For a replica's parameter.
  void follow(const UpdateRule& source);

  std::weak_ptr<OptimizerState> owner;  // the optimizer that it is set up with
  std::int64_t t = 0;                   // updates of this parameter so far
  std::vector<Array> states;            // in the order of the optimizer's state names
  Array fp32_param;                     // where it is updated in float32
  Array seen;                           // the parameter that fp32_param was taken from,
  std::uint32_t seen_version{};         // and how often its memory had been written to
  /// The parameter's own values, by name.
  const Hyperparameters& own_hyperparams() const { return own_; }

 private:
  std::shared_ptr<OptimizerState> optimizer(const char* what) const;
  Hyperparameters own_;
  std::vector<std::shared_ptr<OptimizerHook>> hooks_;
  bool fp32_update_ = false;
};

}  // namespace rensa
