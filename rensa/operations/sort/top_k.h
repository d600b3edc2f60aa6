// The first of sorted rows.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// The first k places of what Sort gives as `order`, for rows `in` (rows, n) of float16, bfloat16
/// or float32, C-contiguous, with n up to kMostColumns and k, the extent of `order` (rows, k,
/// int64), up to kMost: without sorting the rest.
struct TopK final : KindOf<TopK> {
  static constexpr std::int64_t kMost = 32, kMostColumns = 2048;
  using KindOf::KindOf;
  bool descending = false;
  Operand in, order;

  template <class V> void fields(V& v) { v.read(in), v.write(order), v.number(descending); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
