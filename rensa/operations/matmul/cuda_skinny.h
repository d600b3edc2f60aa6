// Float32 products that cuBLASLt does at several times their cost: with one short dimension (at
// most kMaxSkinny), as the last layer of a classifier and its gradients, and small in all of them.
// Sums run in an order that depends on the shape alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::cuda {

inline constexpr int kMaxSkinny = 16;

/// out(l, s) = sum over i < k of x(l, i) * short(s, i), for `count` <= kMaxSkinny values of s.
struct SkinnyArgs {
  const float* x;     // the long operand
  const float* s;     // the short one
  const float* bias;  // null, or a value for each column of c
  float* c;
  std::int64_t x_ld;               // elements between rows of x as it lies in memory
  std::int64_t s_row, s_k;         // strides of the short operand
  std::int64_t c_length, c_count;  // strides of c along l and along s
  int length, count, k;
  bool bias_by_count;  // the columns of c are s, not l
  operations::Activation activation;
  float alpha;
};

/// c(i, j) = sum over p < k of a(i, p) * b(p, j).
struct ProductArgs {
  const float* a;
  const float* b;
  const float* bias;
  float* c;
  std::int64_t a_row, a_k, b_k, b_column, c_ld;
  int m, n, k;
  operations::Activation activation;
  float alpha;
};

/// The kernel that can compute `key`, or PlanKind::cublaslt where none can.
PlanKind skinny_kind(const PlanKey& key);
/// Whether skinny_kind's kernel is the better one, as far as the shape tells.
bool skinny_is_likely_faster(const PlanKey& key);

/// Queues plan's kernel (not cublaslt).
void run_skinny(const PlanKey& key, PlanKind kind, const MatmulRun& run);

/// The kernels (cuda_skinny.cu). dot: x is (length, k), k contiguous; columns: x lies as
/// (k, length), length contiguous. outer: k <= kMaxSkinny, b_column 1. small: whatever it is, all
/// of k at once.
void launch_dot(const SkinnyArgs& args, bool vectors, const LaunchContext& context);
void launch_columns(const SkinnyArgs& args, const LaunchContext& context);
void launch_outer(const ProductArgs& args, const LaunchContext& context);
void launch_small(const ProductArgs& args, const LaunchContext& context);  // cuda_small.cu

}  // namespace rensa::cuda
