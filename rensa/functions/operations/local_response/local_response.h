// Local response normalization.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Of x, (outer, channels, inner), C-contiguous: with s = k + alpha * the sum of x * x over the
/// channels within `half` of each, as far as there are any,
///   out = x * s^-beta
/// and with gy, the gradient of that, the sum again over the channels within `half`,
///   out = gy * s^-beta - 2 * alpha * beta * x * sum(gy * x * s^-beta / s)
/// where half is at most kMostHalf (without gy it is any). All are of one floating dtype; those of
/// 16 bits are computed in float32 and rounded at the end.
struct LocalResponse final : KindOf<LocalResponse> {
  static constexpr std::int64_t kMostHalf = 32;

  LocalResponse() : KindOf("local_response_normalization") {}
  std::int64_t outer = 1, channels = 1, inner = 1, half = 0;
  double k = 1, alpha = 0, beta = 0;
  Operand x, gy, out;

  template <class V> void fields(V& v) {
    v.read(x, gy), v.write(out), v.number(outer, channels, inner, half, k, alpha, beta);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
