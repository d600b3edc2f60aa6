// An array with a border of one number.
#pragma once

#include "rensa/core/scalar.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = in, `before` elements from its begin along each axis, and elsewhere `value`. One dtype;
/// out is C-contiguous, has an axis and shares no memory with in.
struct Pad final : KindOf<Pad> {
  explicit Pad(const char* name) : KindOf(name) {}
  std::int64_t before[kMaxNdim] = {};
  Scalar value;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(out), v.number(value);
    for (int axis = 0; axis < out.view.ndim(); ++axis) v.number(before[axis]);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// A Pad's axes, those without a border merged with the ones before them where `in` allows it.
struct PadPlan {
  struct Axis {
    std::int64_t out, in, before, stride;  // extents; of in, in bytes
  };
  const char* in;
  char* out;
  std::int64_t size;  // bytes of an element
  int ndim = 0;       // at least 1
  Axis axes[kMaxNdim];

  explicit PadPlan(const Pad& op);
  const Axis& last() const { return axes[ndim - 1]; }
  std::int64_t rows() const;  // of out, along its last axis
};

}  // namespace rensa::operations
