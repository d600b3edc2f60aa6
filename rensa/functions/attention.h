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
  std::optional<double> scale = {};        // 1 / sqrt(E) when left out
  std::optional<Array> key_lengths = {};   // (n,), integers: of sample k the first key_lengths[k]
                                           // keys take part; n is the result's first extent
  std::optional<Array> alibi_slopes = {};  // (heads,): slope * |i - j| is taken from the scores
  Variable bias = {};                      // (..., L, S), broadcast: added, with a gradient
};
/// softmax(scale * query @ key^T + mask + bias) @ value: query (..., L, E), key (..., S, E), value
/// (..., S, V), result (..., L, V), the other axes broadcast. Where axis -3 of query is longer than
/// that of key and value, a multiple of it (grouped heads), as many queries' heads one after the
/// other have one key's. A query that masks leave no key, or scores of -inf alone, has zeros.
///
/// No array of weights is made (Tri Dao, "FlashAttention-2", 2023), nor kept for backward. On a GPU
/// of Ampere's generation or later, tensor cores multiply where E and V are at most 128: float16
/// and bfloat16 as they are, float32 as two TF32 numbers each, which keeps its digits, or as one
/// with config().tf32; sums are float32. float64 and wider heads have plain multiply-adds. From
/// Hopper on cuDNN computes float16 and bfloat16 without masks, lengths, slopes and dropout, heads
/// up to 256 wide, as config().use_cudnn says (NotImplementedError where that is `always` and cuDNN
/// does not), with config().cudnn_deterministic the same bits every time. With a
/// `bias`, with E or V over 256 on a GPU, and where a gradient is to be differentiated itself, the
/// same is composed of functions: there the weights are an array.
///
/// Throws ShapeError, DtypeError; ValueError for lengths outside of [0, S], on a GPU at the next
/// wait.
[[nodiscard]] Variable scaled_dot_product_attention(const Variable& query, const Variable& key,
                                                    const Variable& value,
                                                    const AttentionOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa
