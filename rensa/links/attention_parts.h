// What links of attention are made of, whether they have all of its heads or some.
#pragma once

#include <cstdint>

#include "rensa/functions/attention.h"

namespace rensa::links {

/// Throws ShapeError for an input that is not (n, length, units).
void check_attention_input(const char* what, const Variable& x, std::int64_t units);
/// Queries, keys and values (n, length, out): the products of query, key and value with the thirds
/// of W (3 * out, units), plus those of b, if there is one. Throws as check_attention_input.
Variables attention_products(const Variables& inputs, const Variable& W, const Variable& b);
/// What `heads` heads make of these, side by side: (n, queries, out).
Variable attend(const Variables& projected, int heads, const F::AttentionOptions& options);

}  // namespace rensa::links
