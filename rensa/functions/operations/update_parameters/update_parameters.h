// What optimizers do to all parameters of a model at once.
#pragma once

#include <vector>

#include "rensa/core/update_rules.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// One parameter of an UpdateParameters: all arrays C-contiguous and of one shape, the states of
/// the parameter's dtype.
struct UpdateTarget {
  Operand parameter, gradient;
  std::vector<Operand> states;  // as many as the rule has
  Operand narrow;   // may be absent: gets the parameter's new values in another floating dtype
  Operand numbers;  // may be absent: the rule's last hyperparameters, float64, one after the other
  int set = 0;      // which of UpdateParameters' sets of hyperparameters
};

/// Applies one rule of update_rules.def to all targets, on one device, in one launch (a few when
/// there are very many targets or sets).
struct UpdateParameters final : KindOf<UpdateParameters> {
  UpdateParameters(const char* name, UpdateRuleId r) : KindOf(name), rule(r) {}
  UpdateRuleId rule;
  std::vector<UpdateTarget> targets;
  /// The first hyperparameters of the rule, without those that a target's `numbers` are: set 0,
  /// then set 1 and so on.
  std::vector<HostScalar> hyperparameters;
  int set_size = 0;
  /// May be absent: one float64; where it is 0, nothing is changed.
  Operand enabled;

  template <class V> void fields(V& v) {
    UpdateChanges changes = row_of(rule).changes;
    v.read(enabled);
    for (UpdateTarget& target : targets) {
      v.read(target.numbers);
      if (changes == UpdateChanges::gradient) {
        v.read(target.parameter);
        for (Operand& state : target.states) v.read(state);
        v.write(target.gradient);
      } else {
        v.read(target.gradient);
        if (changes == UpdateChanges::result) v.write(target.parameter);
        else v.update(target.parameter);
        for (Operand& state : target.states) v.write(state);
        v.update(target.narrow);
      }
      v.number(target.set);
    }
    for (HostScalar& number : hyperparameters) v.scalar(number);
    v.number(rule, set_size);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out[k] = the sum of the squares of in[k], and out[n] that of all: n arrays of floating dtypes,
/// C-contiguous; out float64 (n + 1,). The order of the additions depends on the sizes alone.
struct SquaredSums final : KindOf<SquaredSums> {
  SquaredSums() : KindOf("squared_sums") {}
  std::vector<Operand> in;
  Operand out;

  template <class V> void fields(V& v) {
    for (Operand& operand : in) v.read(operand);
    v.write(out);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
