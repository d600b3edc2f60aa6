// Functions that draw random numbers: forward and backward.
#include "rensa/functions/noise.h"

#include <fmt/format.h>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/operations/dropout/dropout.h"

namespace rensa::functions {

namespace {

/// Keeps what the mask at one place of the generator's sequence keeps. Linear, so its gradient is
/// itself.
struct DropoutNode {
  static constexpr const char* name = "dropout";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, double ratio, const xp::random::GeneratorPosition& mask) {
    Array in = x.ascontiguous(), out = xp::empty(x.shape(), x.dtype(), x.device());
    if (in.size() == 0) return out;
    operations::Dropout op;
    op.ratio = ratio;
    op.seed = mask.seed;
    op.offset = mask.offset;
    op.in = in.operand();
    op.out = out.operand();
    launch(op);
    return out;
  }
  static Variable backward(const Variable&, const Variable& gy, double ratio,
                           const xp::random::GeneratorPosition& mask) {
    return unary<DropoutNode>(gy, ratio, mask);
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
                            xp::random::take(x.device(), (x.size() + kWords - 1) / kWords));
}

}  // namespace rensa::functions
