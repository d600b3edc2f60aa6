// Layer and RMS normalization of rows, one pass each way.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// y = (x - mean) * inv_std * gamma + beta by row, inv_std = 1 / sqrt(variance + eps), both stored.
/// x and y are (rows, columns), C-contiguous and of one floating dtype, gamma and beta (columns,)
/// of any floating one; mean and inv_std (rows,) float32, or float64 for a float64 x. Without an
/// operand for the mean it is 0, and the variance the mean of squares; gamma and beta may be
/// absent: 1 and 0. With an addend, what is normalized is sum = x + addend, rounded and written;
/// all three are as x and lie apart.
struct RowNormalization final : KindOf<RowNormalization> {
  explicit RowNormalization(const char* name) : KindOf(name) {}
  double eps = 0;
  Operand x, addend, gamma, beta, sum, y, mean, inv_std;

  template <class V> void fields(V& v) {
    v.read(x, addend, gamma, beta), v.write(sum, y, mean, inv_std), v.number(eps);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// The gradient of x: with g = gamma * gy and x_hat = (x - mean) * inv_std,
///   gx = inv_std * (g - (sum(g) + x_hat * sum(g * x_hat)) / columns)
/// by row; without a mean the sum of g counts for nothing. x, gy and gx are of one dtype. With an
/// addend, as x too, it is added to what gx, rounded, would be.
struct RowNormalizationGrad final : KindOf<RowNormalizationGrad> {
  explicit RowNormalizationGrad(const char* name) : KindOf(name) {}
  Operand x, gy, mean, inv_std, gamma, addend, gx;

  template <class V> void fields(V& v) { v.read(x, gy, mean, inv_std, gamma, addend), v.write(gx); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
