// Functions that draw random numbers: forward and backward.
#include "rensa/functions/noise.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/array/random.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/differentiable.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/dropout/dropout.h"

namespace rensa::functions {

namespace rows {
extern const Differentiable gaussian_noise;
}

namespace {

using rensa::detail::MemoryOrder;

/// Keeps what the mask at one place of the generator's sequence keeps. Linear, so its gradient is
/// itself.
struct DropoutNode {
  static constexpr const char* name = "dropout";
  static constexpr Keep keep = Keep::nothing;
  // The mask is of the elements as they lie in x's memory, in which `order` has the axes.
  static Array forward(const Array& x, double ratio, const xp::random::GeneratorPosition& mask,
                       const MemoryOrder& order) {
    Array in = order.permuted(x).ascontiguous();
    Array out = xp::empty(in.shape(), x.dtype(), x.device());
    if (in.size() > 0) {
      operations::Dropout op;
      op.ratio = ratio;
      op.seed = mask.seed;
      op.offset = mask.offset;
      op.in = in.operand();
      op.out = out.operand();
      launch(op);
    }
    return order.restored(out);
  }
  static Variable backward(const Variable&, const Variable& gy, double ratio,
                           const xp::random::GeneratorPosition& mask, const MemoryOrder& order) {
    return unary<DropoutNode>(gy, ratio, mask, order);
  }
};

}  // namespace

Variable dropout(const Variable& x, double ratio) {
  if (!(ratio >= 0 && ratio < 1)) {
    throw ValueError(fmt::format("dropout: ratio {} is not in [0, 1)", ratio));
  }
  if (dtype_kind(x.dtype()) != 'f') {
    throw DtypeError(fmt::format("dropout: x {} is not floating", x.array().view().describe()));
  }
  if (!config().train || ratio == 0) return x;
  constexpr int kWords = 4;  // of one Philox counter; an element takes one word
  return unary<DropoutNode>(x, ratio,
                            xp::random::take(x.device(), (x.size() + kWords - 1) / kWords),
                            MemoryOrder(x.array(), 'K'));
}

Variable gaussian(const Variable& mean, const Variable& ln_var, const GaussianOptions& options) {
  check_one_shape("gaussian", "mean", mean, "ln_var", ln_var);
  if (options.eps) check_one_shape("gaussian", "mean", mean, "eps", constant(*options.eps));
  Array eps =
      options.eps ? *options.eps : xp::random::normal(0, 1, mean.shape(), float32, mean.device());
  eps = eps.astype(mean.dtype(), false);
  if (options.return_eps) *options.return_eps = eps;
  return mean + differentiable(rows::gaussian_noise, {ln_var, constant(eps)})[0];
}

Variable gumbel_softmax(const Variable& log_pi, double tau, int axis) {
  if (!(tau > 0)) throw ValueError(fmt::format("gumbel_softmax: a tau of {}", tau));
  Array g = xp::random::gumbel(0, 1, log_pi.shape(), float32, log_pi.device());
  return softmax((log_pi + constant_like(log_pi, g)) / tau, axis);
}

Variable zoneout(const Variable& h, const Variable& x, double ratio) {
  check_one_shape("zoneout", "h", h, "x", x);
  if (!(ratio >= 0 && ratio <= 1)) {
    throw ValueError(fmt::format("zoneout: ratio {} is not in [0, 1]", ratio));
  }
  if (!config().train) return x;
  return where(xp::random::uniform(0, 1, x.shape(), float32, x.device()) < ratio, h, x);
}

Variable simplified_dropconnect(const Variable& x, const Variable& W, const Variable& b,
                                const SimplifiedDropconnectOptions& options) {
  constexpr const char* name = "simplified_dropconnect";
  double ratio = options.train ? options.ratio : 0;
  if (!(ratio >= 0 && ratio < 1)) {
    throw ValueError(fmt::format("{}: ratio {} is not in [0, 1)", name, ratio));
  }
  std::int64_t n = x.ndim() == 0 ? 0 : x.shape(0);
  if (x.ndim() < 2 || W.ndim() != 2 || x.size() != n * W.shape(1)) {
    throw ShapeError(fmt::format("{}: x {} and W {}: W must be (M, N) and x n samples of N", name,
                                 x.array().view().describe(), W.array().view().describe()));
  }
  Shape each{n, W.shape(0), W.shape(1)};
  Shape shape = options.use_batchwise_mask ? each : W.shape();
  Array mask;
  if (options.mask) {
    mask = *options.mask;
    if (mask.shape() != each && mask.shape() != W.shape()) {
      throw ShapeError(fmt::format("{}: mask {} must be {} or {}", name, mask.view().describe(),
                                   each.str(), W.shape().str()));
    }
  } else {
    mask = xp::random::uniform(0, 1, shape, float32, x.device()) >= ratio;
  }
  Variable kept = W * constant_like(W, mask) * (1 / (1 - ratio));
  if (mask.ndim() == 2) return linear(x, kept, b);
  Variable y = matmul(kept, reshape(x, {n, W.shape(1), 1}));
  y = reshape(y, {n, W.shape(0)});
  return b.defined() ? y + b : y;
}

}  // namespace rensa::functions
