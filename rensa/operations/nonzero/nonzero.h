// The positions where a mask is true.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Elements that CountTrue counts together.
inline constexpr std::int64_t kTrueTile = 4096;

/// offsets[t] = the number of non-zero elements of `in` before tile t, in C order, the last of
/// offsets being their number in all; offsets is int64, C-contiguous, of size / kTrueTile rounded
/// up, + 1.
struct CountTrue final : KindOf<CountTrue> {
  explicit CountTrue(const char* name = "nonzero") : KindOf(name) {}
  Operand in, offsets;

  template <class V> void fields(V& v) { v.read(in), v.write(offsets); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// out[n] = the coordinates of the n-th non-zero element of `in`; out is int64 of shape (number,
/// in.ndim), or (number, 1) for its position in C order. With `from` (of in's size, C-contiguous)
/// out is of its dtype, C-contiguous of shape (number,), and gets its elements at those positions.
struct FindTrue final : KindOf<FindTrue> {
  explicit FindTrue(const char* name = "nonzero") : KindOf(name) {}
  Operand in, offsets, from, out;  // offsets as CountTrue gives them; from may be absent

  template <class V> void fields(V& v) { v.read(in, offsets, from), v.write(out); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
