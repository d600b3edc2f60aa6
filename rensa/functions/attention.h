// Attention: means of values, weighed by how well their keys fit queries.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct AttentionOptions {
  std::optional<Array> mask =
      {};                    // (..., L, S), broadcast: bool, true where a key takes part, or added
  double dropout_ratio = 0;  // of the weights, as dropout() drops them
  bool causal = false;       // query i sees the keys 0 .. i alone
  std::optional<double> scale = {};  // 1 / sqrt(E) when left out
};
/// softmax(scale * query @ key^T + mask) @ value: query (..., L, E), key (..., S, E), value
/// (..., S, V), result (..., L, V), the other axes broadcast. Where an axis in front of the last
/// two is longer in query, a multiple of key's and value's (grouped heads, axis -3), each group of
/// queries has one key. A query that a bool mask leaves no key has zeros. Composed: the weights are
/// an array. Throws ShapeError, DtypeError, and ValueError for a causal one with a mask.
[[nodiscard]] Variable scaled_dot_product_attention(const Variable& query, const Variable& key,
                                                    const Variable& value,
                                                    const AttentionOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa
