// Attention, composed of products and softmax.
#include "rensa/functions/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/noise.h"

namespace rensa::functions {

namespace {

constexpr const char* kName = "scaled_dot_product_attention";
/// As good as minus infinity, and finite in each dtype once the greatest score is taken away.
double least_score(Dtype dtype) { return dtype == float16 ? -65504 : -1e30; }

std::int64_t heads(const Variable& x) { return x.ndim() > 2 ? x.shape(-3) : 1; }

void check(const Variable& q, const Variable& k, const Variable& v,
           const AttentionOptions& options) {
  std::string text =
      fmt::format("{}: query {}, key {}, value {}", kName, q.array().view().describe(),
                  k.array().view().describe(), v.array().view().describe());
  bool fits = q.ndim() > 1 && k.ndim() > 1 && v.ndim() > 1 && q.shape(-1) == k.shape(-1) &&
              k.shape(-2) == v.shape(-2);
  if (!fits) {
    throw ShapeError(text + ": they must be (..., L, E), (..., S, E) and (..., S, V)");
  }
  if (dtype_kind(q.dtype()) != 'f' || k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    throw DtypeError(text + ": all must be of one floating dtype");
  }
  if (options.causal && options.mask) {
    throw ValueError(fmt::format("{}: causal with a mask; put the one into the other", kName));
  }
  if (!options.mask) return;
  const Array& mask = *options.mask;
  char kind = dtype_kind(mask.dtype());
  if (kind != 'b' && kind != 'f') {
    throw DtypeError(
        fmt::format("{}: mask {} is neither of bool nor floating", kName, mask.view().describe()));
  }
}

/// Throws unless the mask broadcasts to the scores, which it does not make larger.
void check_broadcast(const Array& mask, const Shape& scores) {
  bool fits = mask.ndim() <= scores.size();
  for (int axis = -1; fits && axis >= -mask.ndim(); --axis) {
    fits = mask.shape(axis) == 1 || mask.shape(axis) == scores[axis];
  }
  if (fits) return;
  throw ShapeError(fmt::format("{}: mask {} does not broadcast to the scores {}", kName,
                               mask.view().describe(), scores.str()));
}

/// (..., heads, L, E) with the heads as (key's heads, heads of each).
Variable grouped(const Variable& x, std::int64_t of, std::int64_t each) {
  Shape shape = x.shape();
  int axis = x.ndim() - 3;
  shape[axis] = of;
  shape.insert(axis + 1, each);
  return reshape(x, shape);
}

}  // namespace

Variable scaled_dot_product_attention(const Variable& query, const Variable& key,
                                      const Variable& value, const AttentionOptions& options) {
  check(query, key, value, options);
  std::int64_t of = heads(key), each = of > 1 && heads(query) % of == 0 ? heads(query) / of : 1;
  if (each > 1) {
    AttentionOptions apart = options;
    if (options.mask && options.mask->ndim() > 2) {
      if (options.mask->shape(-3) != 1 && options.mask->shape(-3) != heads(query)) {
        throw ShapeError(fmt::format("{}: mask {} has neither one head nor the query's {}", kName,
                                     options.mask->view().describe(), heads(query)));
      }
      bool by_head = options.mask->shape(-3) == heads(query);
      apart.mask = by_head ? grouped(constant(*options.mask), of, each).array()
                           : options.mask->expand_dims(-4);
    }
    Variable y = scaled_dot_product_attention(grouped(query, of, each), grouped(key, of, 1),
                                              grouped(value, of, 1), apart);
    Shape shape = query.shape();
    shape[-1] = value.shape(-1);
    return reshape(y, shape);
  }
  double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape(-1))));
  Variable scores = matmul(query * scale, key, false, true);
  if (options.mask) check_broadcast(*options.mask, scores.shape());
  Array without;  // the keys that take no part
  if (options.causal) {
    without = xp::logical_not(xp::tri(query.shape(-2), key.shape(-2), 0, bool_, query.device()));
  } else if (options.mask && options.mask->dtype() == bool_) {
    without = xp::logical_not(*options.mask);
  } else if (options.mask) {
    scores = scores + constant(options.mask->astype(scores.dtype(), false));
  }
  if (without.defined()) scores = masked_fill(scores, without, least_score(scores.dtype()));
  Variable weights = softmax(scores, -1);
  // Of no key at all softmax would make equal weights.
  if (without.defined() && !options.causal) weights = masked_fill(weights, without, 0);
  return matmul(dropout(weights, options.dropout_ratio), value);
}

}  // namespace rensa::functions
