// A GPT whose products are cut over the ranks of a group (Megatron-LM).
#pragma once

#include <rensa/rensa.h>

#include <vector>

/// Its part of a block: attention has this rank's heads, the layers behind it this rank's units.
struct ParallelBlock : rensa::Chain<ParallelBlock> {
  rensa::L::LayerNormalization ln_1, ln_2;  // alike on all ranks
  rensa::L::ParallelMultiHeadAttention attn;
  rensa::L::ColumnParallelLinear c_fc;
  rensa::L::RowParallelLinear c_proj;
  double dropout;

  ParallelBlock(const rensa::Communicator& comm, const rensa::L::GPT2Block& whole)
      : ln_1(whole.ln_1),
        ln_2(whole.ln_2),
        attn(comm, whole.attn.heads),
        c_fc(comm, whole.mlp.c_fc),
        c_proj(comm, whole.mlp.c_proj),
        dropout(whole.dropout) {}
  void members(rensa::Visitor& v) override {
    v("ln_1", ln_1), v("attn", attn), v("ln_2", ln_2), v("c_fc", c_fc), v("c_proj", c_proj);
  }
  rensa::Variable operator()(const rensa::Variable& x) const {
    namespace F = rensa::F;
    rensa::Variable y = x + F::dropout(attn(ln_1(x), {.causal = true}), dropout);
    return y + F::dropout(c_proj(F::gelu_tanh(c_fc(ln_2(y), 2)), 2), dropout);
  }
};

/// L::GPT2 that all ranks have alike, cut.
struct ParallelGPT : rensa::Chain<ParallelGPT> {
  rensa::L::EmbedID wte, wpe;  // alike on all ranks, as is ln_f
  std::vector<ParallelBlock> h;
  rensa::L::LayerNormalization ln_f;
  double dropout;

  ParallelGPT(const rensa::Communicator& comm, const rensa::L::GPT2& whole)
      : wte(whole.wte), wpe(whole.wpe), ln_f(whole.ln_f), dropout(whole.dropout) {
    for (const rensa::L::GPT2Block& block : whole.h) h.emplace_back(comm, block);
  }
  void members(rensa::Visitor& v) override {
    v("wte", wte), v("wpe", wpe), v("h", h), v("ln_f", ln_f);
  }
  rensa::Variable operator()(const rensa::Variable& tokens) const {
    namespace F = rensa::F;
    rensa::Variable places = F::get_item(wpe.W, {rensa::Slice(0, tokens.shape(1))});
    rensa::Variable y = F::dropout(wte(tokens) + places, dropout);
    for (const ParallelBlock& block : h) y = block(y);
    return F::linear(ln_f(y), wte.W, {}, 2);
  }
};
