// Chainer's softmax_cross_entropy and its gradient.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Chainer's softmax_cross_entropy over x (n, classes) and integer labels t (n,), both
/// C-contiguous:
///   shift[i] = (the greatest of x[i], log(sum(exp(x[i] - the greatest)))), (n, 2),
///   y = x - shift[i, 0] - shift[i, 1], which is the log softmax of x, by row,
///   loss = -sum(y[i, t[i]] over t[i] != ignore_label) / count,
///   count = the rows counted (at least 1) if `normalize`, else n
/// shift is C-contiguous and of the dtype that x's computes in, float32 or float64; loss and count
/// are 0-d, loss of x's dtype, count float32. A label outside
/// [0, classes) that is not `ignore_label` throws IndexError (on the GPU at the next wait).
struct SoftmaxCrossEntropy final : KindOf<SoftmaxCrossEntropy> {
  SoftmaxCrossEntropy() : KindOf("softmax_cross_entropy") {}
  bool normalize = true;
  long long ignore_label = -1;
  Operand x, t, shift, loss, count;

  template <class V> void fields(V& v) {
    v.read(x, t), v.write(shift, loss, count), v.number(normalize, ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// gx[i, j] = (exp(y[i, j]) - [j == t[i]]) * gy / count, 0 in ignored rows; gy is 0-d, gx of
/// x's dtype. Without `shift` and `count` the same are found from x and t (`normalize` is for
/// that), on a GPU where x is_few_short_rows.
struct SoftmaxCrossEntropyGrad final : KindOf<SoftmaxCrossEntropyGrad> {
  SoftmaxCrossEntropyGrad() : KindOf("softmax_cross_entropy_grad") {}
  bool normalize = true;
  long long ignore_label = -1;
  Operand x, shift, t, count, gy, gx;

  /// Whether a GPU finds shift and count again as soon as it reads them: without them the gradient
  /// need not wait for the loss, whose sum over all rows takes longer than what is done twice.
  static bool is_few_short_rows(const ArrayView& x) {
    constexpr std::int64_t kFew = 4096, kShort = 128;
    return x.shape[0] <= kFew && x.shape[1] <= kShort;
  }

  template <class V> void fields(V& v) {
    v.read(x, shift, t, count, gy), v.write(gx), v.number(normalize, ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
