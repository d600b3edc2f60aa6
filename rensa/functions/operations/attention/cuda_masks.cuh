// What attention's kernels share: the place of a block, the keys that it sees, masks and dropout.
#pragma once

#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/random.cuh"
#include "rensa/core/functors.h"
#include "rensa/functions/operations/attention/attention_dropout.h"
#include "rensa/functions/operations/attention/cuda_kernels.h"

namespace rensa::cuda {

/// Row `row` of a head.
template <class T>
__device__ __forceinline__ T* row_of(const HeadRows& rows, long long b, int h, int row) {
  return reinterpret_cast<T*>(rows.data) + b * rows.batch + h * rows.head + row * rows.row;
}

/// The keys of a head that take part before masks and `causal`; reports a number that is none.
__device__ __forceinline__ int length_of(const AttentionArgs& args, long long b, int h) {
  if (args.lengths == nullptr) return args.keys;
  long long length = args.lengths[b * args.heads + h];
  if (length >= 0 && length <= args.keys) return static_cast<int>(length);
  if (threadIdx.x == 0) {
    ErrorSink sink;
    sink.word = args.error_word;
    sink.operation = args.operation;
    sink.report(ReportedError::length, length, args.keys);
  }
  return 0;
}

/// What is done to the scores of one head.
template <class V> struct HeadMask {
  const char* mask;
  long long row_stride, column_stride;
  Dtype dtype;
  V slope;
  int length;
  bool causal;

  __device__ HeadMask(const AttentionArgs& args, long long b, int h, int keys)
      : mask(args.mask), length(keys), causal(args.causal) {
    dtype = args.mask_dtype;
    row_stride = args.mask_strides[2];
    column_stride = args.mask_strides[3];
    if (mask != nullptr) mask += b * args.mask_strides[0] + h * args.mask_strides[1];
    slope = args.slopes != nullptr ? reinterpret_cast<const V*>(args.slopes)[h] : V(0);
  }

  __device__ __forceinline__ bool hides(int i, int j) const {
    return j >= length || (causal && j > i);
  }
  /// The score of query i and key j, where masks leave it; what they add is times `unit`. Queries
  /// beyond the last one have any.
  __device__ __forceinline__ V apply(V score, int i, int j, int queries, V unit) const {
    V kNone = -m::infinity<V>();
    if (hides(i, j)) return kNone;
    if (mask != nullptr && i < queries) {
      const char* p = mask + i * row_stride + j * column_stride;
      switch (dtype) {
        case Dtype::bool_: score = *p != 0 ? score : kNone; break;
        case Dtype::float16: score += unit * convert<V>(*reinterpret_cast<const half_t*>(p)); break;
        case Dtype::bfloat16:
          score += unit * convert<V>(*reinterpret_cast<const bfloat16_t*>(p));
          break;
        case Dtype::float32: score += unit * V(*reinterpret_cast<const float*>(p)); break;
        default: score += unit * V(*reinterpret_cast<const double*>(p));
      }
    }
    if (slope != V(0)) score -= unit * slope * V(i > j ? i - j : j - i);
    return score;
  }
};

__device__ __forceinline__ AttentionDropoutWords dropout_of(const AttentionArgs& args) {
  return AttentionDropoutWords(static_cast<unsigned long long>(integer_of(args.seed)),
                               static_cast<unsigned long long>(integer_of(args.offset)),
                               args.queries, args.keys, args.dropout_ratio);
}

/// Which head a block of threads has, and which of the head's blocks. Of `heads_at_once` heads all
/// first blocks come before all second ones: where blocks have less and less to do, those that end
/// the launch are short.
struct BlockPlace {
  long long head;
  int block;

  __device__ BlockPlace(const AttentionArgs& args, long long heads, int blocks) {
    auto together = static_cast<unsigned>(args.heads_at_once), each = together * blocks;
    unsigned turn = blockIdx.x / each, place = blockIdx.x - turn * each;
    long long first = static_cast<long long>(turn) * together;
    unsigned here = heads - first < together ? static_cast<unsigned>(heads - first) : together;
    block = static_cast<int>(place / here);
    head = first + place % here;
  }
};

/// How many of `heads` go together: one, unless `causal`, and otherwise those whose rows of two
/// operands, which all their blocks read, stay in a GPU's cache.
inline int heads_at_once(const AttentionArgs& args, std::int64_t heads, int rows) {
  constexpr std::int64_t kCached = 32 << 20;
  std::int64_t bytes = std::int64_t{rows} * (args.query.width + args.value.width);
  bytes *= itemsize(args.dtype);
  if (!args.causal || bytes == 0 || heads == 0) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(kCached / bytes, 1, heads));
}

/// Queues `kernel` with scratch of the block's own.
template <class Args>
static void launch_with_memory(const char* operation, const LaunchContext& context,
                               void (*kernel)(Args), std::int64_t grid, int block, int bytes,
                               const Args& args) {
  if (grid == 0) return;
  allow_shared_memory(operation, context.device, reinterpret_cast<const void*>(kernel));
  launch_kernel(operation, context, kernel, grid, block, args, static_cast<std::size_t>(bytes));
}

}  // namespace rensa::cuda
