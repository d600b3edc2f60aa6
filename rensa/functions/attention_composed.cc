// Attention composed of products and softmax: for what is to be differentiated again.
#include <limits>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/attention_internal.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

/// As good as minus infinity, and finite once the greatest score is taken away.
constexpr double kLeastScore = -1e30;

/// Queries, keys and values in the dtype of their sums, heads as (groups, heads of each).
class Composed {
 public:
  Composed(const Variable& query, const Variable& key, const Variable& value,
           const AttentionSettings& settings)
      : settings_(settings),
        dtype_(query.dtype()),
        sums_(attention_sums(query.dtype())),
        scores_{query.shape(0), query.shape(1), query.shape(2), key.shape(2)},
        groups_(key.shape(1)),
        q_(apart(query)),
        k_(apart(key)),
        v_(apart(value)) {}

  Variable forward(const Variable& bias) {
    return cast(together(matmul(apart(dropped(weights(bias))), v_)), dtype_);
  }

  Variables gradient(const Variable& gy_given) {
    Variable p = weights({}), gy = apart(gy_given);
    Variable gp = dropped(together(matmul(gy, v_, false, true)));
    Variable gs = apart(p * (gp - sum(gp * p, -1, true))) * settings_.scale;
    auto of_keys = [&](const Variable& g) {
      return cast(reshape(sum(g, 2), {g.shape(0), g.shape(1), g.shape(3), g.shape(4)}), dtype_);
    };
    return {cast(together(matmul(gs, k_)), dtype_), of_keys(matmul(gs, q_, true)),
            of_keys(matmul(apart(dropped(p)), gy, true))};
  }

 private:
  /// (batch, heads, n, k) as (batch, groups, heads of each, n, k) in the sums' dtype.
  Variable apart(const Variable& x) const {
    return reshape(cast(x, sums_),
                   {x.shape(0), groups_, x.shape(1) / groups_, x.shape(2), x.shape(3)});
  }
  /// The reverse, of a query's rows; the dtype stays.
  Variable together(const Variable& x) const {
    return reshape(x, {scores_[0], scores_[1], scores_[2], x.shape(-1)});
  }

  /// (batch, heads, L, S)
  Variable weights(const Variable& bias) {
    Variable scores = together(matmul(q_ * settings_.scale, k_, false, true));
    Array without, added;
    find_masks(&without, &added);
    if (added.defined()) scores = scores + constant(added);
    if (bias.defined()) scores = scores + cast(bias, sums_);
    if (!without.defined()) return softmax(scores, -1);
    scores = masked_fill(scores, without, kLeastScore);
    // Of no key at all softmax would make equal weights.
    return masked_fill(softmax(scores, -1), without, 0);
  }

  /// Keys that take no part, and what is added to scores; undefined where there is none.
  void find_masks(Array* without, Array* added) const {
    Device device = q_.device();
    auto leave = [&](const Array& out) {
      *without = without->defined() ? xp::logical_or(*without, out) : out;
    };
    auto put = [&](const Array& bias) { *added = added->defined() ? *added + bias : bias; };
    if (settings_.causal) {
      leave(xp::logical_not(xp::tri(scores_[2], scores_[3], 0, bool_, device)));
    }
    Array keys = xp::arange(scores_[3], int64, device);
    if (settings_.lengths.defined()) {
      leave(xp::greater_equal(keys, settings_.lengths.reshape({scores_[0], scores_[1], 1, 1})));
    }
    if (settings_.slopes.defined()) {
      Array queries = xp::arange(scores_[2], int64, device).reshape({-1, 1});
      put(-xp::absolute(queries - keys).astype(sums_) * settings_.slopes.reshape({-1, 1, 1}));
    }
    if (!settings_.mask.defined()) return;
    if (settings_.mask.dtype() == bool_) return leave(xp::logical_not(settings_.mask));
    Array mask = settings_.mask.astype(sums_, false),
          none = mask == -std::numeric_limits<double>::infinity();
    leave(none);
    put(xp::where(none, 0, mask));
  }

  /// What dropout leaves of weights, or of their gradients.
  Variable dropped(const Variable& weights) {
    if (settings_.dropout_ratio == 0) return weights;
    if (!kept_.defined()) {
      kept_ = xp::empty(scores_, sums_, q_.device());
      operations::AttentionDropout op;
      op.ratio = settings_.dropout_ratio;
      op.seed = settings_.dropout.seed;
      op.offset = settings_.dropout.offset;
      op.out = kept_.operand();
      if (kept_.size() > 0) launch(op);
    }
    return weights * constant(kept_);
  }

  const AttentionSettings& settings_;
  Dtype dtype_, sums_;
  Shape scores_;
  std::int64_t groups_;
  Variable q_, k_, v_;
  Array kept_;  // 1 / (1 - ratio) or 0
};

}  // namespace

Dtype attention_sums(Dtype x) { return x == float64 ? float64 : float32; }

Variable composed_attention(const Variable& query, const Variable& key, const Variable& value,
                            const Variable& bias, const AttentionSettings& settings) {
  return Composed(query, key, value, settings).forward(bias);
}

Variables composed_attention_gradient(const Variable& query, const Variable& key,
                                      const Variable& value, const Variable& gy,
                                      const AttentionSettings& settings) {
  return Composed(query, key, value, settings).gradient(gy);
}

}  // namespace rensa::functions
