// Products with one short dimension (at most kMaxSkinny), which cuBLASLt does at several times
// their cost, as the last layer of a classifier and its gradients: of float32, and where k is short
// also of float16 and bfloat16. Sums run in an order that depends on the shape alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::cuda {

inline constexpr int kMaxSkinny = 16;

/// out(l, s) = sum over i < k of x(l, i) * short(s, i), for `count` <= kMaxSkinny values of s.
struct SkinnyArgs {
  const float* x;     // the long operand
  const float* s;     // the short one
  const float* bias;  // null, or a value for each column of c
  float* c;
  const float* gate;               // null, or what lies as c does: see Matmul
  std::int64_t x_ld;               // elements between rows of x as it lies in memory
  std::int64_t s_row, s_k;         // strides of the short operand
  std::int64_t c_length, c_count;  // strides of c along l and along s
  std::int64_t x_batch, s_batch, c_batch;
  int length, count, k, batch;
  bool bias_by_count;         // the columns of c are s, not l
  bool x_settled, s_settled;  // Operand::settled
  operations::Activation activation;
  float alpha;
};

/// A product with k <= kMaxSkinny; b's rows lie together.
struct OuterArgs : ProductArgs {
  std::int64_t a_row, a_k, b_k;
};

/// The kernel that can compute `key`, or PlanKind::cublaslt where none can.
PlanKind skinny_kind(const PlanKey& key);
/// Whether skinny_kind's kernel is the better one, as far as the shape tells.
bool skinny_is_likely_faster(const PlanKey& key);

/// Microseconds that a recorded step likely saves beside the product, which may take so much longer
/// by this kernel than by others: a loss's gradient of a layer's scores becomes part of `dot`, and
/// then the product that goes back from it, if it is one of `outer`, too (graph/patterns.cc).
float likely_saved(const PlanKey& key, PlanKind kind);

/// Queues the kernel of skinny_kind.
void run_skinny(const PlanKey& key, PlanKind kind, const MatmulRun& run);

/// What the dot kernel takes of a product that goes by it, where it has whole rows of c at a time:
/// one matrix, C-contiguous, without a gate or an activation. Nothing where it does not.
struct DotRows {
  SkinnyArgs args;
  bool vectors;  // four elements along k at a time
};
std::optional<DotRows> dot_rows(const PlanKey& key, const MatmulRun& run);
/// The same for a product that is launched on the thread's stream now.
std::optional<DotRows> dot_rows(const operations::Matmul& product);

/// The kernels (cuda_skinny.cu). dot: x is (length, k), k contiguous.
void launch_dot(const SkinnyArgs& args, bool vectors, const LaunchContext& context);
void launch_outer(Dtype dtype, const OuterArgs& args, const LaunchContext& context);

}  // namespace rensa::cuda
