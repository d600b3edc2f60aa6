// L::GPT2.
#include "rensa/links/models/gpt2.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/noise.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

constexpr double kScale = 0.02;  // of the weights at the start

Initializer normal() { return initializers::Normal{kScale}; }
/// Of products that are added to x: their sum over all layers is of one size whatever n_layer is.
Initializer normal_of_sum(const GPT2Options& options) {
  return initializers::Normal{kScale / std::sqrt(2 * static_cast<double>(options.n_layer))};
}

LayerNormalization normalization(const GPT2Options& options) {
  return LayerNormalization(options.n_embd, {.eps = options.layer_norm_epsilon});
}

}  // namespace

GPT2Attention::GPT2Attention(const GPT2Options& options)
    : heads(options.n_embd, options.n_head, {.dropout = options.dropout, .initialW = normal()}) {
  heads.out_proj = Linear(options.n_embd, options.n_embd, {.initialW = normal_of_sum(options)});
}

GPT2MLP::GPT2MLP(const GPT2Options& options)
    : c_fc(options.n_embd, 4 * options.n_embd, {.initialW = normal()}),
      c_proj(4 * options.n_embd, options.n_embd, {.initialW = normal_of_sum(options)}) {}

Variable GPT2MLP::operator()(const Variable& x) const {
  return c_proj(F::gelu_tanh(c_fc(x, 2)), 2);
}

GPT2Block::GPT2Block(const GPT2Options& options)
    : ln_1(normalization(options)),
      ln_2(normalization(options)),
      attn(options),
      mlp(options),
      dropout(options.dropout) {}

void GPT2Block::members(Visitor& v) {
  v("ln_1", ln_1), v("attn", attn), v("ln_2", ln_2), v("mlp", mlp);
}

Variable GPT2Block::operator()(const Variable& x) const {
  Variable y = x + F::dropout(attn(ln_1(x)), dropout);
  return y + F::dropout(mlp(ln_2(y)), dropout);
}

GPT2::GPT2(const GPT2Options& options)
    : wte(options.vocab_size, options.n_embd, {.initialW = normal()}),
      wpe(options.n_positions, options.n_embd, {.initialW = normal()}),
      ln_f(normalization(options)),
      dropout(options.dropout) {
  for (std::int64_t i = 0; i < options.n_layer; ++i) h.emplace_back(options);
}

Variable GPT2::operator()(const Variable& tokens) const {
  if (tokens.ndim() != 2 || tokens.shape(1) > wpe.W.shape(0)) {
    throw ShapeError(fmt::format("GPT2: tokens are {}; they must be (n, length), length <= {}",
                                 tokens.array().view().describe(), wpe.W.shape(0)));
  }
  Variable places = F::get_item(wpe.W, {Slice(0, tokens.shape(1))});
  Variable y = F::dropout(wte(tokens) + places, dropout);
  for (const GPT2Block& block : h) y = block(y);
  return F::linear(ln_f(y), wte.W, {}, 2);
}

Variable GPT2Attention::operator()(const Variable& x) const { return heads(x, {.causal = true}); }

void GPT2::members(Visitor& v) { v("wte", wte), v("wpe", wpe), v("h", h), v("ln_f", ln_f); }

}  // namespace rensa::links
