// What attention's two ways share: operations that make no weights, and functions that do.
#pragma once

#include "rensa/array/random_basics.h"
#include "rensa/autograd/variable.h"

namespace rensa::functions {

/// AttentionOptions as operations take them (operations/attention/attention.h): arrays that are
/// left out are undefined.
struct AttentionSettings {
  double scale = 1, dropout_ratio = 0;
  bool causal = false;
  Array mask, lengths, slopes;
  xp::random::GeneratorPosition dropout;
};

/// What sums of x's dtype are computed in.
Dtype attention_sums(Dtype x);

/// Attention made of functions that know their gradients: query (batch, heads, L, E), key (batch,
/// groups, S, E), value (batch, groups, S, V), `bias` undefined or (batch, heads, L, S).
Variable composed_attention(const Variable& query, const Variable& key, const Variable& value,
                            const Variable& bias, const AttentionSettings& settings);

/// The gradients of query, key and value (without a bias), made of such functions.
Variables composed_attention_gradient(const Variable& query, const Variable& key,
                                      const Variable& value, const Variable& gy,
                                      const AttentionSettings& settings);

}  // namespace rensa::functions
