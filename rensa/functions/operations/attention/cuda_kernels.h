// Attention's kernels on a GPU, of two kinds: products on tensor cores, and products with all their
// digits.
#pragma once

#include <cstdint>

#include "rensa/device/error_word.h"
#include "rensa/device/host_scalar.h"
#include "rensa/device/operation.h"

namespace rensa::operations {
struct Attention;
struct AttentionGrad;
}  // namespace rensa::operations

namespace rensa::cuda {

/// The operations by the kernels here.
void run_attention(const operations::Attention& op, const LaunchContext& context);
void run_attention_grad(const operations::AttentionGrad& op, const LaunchContext& context);

/// (batch, heads, rows, width), elements of a row next to each other; strides in elements.
struct HeadRows {
  char* data = nullptr;
  long long batch = 0, head = 0, row = 0;
  int width = 0;
  bool vector = false;  // every row begins at a multiple of 16 bytes and ends at one
};

/// What both directions are given (AttentionGiven); what is absent is null.
struct AttentionArgs {
  HeadRows query, key, value, out, gout, gquery, gkey, gvalue;
  char* lse;
  char* delta;  // (batch, heads, L), of the sums' dtype: the sums of out * gout
  const char* mask;
  long long mask_strides[4];  // in bytes
  Dtype dtype, mask_dtype;
  const long long* lengths;
  const char* slopes;
  long long batch;
  int heads, groups, queries, keys;
  double scale;
  double dropout_ratio;
  bool causal, tf32;
  int heads_at_once = 1;  // see BlockPlace; a launch sets it
  HostScalar seed, offset;
  ErrorWord* error_word;
  const char* operation;
};

/// Whether the kernels on tensor cores take these.
bool has_tensor_core_attention(const LaunchContext& context, const AttentionArgs& args);

// On tensor cores, of float16 and bfloat16, widths of at most 128.
void launch_half_attention(const LaunchContext& context, const AttentionArgs& args);
void launch_half_attention_grad(const LaunchContext& context, const AttentionArgs& args);
// Of float32, likewise.
void launch_float_attention(const LaunchContext& context, const AttentionArgs& args);
void launch_float_attention_grad(const LaunchContext& context, const AttentionArgs& args);
// Of any floating dtype, widths of at most 256.
void launch_exact_attention(const LaunchContext& context, const AttentionArgs& args);
void launch_exact_attention_grad(const LaunchContext& context, const AttentionArgs& args);

}  // namespace rensa::cuda
