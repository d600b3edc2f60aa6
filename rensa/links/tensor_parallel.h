// Layers that are cut over the ranks of a group: each has a part of the weights, and computes its
// part of what one layer would. Shoeybi et al., "Megatron-LM: Training multi-billion parameter
// language models using model parallelism".
#pragma once

#include <cstdint>

#include "rensa/array/communicator.h"
#include "rensa/links/attention_links.h"
#include "rensa/links/linear.h"

namespace rensa {
namespace links {

// All ranks make the same links and make the same calls, as those of Communicator. Initial weights
// are those of one whole layer: all ranks draw it, rank 0's counts, and each keeps its part of it;
// so do copies that start anew (CopyMode::init). A learner of its own on each rank keeps what all
// have whole alike to the bit, for all get the same gradients. Forward and backward exchange what
// they do by Communicator::allreduce, which captured steps record, unless something is gathered or
// scattered. Files hold a rank's own parts. Hooks of links (links/link_hook.h) there are none: they
// would see parts.

struct ColumnParallelLinearOptions {
  bool nobias = false;            // no b
  bool gather_output = false;     // gives the whole y, on all ranks; else this rank's part
  int groups = 1;                 // of outputs one after the other, of which each is cut
  Initializer initialW = {};      // of the whole W; LeCunNormal when left out
  Initializer initial_bias = {};  // of the whole b; 0 when left out
};

/// L::Linear, of whose W and b this rank has out / size rows, where there are groups its part of
/// each: W is (out / size, in), b (out / size,). x is alike on all ranks.
class ColumnParallelLinear : public Chain<ColumnParallelLinear> {
 public:
  /// Throws ValueError unless the number of ranks divides `out`, or that of each group; for groups
  /// of which the outputs are gathered, which would lie in another order.
  ColumnParallelLinear(const Communicator& communicator, std::int64_t in, std::int64_t out,
                       const ColumnParallelLinearOptions& options = {});
  /// This rank's part of a layer that all ranks have alike, on its device; of the options
  /// gather_output and groups count. Throws ValueError where the layer waits for its input size,
  /// and as above.
  ColumnParallelLinear(const Communicator& communicator, const Linear& whole,
                       const ColumnParallelLinearOptions& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b); }

  /// The first `n_batch_axes` axes of x count samples; the others are flattened. Throws as Linear.
  Variable operator()(const Variable& x, int n_batch_axes = 1) const;

  Parameter W, b;
  bool gather_output;

 private:
  Communicator communicator_;
};

struct RowParallelLinearOptions {
  bool nobias = false;            // no b
  bool scatter_input = false;     // takes the whole x, alike on all ranks; else this rank's part
  Initializer initialW = {};      // of the whole W; LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// L::Linear, of whose W this rank has in / size columns: W is (out, in / size). y, to which the
/// whole b (out,) is added once, is alike on all ranks. x is this rank's part, as a
/// ColumnParallelLinear gives it.
class RowParallelLinear : public Chain<RowParallelLinear> {
 public:
  /// Throws ValueError unless the number of ranks divides `in`.
  RowParallelLinear(const Communicator& communicator, std::int64_t in, std::int64_t out,
                    const RowParallelLinearOptions& options = {});
  /// As of ColumnParallelLinear; of the options scatter_input counts.
  RowParallelLinear(const Communicator& communicator, const Linear& whole,
                    const RowParallelLinearOptions& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b); }

  /// The first `n_batch_axes` axes of x count samples; the others are flattened. Throws as Linear.
  Variable operator()(const Variable& x, int n_batch_axes = 1) const;

  Parameter W, b;
  bool scatter_input;

 private:
  Communicator communicator_;
};

/// L::MultiHeadAttention, of whose heads this rank computes heads / size: in_proj has its rows of
/// each third, W (3 * units / size, units), and out_proj their columns. Inputs, the options of a
/// call, which are those of all heads, and the result are alike on all ranks. Weights are dropped
/// by each rank's own numbers, independently of the others', and ranks whose generators are alike
/// keep them so; of one sample they drop what the unsplit layer would.
class ParallelMultiHeadAttention : public Chain<ParallelMultiHeadAttention> {
 public:
  /// Throws ValueError unless `heads` divides `units`, and the number of ranks `heads`.
  ParallelMultiHeadAttention(const Communicator& communicator, std::int64_t units, int heads,
                             const MultiHeadAttentionOptions& options = {});
  /// As of ColumnParallelLinear.
  ParallelMultiHeadAttention(const Communicator& communicator, const MultiHeadAttention& whole);
  void members(Visitor& v) override { v("in_proj", in_proj), v("out_proj", out_proj); }

  /// Of x with itself: one product makes queries, keys and values.
  Variable operator()(const Variable& x, const F::AttentionOptions& given = {}) const;
  /// (n, queries, units). Throws ShapeError, for an option of another number of heads too, and as
  /// F::scaled_dot_product_attention.
  Variable operator()(const Variable& query, const Variable& key, const Variable& value,
                      const F::AttentionOptions& given = {}) const;

  ColumnParallelLinear in_proj;
  RowParallelLinear out_proj;
  double dropout;

 private:
  Variable attend(const Variables& projected, const F::AttentionOptions& given) const;
  /// The options of this rank's heads.
  F::AttentionOptions own(const F::AttentionOptions& given) const;
  Communicator communicator_;
  std::int64_t units_;
  int heads_;  // of this rank
};

}  // namespace links

// Made once, in tensor_parallel.cc.
extern template class Chain<links::ColumnParallelLinear>;
extern template class Chain<links::RowParallelLinear>;
extern template class Chain<links::ParallelMultiHeadAttention>;

namespace L = links;

}  // namespace rensa
