// Products of all elements of a row but one.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[r, i] = scale[r, 0] * the product of all in[r, j] but j = i: the gradient of a product. The
/// three are C-contiguous and of one real floating dtype, in and out (rows, n) with n <= kMost.
/// Results are the same bits in each run.
struct ProductGrad final : KindOf<ProductGrad> {
  static constexpr std::int64_t kMost = 4096;  // what a block of a GPU has in registers

  ProductGrad() : KindOf("prod_grad") {}
  Operand in, scale, out;

  template <class V> void fields(V& v) { v.read(in, scale), v.write(out); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
