// Running sums and products. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Running sums (or products) of `in` (outer, n, inner) along its middle axis. in and out have one
/// dtype: int64, uint64, float32, float64, complex64 or complex128; on a GPU float16 and bfloat16
/// too, carried in float32. May run in place. Results are the same bits in each run.
struct Scan final : KindOf<Scan> {
  Scan(const char* name, bool multiply) : KindOf(name), product(multiply) {}
  bool product;
  Operand in, out;

  /// Whether there are so few rows of an `in` of this shape, and so long ones, that a GPU spreads
  /// each over all of it: not of 16 bits. A block takes a microsecond or two for some thousand
  /// elements, a scan of the device several for its launches.
  static bool has_long_rows(const Shape& shape) {
    return shape[2] == 1 && shape[1] > 16384 && shape[1] > 8192 * shape[0];
  }

  template <class V> void fields(V& v) { v.read(in), v.write(out), v.number(product); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
