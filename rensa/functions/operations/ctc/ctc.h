// Connectionist temporal classification and its gradient.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// loss[b] = -log of the sum of the probabilities of all paths that spell sample b's labels: a path
/// has a class for each step, and spells what is left when its runs of one class are single and the
/// class `blank` is left out (Graves et al., "Connectionist temporal classification").
///   y (steps, n, classes): log softmax; float32 or float64, as loss, alpha, gy and gx
///   t (n, labels), steps_of (n,), labels_of (n,): int64; of sample b the first steps_of[b] steps
///     and the first labels_of[b] labels count
///   alpha (n, steps, 2 * labels + 1): the logarithms of the sums over the paths' beginnings, up to
///   a step and a place among the labels with blanks around them
/// All are C-contiguous. A sample whose steps are too few has an infinite loss and NaN for a
/// gradient. A label outside [0, classes) throws IndexError, a length outside [0, steps] or
/// [0, labels] ValueError (on the GPU at the next wait).
struct Ctc final : KindOf<Ctc> {
  Ctc() : KindOf("connectionist_temporal_classification") {}
  long long blank = 0;
  Operand y, t, steps_of, labels_of, alpha, loss;

  template <class V> void fields(V& v) {
    v.read(y, t, steps_of, labels_of), v.write(alpha, loss), v.number(blank);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// gx[i, b, k] = (exp(y[i, b, k]) - the share of the paths of class k at step i) * gy[b], 0 beyond
/// the sample's steps: the gradient of what y is the log softmax of. A GPU takes scratch of alpha's
/// size for the share of each place.
struct CtcGrad final : KindOf<CtcGrad> {
  CtcGrad() : KindOf("connectionist_temporal_classification_grad") {}
  long long blank = 0;
  Operand y, t, steps_of, labels_of, alpha, loss, gy, gx;

  template <class V> void fields(V& v) {
    v.read(y, t, steps_of, labels_of, alpha, loss, gy), v.write(gx), v.number(blank);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
