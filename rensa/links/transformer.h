// L::TransformerEncoderLayer and L::TransformerDecoderLayer.
#pragma once

#include <cstdint>
#include <functional>

#include "rensa/links/attention_links.h"
#include "rensa/links/normalization_links.h"

namespace rensa {
namespace links {

struct TransformerOptions {
  std::int64_t feedforward = 2048;  // units between the two products
  double dropout = 0.1;
  std::function<Variable(const Variable&)> activate = {};  // F::relu when left out
  double eps = 1e-5;                                       // of the normalizations
  bool norm_first = false;  // each part sees normalized inputs; else each sum is normalized
};

/// Vaswani et al., "Attention is all you need": x (n, length, units) plus its attention with
/// itself, then plus linear2(activate(linear1(x))) at each place. Parts of sums, and what lies
/// between the two products, are dropped with the probability `dropout`, as are the weights of the
/// attention. Names and defaults are PyTorch's.
class TransformerEncoderLayer : public Chain<TransformerEncoderLayer> {
 public:
  TransformerEncoderLayer(std::int64_t units, int heads, const TransformerOptions& options = {});
  void members(Visitor& v) override;

  /// Throws as MultiHeadAttention.
  Variable operator()(const Variable& x, const F::AttentionOptions& attention = {}) const;

  MultiHeadAttention self_attn;  // of x with itself
  Linear linear1, linear2;
  LayerNormalization norm1, norm2;  // behind the attention, and behind the products
  TransformerOptions options;       // the constructor's
};

/// A layer that also sees `memory` (n, other length, units), between its attention with itself and
/// the products: multihead_attn has x's queries and memory's keys and values.
class TransformerDecoderLayer : public Chain<TransformerDecoderLayer> {
 public:
  TransformerDecoderLayer(std::int64_t units, int heads, const TransformerOptions& options = {});
  void members(Visitor& v) override;

  /// Throws as MultiHeadAttention.
  Variable operator()(const Variable& x, const Variable& memory,
                      const F::AttentionOptions& attention = {},
                      const F::AttentionOptions& memory_attention = {}) const;

  MultiHeadAttention self_attn, multihead_attn;  // of x with itself, and with memory
  Linear linear1, linear2;                       // the two products
  LayerNormalization norm1, norm2, norm3;        // behind each of the three parts
  TransformerOptions options;                    // the constructor's
};

}  // namespace links

namespace L = links;

}  // namespace rensa
