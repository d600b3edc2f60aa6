// Elementwise work and the updates of parameters, kinds over the tables of core/ops.def and
// core/update_rules.def.
#pragma once

#include <vector>

#include "rensa/core/scalar.h"
#include "rensa/core/ufunc.h"
#include "rensa/core/update_rules.h"
#include "rensa/device/kind.h"

namespace rensa {

/// One input of an elementwise operation: an array, or a number.
struct ElementwiseInput {
  Operand array;  // absent: the number
  Scalar scalar;
};

/// out[i] = ufunc(in0[i], in1[i], in2[i]) in compute_type(compute), every input already broadcast
/// to out's shape (stride 0) and of any dtype; out of any dtype. Ufunc::copy is astype, fill and
/// the strided copy. in and out may be the same elements, not partly overlapping ones.
struct Elementwise final : KindOf<Elementwise> {
  Elementwise(const char* name, Ufunc f) : KindOf(name), ufunc(f) {}
  Ufunc ufunc;
  Dtype compute = Dtype::float32;
  int num_inputs = 0;
  ElementwiseInput in[3];
  Operand out;

  template <class V> void fields(V& v) {
    for (int i = 0; i < num_inputs; ++i) v.read(in[i].array), v.number(in[i].scalar);
    v.write(out), v.number(ufunc, compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// One parameter of an UpdateParameters: all C-contiguous and of one shape; the states have the
/// parameter's dtype.
struct UpdateTarget {
  Operand parameter, gradient, states[kMaxStates];
};
/// Applies one rule of update_rules.def to all targets, on one device, in one launch (a few when
/// there are very many).
struct UpdateParameters final : KindOf<UpdateParameters> {
  UpdateParameters(const char* name, UpdateRuleId r) : KindOf(name), rule(r) {}
  UpdateRuleId rule;
  int num_states = 0;
  std::vector<UpdateTarget> targets;
  HostScalar hyperparameters[kMaxHyperparameters];
  int num_hyperparameters = 0;

  template <class V> void fields(V& v) {
    for (UpdateTarget& target : targets) {
      v.read(target.gradient), v.update(target.parameter);
      for (int i = 0; i < num_states; ++i) v.write(target.states[i]);
    }
    for (int i = 0; i < num_hyperparameters; ++i) v.scalar(hyperparameters[i]);
    v.number(rule);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa
