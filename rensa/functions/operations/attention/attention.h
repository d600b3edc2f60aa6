// Attention without a matrix of weights in memory: forward, backward, and the weights that dropout
// leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rensa/core/use_cudnn.h"
#include "rensa/device/kind.h"

namespace rensa::cuda {
struct AttentionPlan;  // cuda_plan.h
}

namespace rensa::operations {

/// What both directions of attention are given: of the query at (b, h, i) the scores
///   s[j] = scale * query . key[b, h / (heads / groups), j] + mask[b, h, i, j] - slope[h] * |i - j|
/// and the weights softmax(s), of which dropout leaves some.
///   query (batch, heads, L, E), key (batch, groups, S, E), value (batch, groups, S, V): of one
///     floating dtype, elements of the last axis next to each other; `groups` divides `heads`
///   mask (batch, heads, L, S), any strides: bool, true where a key takes part; or added, of the
///     query's dtype or its sums'
///   lengths (batch, heads): int64, C-contiguous; the first lengths[b, h] keys take part. One
///     outside of [0, S] throws ValueError (on the GPU at the next wait)
///   slopes (heads,): of the sums' dtype
/// Sums are float32, and float64 of float64. Where `causal`, query i sees the keys 0 .. i. What no
/// mask leaves a key, or -inf alone, has no weights: its output is 0.
struct AttentionGiven {
  Operand query, key, value, mask, lengths, slopes;
  double scale = 1, dropout_ratio = 0;
  bool causal = false;
  bool tf32 = false;  // this and the two below are taken from Config when the operation is made
  UseCudnn use_cudnn = UseCudnn::automatic;
  bool deterministic = true;
  HostScalar seed, offset;  // of the dropout: attention_dropout.h says which element takes what

  template <class V> void operands(V& v) { v.read(query, key, value, mask, lengths, slopes); }
  template <class V> void settings(V& v) {
    v.scalar(seed, offset), v.number(scale, dropout_ratio, causal, tf32);
    v.number(use_cudnn, deterministic);
  }
};

/// out (batch, heads, L, V) = weights @ value, its last axis contiguous; lse (batch, heads, L), of
/// the sums' dtype and C-contiguous: the logarithms of the sums of exp(s), +inf where there is no
/// key.
///
/// Tri Dao, "FlashAttention-2" (2023): a block of queries goes over the keys block by block, with
/// the greatest score and the sum of the weights so far. On a GPU what is no float64 and has E and
/// V up to 128 is multiplied on tensor cores (from Ampere on), float32 as sums of two TF32 numbers
/// each, or one where `tf32`; everything else, up to 256, by multiply-adds. What `use_cudnn` leaves
/// to cuDNN is computed by it: float16 and bfloat16 without masks, lengths, slopes and dropout, in
/// at most get_max_workspace_size() of scratch, rows at multiples of 16 bytes.
struct Attention final : KindOf<Attention> {
  Attention() : KindOf("scaled_dot_product_attention") {}
  AttentionGiven given;
  Operand out, lse;
  /// How a GPU does it, chosen at the first look at workspace_bytes(); copies have it too.
  mutable std::shared_ptr<const cuda::AttentionPlan> plan;

  template <class V> void fields(V& v) { given.operands(v), v.write(out, lse), given.settings(v); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The gradients of query, key and value (those that are present; last axes contiguous) of what
/// Attention made: the weights once more from lse, for gkey and gvalue by blocks of keys and for
/// gquery by blocks of queries, each summed in one order. By cuDNN, where that has an engine, in
/// one order too unless `deterministic` is off; that takes 2 bytes of scratch for each score.
struct AttentionGrad final : KindOf<AttentionGrad> {
  AttentionGrad() : KindOf("scaled_dot_product_attention_grad") {}
  AttentionGiven given;
  Operand out, lse, gout, gquery, gkey, gvalue;
  mutable std::shared_ptr<const cuda::AttentionPlan> plan;  // as Attention's

  template <class V> void fields(V& v) {
    given.operands(v), v.read(out, lse, gout), v.write(gquery, gkey, gvalue), given.settings(v);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// out (batch, heads, L, S), float32 or float64 and C-contiguous: 1 / (1 - ratio) where attention's
/// dropout leaves a weight, else 0.
struct AttentionDropout final : KindOf<AttentionDropout> {
  AttentionDropout() : KindOf("scaled_dot_product_attention_dropout") {}
  double ratio = 0;
  HostScalar seed, offset;
  Operand out;

  template <class V> void fields(V& v) { v.write(out), v.scalar(seed, offset), v.number(ratio); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
