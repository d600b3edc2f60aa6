// Operations on sequences: sums of products at every shift, and interpolation.
#pragma once

#include "rensa/core/scalar.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[i] = sum over j of in[i + j - offset] * taps[j] for one-dimensional arrays of any dtype,
/// where `in` is 0 outside of its extent; computed in compute_type(compute), in the order of j.
struct Correlate final : KindOf<Correlate> {
  explicit Correlate(const char* name) : KindOf(name) {}
  Dtype compute = Dtype::float32;
  std::int64_t offset = 0;
  Operand in, taps, out;

  template <class V> void fields(V& v) {
    v.read(in, taps), v.write(out), v.number(compute, offset);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out[i] = the polygon through (points[k], values[k]) at x[i]; points rise. In front of the first
/// point the result is `before`, behind the last `after`, or the value there where they are not
/// given. x and points are float64, values and out float64 or complex128; all C-contiguous.
struct Interpolate final : KindOf<Interpolate> {
  Interpolate() : KindOf("interp") {}
  bool has_before = false, has_after = false;
  Scalar before, after;
  Operand x, points, values, out;

  template <class V> void fields(V& v) {
    v.read(x, points, values), v.write(out);
    v.number(has_before, has_after, before, after);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
