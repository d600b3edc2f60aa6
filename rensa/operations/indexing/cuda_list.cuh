// What gathers and scatters share on a GPU: the list of index arrays as kernels walk it, and the
// cutting of work into pieces that 32-bit indices count.
#pragma once

#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/indexing/indexing.h"

namespace rensa::cuda {

/// Most indices of one launch.
inline constexpr std::int64_t kMaxList = std::int64_t{1} << 30;

#if defined(__CUDACC__)
/// The place that an index of an axis of `extent` means; -1 where it is out of range. Without
/// kWraps the mode is not `wrap`, whose remainder is much to compute.
template <bool kWraps = true>
__device__ __forceinline__ std::int64_t place_of(long long given, std::int64_t extent,
                                                 IndexMode mode) {
  long long number = given;
  if (mode == IndexMode::clip) {
    number = number < 0 ? 0 : number < extent ? number : extent - 1;
  } else {
    if (kWraps && mode == IndexMode::wrap) number %= extent;
    if (number < 0 && mode != IndexMode::strict) number += extent;
  }
  return number >= 0 && number < extent ? number : -1;
}
#endif

/// From the number of an index in the list to offsets, for up to K index arrays.
template <int K> struct ListArgs {
  int ndim = 0, count = 0;
  IndexMode mode;
  FastDiv extent[kMaxNdim];
  std::int64_t listed[kMaxNdim] = {}, along[kMaxNdim] = {}, index[K][kMaxNdim] = {};  // strides
  const char* indices[K] = {};
  Dtype dtypes[K] = {};
  std::int64_t extents[K] = {}, strides[K] = {};  // of the steered axes
  ErrorSink errors;

  ListArgs(const operations::IndexPlan& plan, const char* operation, const LaunchContext& context)
      : ndim(std::max(plan.list.ndim(), 1)), count(plan.count), mode(plan.mode) {
    for (int axis = 0; axis < plan.list.ndim(); ++axis) {
      extent[axis] = FastDiv(plan.list.shape[axis]);
      listed[axis] = plan.list.strides[axis];
      along[axis] = plan.along.strides[axis];
      for (int k = 0; k < count; ++k) index[k][axis] = plan.indices[k].strides[axis];
    }
    for (int k = 0; k < count; ++k) {
      indices[k] = plan.indices[k].data;
      dtypes[k] = plan.indices[k].dtype;
      extents[k] = plan.extents[k];
      strides[k] = plan.strides[k];
    }
    errors = ErrorSink(operation, context);
  }

#if defined(__CUDACC__)
  /// The offset into the listed array alone.
  __device__ __forceinline__ std::int64_t listed_offset(unsigned i) const {
    std::int64_t offset = 0;
    for (int axis = ndim - 1; axis > 0; --axis) {
      unsigned quotient = extent[axis].divide(i);
      offset += (i - quotient * extent[axis].divisor) * listed[axis];
      i = quotient;
    }
    return offset + i * listed[0];
  }

  /// The offsets into the listed and the indexed array; false where an index is out of range, which
  /// is reported if asked to.
  __device__ __forceinline__ bool locate(unsigned i, bool report, std::int64_t* to_listed,
                                         std::int64_t* to_indexed) const {
    std::int64_t at[K], in_list = 0, in_array = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) at[k] = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      unsigned quotient = axis > 0 ? extent[axis].divide(i) : 0;
      std::int64_t position = i - quotient * extent[axis].divisor;
      in_list += position * listed[axis];
      in_array += position * along[axis];
#pragma unroll
      for (int k = 0; k < K; ++k) at[k] += position * index[k][axis];
      i = quotient;
    }
    bool valid = true;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (k >= count) break;
      long long given = load_integer(indices[k] + at[k], dtypes[k]);
      std::int64_t place = place_of(given, extents[k], mode);
      if (place < 0 && report) errors.report(ReportedError::index, given, extents[k]);
      valid &= place >= 0;
      in_array += place * strides[k];
    }
    *to_listed = in_list;
    *to_indexed = in_array;
    return valid;
  }
#endif
};

/// Calls f with K = 1 for one index array (or none), 8 for more.
template <class F> void visit_index_count(int count, const F& f) {
  if (count <= 1) f(std::integral_constant<int, 1>{});
  else f(std::integral_constant<int, kMaxNdim>{});
}

inline void narrow(ArrayView* view, int axis, std::int64_t begin, std::int64_t end) {
  view->data += begin * view->strides[axis];
  view->shape[axis] = end - begin;
}

/// Calls f(plan) for parts of the list of at most `most` indices, in C order.
template <class F>
void for_each_list_part(const operations::IndexPlan& plan, std::int64_t most, const F& f) {
  if (plan.list.size() <= most) return f(plan);
  int axis = 0;  // the outermost, so that the order stays
  while (plan.list.shape[axis] == 1) ++axis;
  std::int64_t extent = plan.list.shape[axis], half = extent / 2;
  for (bool second : {false, true}) {
    operations::IndexPlan part = plan;
    auto cut = [&](ArrayView* view) {
      narrow(view, axis, second ? half : 0, second ? extent : half);
    };
    cut(&part.list);
    cut(&part.along);
    for (int k = 0; k < plan.count; ++k) cut(&part.indices[k]);
    part.listed.data = part.list.data;
    part.indexed.data = part.along.data;
    for_each_list_part(part, most, f);
  }
}

/// Calls f(plan) for parts of the rows of at most `most` elements.
template <class F>
void for_each_row_part(const operations::IndexPlan& plan, std::int64_t most, const F& f) {
  const Shape& shape = plan.listed.shape;
  if (plan.listed.size() <= most) return f(plan);
  auto axis = static_cast<int>(std::max_element(shape.begin(), shape.end()) - shape.begin());
  std::int64_t extent = shape[axis], half = extent / 2;
  for (bool second : {false, true}) {
    operations::IndexPlan part = plan;
    for (ArrayView* view : {&part.listed, &part.indexed}) {
      narrow(view, axis, second ? half : 0, second ? extent : half);
    }
    for_each_row_part(part, most, f);
  }
}

}  // namespace rensa::cuda
