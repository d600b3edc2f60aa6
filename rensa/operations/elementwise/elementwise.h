// Elementwise work, a kind over the table of core/ops.def.
#pragma once

#include "rensa/core/scalar.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// One input of an elementwise operation: an array, or a number.
struct ElementwiseInput {
  Operand array;  // absent: the number
  Scalar scalar;
};

/// out[i] = ufunc(in0[i], in1[i], in2[i]) in compute_type(compute), every input already broadcast
/// to out's shape (stride 0) and of any dtype; out of any dtype. ufunc::copy is astype, fill and
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
    v.write(out), v.number(ufunc.number(), compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
