// Attention: what it is given as four axes, and its node.
#include "rensa/functions/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/attention_internal.h"
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/attention_dropout.h"

namespace rensa::functions {

namespace {

constexpr const char* kName = "scaled_dot_product_attention";
constexpr std::int64_t kMostWidth = 256;  // of a head, by the operations of a GPU

// --- what is given ---

/// All axes but the last three, and the last but two; 1 where there is none.
std::int64_t heads(const Variable& x) { return x.ndim() > 2 ? x.shape(-3) : 1; }
int leading(const Variable& x) { return std::max(0, x.ndim() - 3); }

std::string described(const Variable& q, const Variable& k, const Variable& v) {
  return fmt::format("{}: query {}, key {}, value {}", kName, q.array().view().describe(),
                     k.array().view().describe(), v.array().view().describe());
}

void check(const Variable& q, const Variable& k, const Variable& v,
           const AttentionOptions& options) {
  bool fits = q.ndim() > 1 && k.ndim() > 1 && v.ndim() > 1 && q.shape(-1) == k.shape(-1) &&
              k.shape(-2) == v.shape(-2);
  if (!fits) {
    throw ShapeError(described(q, k, v) +
                     ": they must be (..., L, E), (..., S, E) and (..., S, V)");
  }
  if (dtype_kind(q.dtype()) != 'f' || k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    throw DtypeError(described(q, k, v) + ": all must be of one floating dtype");
  }
  if (!(options.dropout_ratio >= 0 && options.dropout_ratio < 1)) {
    throw ValueError(
        fmt::format("{}: dropout_ratio {} is not in [0, 1)", kName, options.dropout_ratio));
  }
  auto check_kind = [](const char* what, const Array& a, std::string_view kinds, const char* must) {
    if (kinds.find(dtype_kind(a.dtype())) != std::string_view::npos) return;
    throw DtypeError(fmt::format("{}: {} {} is not {}", kName, what, a.view().describe(), must));
  };
  if (options.mask) check_kind("mask", *options.mask, "bf", "of bool or floating");
  if (options.bias.defined()) check_kind("bias", options.bias.array(), "f", "floating");
  if (options.key_lengths) check_kind("key_lengths", *options.key_lengths, "iu", "of integers");
  if (options.alibi_slopes) check_kind("alibi_slopes", *options.alibi_slopes, "f", "floating");
}

/// The extents of the axes in front of the last two that all three broadcast to.
Shape broadcast_front(const Variable& q, const Variable& k, const Variable& v) {
  auto refuse = [&](const char* why) { throw ShapeError(described(q, k, v) + why); };
  Shape front = Shape::filled(std::max({leading(q), leading(k), leading(v)}), 1);
  for (const Variable* x : {&q, &k, &v}) {
    for (int axis = 0; axis < leading(*x); ++axis) {
      std::int64_t n = x->shape(axis);
      std::int64_t& extent = front[axis - leading(*x)];
      if (n != 1 && extent != 1 && n != extent) refuse(": the axes in front do not broadcast");
      if (n != 1) extent = n;
    }
  }
  std::int64_t groups = heads(k) == 1 ? heads(v) : heads(k),
               all = heads(q) == 1 ? groups : heads(q);
  if ((heads(v) != 1 && heads(v) != groups) || groups == 0 || all % groups != 0) {
    refuse(": key and value must have one number of heads, which divides the query's");
  }
  bool none = std::max({q.ndim(), k.ndim(), v.ndim()}) < 3;
  if (!none) front.push_back(all);
  return front;
}

/// x (..., heads, n, k) as (batch, heads, n, k).
Variable with_four_axes(const Variable& x, const Shape& front, std::int64_t of_heads) {
  Shape whole = front;
  if (whole.ndim() > 0) whole[-1] = of_heads;
  whole.push_back(x.shape(-2)), whole.push_back(x.shape(-1));
  if (whole.ndim() == 4 && x.shape() == whole) return x;
  std::int64_t batch = 1;
  for (int axis = 0; axis + 1 < front.ndim(); ++axis) batch *= front[axis];
  return reshape(x.shape() == whole ? x : broadcast_to(x, whole),
                 {batch, of_heads, x.shape(-2), x.shape(-1)});
}

/// Throws unless what is added or masks broadcasts to the scores, which it does not make larger.
void check_broadcast(const char* what, const Array& mask, const Shape& scores) {
  bool fits = mask.ndim() <= scores.size();
  for (int axis = -1; fits && axis >= -mask.ndim(); --axis) {
    fits = mask.shape(axis) == 1 || mask.shape(axis) == scores[axis];
  }
  if (fits) return;
  throw ShapeError(fmt::format("{}: {} {} does not broadcast to the scores {}", kName, what,
                               mask.view().describe(), scores.str()));
}

/// The options for scores of this shape, (..., L, S) outside and (batch, heads, L, S) inside.
AttentionSettings settings_of(const AttentionOptions& options, Dtype dtype, const Shape& outside,
                              const Shape& inside) {
  AttentionSettings settings;
  Dtype sums = attention_sums(dtype);
  settings.causal = options.causal;
  if (options.mask) {
    check_broadcast("mask", *options.mask, outside);
    Array mask = *options.mask;
    if (mask.dtype() != bool_ && mask.dtype() != dtype) mask = mask.astype(sums, false);
    settings.mask = mask.broadcast_to(outside).reshape(inside);
  }
  if (options.key_lengths) {
    const Array& lengths = *options.key_lengths;
    if (outside.ndim() < 3 || lengths.shape() != Shape({outside[0]})) {
      throw ShapeError(
          fmt::format("{}: key_lengths {} must be one for each of the first axis of {}", kName,
                      lengths.view().describe(), outside.str()));
    }
    Shape apart = Shape::filled(outside.ndim() - 2, 1), front(outside);
    apart[0] = outside[0];
    front.erase(front.ndim() - 1), front.erase(front.ndim() - 1);
    settings.lengths = lengths.astype(int64, false)
                           .reshape(apart)
                           .broadcast_to(front)
                           .reshape({inside[0], inside[1]});
    settings.lengths = settings.lengths.ascontiguous();
  }
  if (options.alibi_slopes) {
    const Array& slopes = *options.alibi_slopes;
    if (slopes.shape() != Shape({inside[1]})) {
      throw ShapeError(fmt::format("{}: alibi_slopes {} must be one for each of {} heads", kName,
                                   slopes.view().describe(), inside[1]));
    }
    settings.slopes = slopes.astype(sums, false).ascontiguous();
  }
  return settings;
}

// --- the node ---

/// x, its last axis next to each other.
Array with_rows(const Array& x) {
  return x.shape(-1) == 1 || x.strides()[-1] == itemsize(x.dtype()) ? x : x.ascontiguous();
}

/// A new array (batch, heads, n, width), heads inside of rows where those of `like` are: what swaps
/// them back then copies nothing.
Array empty_rows(const Array& like, std::int64_t width) {
  Shape shape = like.shape();
  shape[3] = width;
  if (like.strides()[1] >= like.strides()[2]) return xp::empty(shape, like.dtype(), like.device());
  std::swap(shape[1], shape[2]);
  return xp::empty(shape, like.dtype(), like.device()).swapaxes(1, 2);
}

/// New arrays for the gradients of `kept`. Where these lie side by side in one memory, as what one
/// product has projected does, so do the gradients: what joins them copies nothing.
Arrays empty_gradients(const Variables& kept, const Indexes& targets) {
  Arrays gradients(kept.size()), apart;
  for (const Variable& x : kept) apart.push_back(x.array().expand_dims(0));
  std::optional<Array> whole = rensa::detail::joined_in_place(apart, 0);
  if (whole && targets.size() == kept.size() && rensa::detail::is_dense(*whole)) {
    rensa::detail::MemoryOrder order(*whole, 'K');
    Array room =
        order.restored(xp::empty(order.permuted(whole->shape()), whole->dtype(), whole->device()));
    for (std::size_t i = 0; i < kept.size(); ++i) gradients[i] = room[static_cast<std::int64_t>(i)];
    return gradients;
  }
  for (int i : targets) {
    const Array& x = kept[static_cast<std::size_t>(i)].array();
    gradients[static_cast<std::size_t>(i)] = empty_rows(x, x.shape(3));
  }
  return gradients;
}

class AttentionNode final : public FunctionNode {
 public:
  explicit AttentionNode(AttentionSettings settings)
      : FunctionNode(kName),
        settings_(std::move(settings)),
        mask_(settings_.mask),
        lengths_(settings_.lengths),
        slopes_(settings_.slopes) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1, 2});
    retain_outputs({0});
    Array q = with_rows(inputs[0]), k = with_rows(inputs[1]), v = with_rows(inputs[2]);
    Array y = empty_rows(inputs[0], v.shape(3));
    lse_ = xp::empty({q.shape(0), q.shape(1), q.shape(2)}, attention_sums(q.dtype()), q.device());
    operations::Attention op;
    op.given = given(q, k, v);
    op.out = y.operand();
    op.lse = lse_.operand();
    (void)op.workspace_bytes();  // chooses the plan, which what records the operation copies
    launch(op);
    return {y};
  }

  /// Scores and their products with the values, of all keys: what a mask leaves out is counted.
  std::int64_t multiply_adds(const Arrays& inputs, const Arrays& outputs) const override {
    const Array &q = inputs[0], &v = inputs[2], &y = outputs[0];
    std::int64_t scores = y.shape(0) * y.shape(1) * y.shape(2) * v.shape(2);
    return scores * (q.shape(3) + v.shape(3));
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs();
    Array y = get_retained_outputs()[0].array();
    // An array that was changed since is not what forward saw.
    settings_.mask = mask_.get(kName, "mask");
    settings_.lengths = lengths_.get(kName, "key_lengths");
    settings_.slopes = slopes_.get(kName, "alibi_slopes");
    Variables all(3);
    if (config().enable_backprop) {
      all = composed_attention_gradient(kept[0], kept[1], kept[2], gy[0], settings_);
    } else {
      Array q = with_rows(kept[0].array()), k = with_rows(kept[1].array()),
            v = with_rows(kept[2].array()), gout = with_rows(gy[0].array());
      operations::AttentionGrad op;
      op.given = given(q, k, v);
      op.out = y.operand();
      op.lse = lse_.operand();
      op.gout = gout.operand();
      Operand* gradients[] = {&op.gquery, &op.gkey, &op.gvalue};
      Arrays made = empty_gradients(kept, targets);
      for (int i : targets) {
        auto at = static_cast<std::size_t>(i);
        *gradients[at] = made[at].operand();
        all[at] = constant(made[at]);
      }
      (void)op.workspace_bytes();  // as in forward
      launch(op);
    }
    Variables chosen;
    for (int i : targets) chosen.push_back(all[static_cast<std::size_t>(i)]);
    return chosen;
  }

  /// None where dropout is at work.
  std::optional<FunctionAttributes> attributes() const override {
    if (settings_.dropout_ratio > 0) return std::nullopt;
    FunctionAttributes all{.integers = {{"causal", settings_.causal}},
                           .numbers = {{"scale", settings_.scale}}};
    if (settings_.mask.defined()) all.arrays["mask"] = settings_.mask;
    if (settings_.lengths.defined()) all.arrays["key_lengths"] = settings_.lengths;
    if (settings_.slopes.defined()) all.arrays["alibi_slopes"] = settings_.slopes;
    return all;
  }

 private:
  operations::AttentionGiven given(const Array& q, const Array& k, const Array& v) const {
    operations::AttentionGiven given;
    given.query = q.operand();
    given.key = k.operand();
    given.value = v.operand();
    if (settings_.mask.defined()) given.mask = settings_.mask.operand();
    if (settings_.lengths.defined()) given.lengths = settings_.lengths.operand();
    if (settings_.slopes.defined()) given.slopes = settings_.slopes.operand();
    given.scale = settings_.scale;
    given.dropout_ratio = settings_.dropout_ratio;
    given.causal = settings_.causal;
    given.tf32 = config().tf32;
    given.use_cudnn = config().use_cudnn;
    given.deterministic = config().cudnn_deterministic;
    given.seed = settings_.dropout.seed;
    given.offset = settings_.dropout.offset;
    return given;
  }

  AttentionSettings settings_;
  KeptArray mask_, lengths_, slopes_;
  Array lse_;
};

}  // namespace

Variable scaled_dot_product_attention(const Variable& q_given, const Variable& k_given,
                                      const Variable& v_given, const AttentionOptions& options) {
  Variables inputs = autograd::autocast(kName, {q_given, k_given, v_given});
  const Variable &query = inputs[0], &key = inputs[1], &value = inputs[2];
  Autocast off(none);  // what it is composed of has float32 sums of its own
  check(query, key, value, options);
  Shape front = broadcast_front(query, key, value);
  std::int64_t groups = heads(key) == 1 ? heads(value) : heads(key);
  std::int64_t all = front.ndim() > 0 ? front[-1] : 1;
  Variable q = with_four_axes(query, front, all), k = with_four_axes(key, front, groups),
           v = with_four_axes(value, front, groups);
  Shape inside{q.shape(0), all, q.shape(2), k.shape(2)}, outside = front;
  outside.push_back(inside[2]), outside.push_back(inside[3]);
  AttentionSettings settings = settings_of(options, q.dtype(), outside, inside);
  settings.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.shape(3))));
  if (config().train && options.dropout_ratio > 0) {
    settings.dropout_ratio = options.dropout_ratio;
    std::int64_t counters =
        AttentionDropoutWords::counters(inside[2]) * AttentionDropoutWords::counters(inside[3]);
    settings.dropout = xp::random::take(q.device(), inside[0] * inside[1] * counters);
  }
  Variable bias = options.bias;
  if (bias.defined()) {
    check_broadcast("bias", bias.array(), outside);
    bias = reshape(broadcast_to(bias, outside), inside);
  }
  bool wide = q.device().is_cuda() && std::max(q.shape(3), v.shape(3)) > kMostWidth;
  bool nothing = q.size() == 0 || k.size() == 0 || v.size() == 0;
  Variable y = bias.defined() || wide || nothing ? composed_attention(q, k, v, bias, settings)
                                                 : apply<AttentionNode>({q, k, v}, settings)[0];
  Shape shape = front;
  shape.push_back(y.shape(2)), shape.push_back(y.shape(3));
  return y.shape() == shape ? y : reshape(y, shape);
}

}  // namespace rensa::functions
