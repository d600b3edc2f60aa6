// L::MultiHeadAttention: attention between projections of its inputs.
#pragma once

#include <cstdint>

#include "rensa/functions/attention.h"
#include "rensa/links/linear.h"

namespace rensa {
namespace links {

struct MultiHeadAttentionOptions {
  double dropout = 0;             // of the weights
  bool nobias = false;            // no biases
  Initializer initialW = {};      // of both products; GlorotUniform when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// Vaswani et al., "Attention is all you need": queries, keys and values are products of the inputs
/// (n, length, units) with the thirds of in_proj's W (3 * units, units), cut into `heads` parts
/// each; what F::scaled_dot_product_attention gives of each part, side by side again, goes through
/// out_proj. Of `given` all but dropout_ratio counts; masks broadcast to (n, heads, queries, keys),
/// and padded keys are best left out by key_lengths, (n,).
class MultiHeadAttention : public Chain<MultiHeadAttention> {
 public:
  /// Throws ValueError unless `heads` divides `units`.
  MultiHeadAttention(std::int64_t units, int heads, const MultiHeadAttentionOptions& options = {});
  void members(Visitor& v) override { v("in_proj", in_proj), v("out_proj", out_proj); }

  /// Of x with itself: one product makes queries, keys and values.
  Variable operator()(const Variable& x, const F::AttentionOptions& given = {}) const;
  /// (n, queries, units). Throws ShapeError, and as F::scaled_dot_product_attention.
  Variable operator()(const Variable& query, const Variable& key, const Variable& value,
                      const F::AttentionOptions& given = {}) const;

  std::int64_t units() const { return units_; }  // the constructor's
  int heads() const { return heads_; }

  Linear in_proj, out_proj;
  double dropout;

 private:
  Variable attend(const Variables& projected, const F::AttentionOptions& given) const;
  std::int64_t units_;
  int heads_;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
