// What normalizations are made of: mean and variance in one pass, what is normalized by them, and
// for backward two sums at once and the gradient that follows from them.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

// Statistics are float32, float64 for a float64 x: C-contiguous, one after the other.

/// The mean of x over the axes whose bit in `axes` is set, and 1 / sqrt(variance + eps): both of
/// x's shape with extent 1 there. Means and squares of blocks are joined (Chan, Golub and LeVeque),
/// so that no digits cancel. Running statistics, where there are some (any floating dtype,
/// C-contiguous, as many as means), become decay * running + (1 - decay) * found, the variance
/// times `adjust`.
struct Moments final : KindOf<Moments> {
  explicit Moments(const char* name) : KindOf(name) {}
  unsigned axes = 0;
  double eps = 0, decay = 0, adjust = 1;
  Operand x, mean, inv_std, running_mean, running_var;

  template <class V> void fields(V& v) {
    v.read(x), v.write(mean, inv_std, running_mean, running_var);
    v.number(axes, eps, decay, adjust);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// sum_gy = the sum of gy over the axes whose bit in `axes` is set, sum_gyx that of
/// gy * (x - mean) * inv_std; both of x's shape with extent 1 there. x and gy are of one shape, of
/// equal strides and dtype. The statistics are those of the output (number i has number i / group),
/// or with `by_row`, where one axis is reduced, those of the place on it (x and gy are C-contiguous
/// then). A mean that is absent is 0.
///
/// Two forms take relu's gradient on the way; what counts is rounded to x's dtype as if it had been
/// stored. With `relu` (not by_row, a group of 1), gy counts where what Normalize gives of x, mean,
/// inv_std, gamma and beta, numbers of an output each, is positive, and is 0 elsewhere. With y, gz
/// = where(y > 0, gy + addend, 0) is written and stands for gy; x, gy, addend (may be absent), y
/// and gz lie alike and fill their memory.
struct NormalizationSums final : KindOf<NormalizationSums> {
  explicit NormalizationSums(const char* name) : KindOf(name) {}
  unsigned axes = 0;
  bool by_row = false, relu = false;
  std::int64_t group = 1;
  Operand x, gy, mean, inv_std, gamma, beta, addend, y, sum_gy, sum_gyx, gz;

  template <class V> void fields(V& v) {
    v.read(x, gy, mean, inv_std, gamma, beta, addend, y), v.write(sum_gy, sum_gyx, gz);
    v.number(axes, by_row, relu, group);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// Of samples (n, channels, inner), C-contiguous or, with `channels_last`, (n, inner, channels) in
/// memory. Channel c has gamma[c] and beta[c] and the statistics number c, or, where `group` is not
/// 0, (n * channels + c) / group. Without gy:
///   out = (x - mean) * (inv_std * gamma) + beta
/// and where there is a residual, out = out + residual, the first of them rounded to its dtype as
/// if it had been stored; with `relu`, out = max(out, 0) at last (NaN stays NaN). With gy, the
/// gradient of that, by sums over the `count` elements that share statistics:
///   out = inv_std * gamma * (gy - ((x - mean) * inv_std * sum_gyx + sum_gy) / count)
/// where the sums are of channels, and where they are of groups, of gamma * gy,
///   out = inv_std * (gamma * gy - ((x - mean) * inv_std * sum_gyx + sum_gy) / count)
/// and with `relu` (of channels) gy counts only where the result without gy is positive.
/// The mean, gamma, beta and the sums may be absent: 0, 1, 0, 0 and 0. With `of_variance` there are
/// variances in place of inv_std. x, gy, residual and out lie alike and have one dtype; gamma and
/// beta have any floating one. The residual and out have no element in common.
struct Normalize final : KindOf<Normalize> {
  explicit Normalize(const char* name) : KindOf(name) {}
  bool channels_last = false, of_variance = false, relu = false;
  std::int64_t samples = 1, channels = 1, inner = 1, group = 0;
  double count = 1, eps = 0;  // eps: of variances
  Operand x, gy, mean, inv_std, gamma, beta, sum_gy, sum_gyx, residual, out;

  template <class V> void fields(V& v) {
    v.read(x, gy, mean, inv_std, gamma, beta, sum_gy, sum_gyx, residual), v.write(out);
    v.number(channels_last, of_variance, relu, samples, channels, inner, group, count, eps);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
