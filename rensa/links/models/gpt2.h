// L::GPT2: a Transformer that tells how a text goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/links/attention_links.h"
#include "rensa/links/embed_id.h"
#include "rensa/links/normalization_links.h"

namespace rensa {
namespace links {

/// The names are those of the published configurations. Left out: GPT-2 small, of 124 million
/// parameters.
struct GPT2Options {
  std::int64_t vocab_size = 50257, n_positions = 1024;  // different tokens, and places at the most
  std::int64_t n_embd = 768, n_layer = 12;              // units of a token, and blocks
  int n_head = 12;                                      // of the attention; n_embd divides by it
  double dropout = 0.1;              // of embeddings, of attention's weights, of what is added
  double layer_norm_epsilon = 1e-5;  // of the normalizations
};

/// MultiHeadAttention by its names in GPT-2: c_attn makes queries, keys and values.
class GPT2Attention : public Chain<GPT2Attention> {
 public:
  explicit GPT2Attention(const GPT2Options& options);
  void members(Visitor& v) override { v("c_attn", heads.in_proj), v("c_proj", heads.out_proj); }
  Variable operator()(const Variable& x) const;

  MultiHeadAttention heads;  // in_proj is c_attn, out_proj c_proj
};

/// c_proj(gelu(c_fc(x))).
class GPT2MLP : public Chain<GPT2MLP> {
 public:
  explicit GPT2MLP(const GPT2Options& options);
  void members(Visitor& v) override { v("c_fc", c_fc), v("c_proj", c_proj); }
  Variable operator()(const Variable& x) const;

  Linear c_fc, c_proj;
};

/// x plus attention of ln_1(x), then plus mlp of ln_2 of that.
class GPT2Block : public Chain<GPT2Block> {
 public:
  explicit GPT2Block(const GPT2Options& options);
  void members(Visitor& v) override;
  Variable operator()(const Variable& x) const;

  LayerNormalization ln_1, ln_2;
  GPT2Attention attn;  // between ln_1 and ln_2
  GPT2MLP mlp;
  double dropout;
};

/// Radford et al., "Language models are unsupervised multitask learners": of tokens (n, length),
/// integers, the scores of each place's next one (n, length, vocab_size). Tokens and places have
/// rows wte and wpe, the blocks are h, what ln_f makes of the last one is held against wte. Weights
/// start from N(0, 0.02), those of products that are added to x divided by sqrt(2 * n_layer).
class GPT2 : public Chain<GPT2> {
 public:
  explicit GPT2(const GPT2Options& options = {});
  void members(Visitor& v) override;

  /// Throws ShapeError for other than (n, length), length <= n_positions, and as EmbedID.
  Variable operator()(const Variable& tokens) const;

  EmbedID wte, wpe;
  std::vector<GPT2Block> h;
  LayerNormalization ln_f;
  double dropout;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
