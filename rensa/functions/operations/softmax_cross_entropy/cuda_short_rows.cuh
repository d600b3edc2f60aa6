// What kernels of softmax cross entropy share: the shift of rows of few classes, of which a group
// of threads has an element each, or up to kMostCached, and the gradient of a row.
#pragma once

#include "rensa/core/functors.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"

namespace rensa::cuda {

// Of a short row each thread has one element, or up to kMostCached. Their code is apart: much of it
// would come too late to the processors.
constexpr int kMostCached = 4;
static_assert(kShortRow <= 32 * kMostCached);

// join_all of up to a warp alone, in a loop that stays one: little code, as above.
template <class R, class A> __device__ __forceinline__ A join_all_lanes(A value, int group) {
#pragma unroll 1
  for (int mask = group / 2; mask > 0; mask /= 2) {
    value = R::combine(value, shuffle_xor(value, mask));
  }
  return value;
}

// The part of a row of T that a thread of the row's group has, and the row's shift.
template <class V, int kCached> struct ShortRow {
  V cached[kCached];
  V greatest, log_sum;
};

// The threads of a group call it together; those of rows that are not there with no classes.
template <int kCached, class T, class V = ComputeOf<T>>
__device__ __forceinline__ ShortRow<V, kCached> short_row(const T* x, int classes, int lane,
                                                          int group) {
  ShortRow<V, kCached> row;
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    int j = lane + c * group;
    row.cached[c] = j < classes ? convert<V>(x[j]) : m::lowest<V>();
  }
  V greatest = row.cached[0];
#pragma unroll
  for (int c = 1; c < kCached; ++c) greatest = m::maximum(greatest, row.cached[c]);
  row.greatest = greatest = join_all_lanes<MaxOf<V>>(greatest, group);
  V terms[kCached] = {};
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    if (c * group >= classes) break;
    if (lane + c * group < classes) terms[c] = m::exp(row.cached[c] - greatest);
  }
  // In the order in which more threads with one term each would add them up.
#pragma unroll
  for (int half = kCached / 2; half > 0; half /= 2) {
#pragma unroll
    for (int c = 0; c < half; ++c) terms[c] += terms[c + half];
  }
  row.log_sum = m::log(join_all_lanes<SumOf<V>>(terms[0], group));
  return row;
}

struct LossGradArgs {
  FlatView x, shift, t, count, gy, gx;
  std::int64_t rows, classes;
  long long ignore_label;
  FastDiv by_classes;  // for the kernel of any rows
  int group;           // threads of a row; by vectors perhaps of a block that has a part of it
  bool by_vectors;     // the rows are long, and the vectors of x and gx aligned
  bool normalize;      // for the kernel that counts labels
};

// What the gradient's elements of one row have in common.
template <class T> struct GradOfRow {
  using V = ComputeOf<T>;
  V greatest, log_sum, gy, count, inverse;
  long long label;
  __device__ __forceinline__ GradOfRow(const LossGradArgs& args, std::int64_t row)
      : GradOfRow(args.shift.as<const V>()[2 * row], args.shift.as<const V>()[2 * row + 1],
                  args.gy.load<V>(0), args.count.load<V>(0), args.t.load_index(row)) {}
  __device__ __forceinline__ GradOfRow(V shift_greatest, V shift_log_sum, V of_loss, V rows_counted,
                                       long long own_label)
      : greatest(shift_greatest),
        log_sum(shift_log_sum),
        gy(of_loss),
        count(rows_counted),
        inverse(V(1) / count),
        label(own_label) {}
  // By a power of two, 1 / count is exact, and a product has the quotient's bits.
  __device__ __forceinline__ bool count_is_power() const {
    return (__float_as_uint(static_cast<float>(count)) & 0x7fffffu) == 0;
  }
  // Of the element x; `one` is 1 at the label, else 0.
  template <bool by_power> __device__ __forceinline__ T of(V x, V one) const {
    V share = m::exp((x - greatest) - log_sum) - one;
    return convert<T>(by_power ? share * gy * inverse : share * gy / count);
  }
};

// How many of the thread's share of labels, of integers I, are counted.
template <class I>
__device__ __forceinline__ int count_labels_of(const I* t, int rows, long long ignore_label,
                                               int threads) {
  int counted = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += threads)
    counted += t[i] != ignore_label;
  return counted;
}

// How many of all labels the thread counts, of so many of a block.
__device__ __forceinline__ int count_labels_of_thread(const LossGradArgs& args, int threads) {
  int rows = static_cast<int>(args.rows), counted = 0;
  if (args.t.type.dtype == Dtype::int32) {
    return count_labels_of(args.t.as<const int>(), rows, args.ignore_label, threads);
  }
  if (args.t.type.dtype == Dtype::int64) {
    return count_labels_of(args.t.as<const long long>(), rows, args.ignore_label, threads);
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += threads) {
    counted += args.t.load_index(i) != args.ignore_label;
  }
  return counted;
}

}  // namespace rensa::cuda
