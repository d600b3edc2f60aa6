// How reductions are spread over blocks: for the kernels of this folder, and for those that kernel/
// makes at run time, in builds without CUDA as well.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "rensa/backend/cuda/launch_plan.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

int power_of_two_above(std::int64_t n) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(n, 1, kBlock))));
}

VectorType vector_type(Dtype d) {
  switch (d) {
    case Dtype::float32: return VectorType::f32;
    case Dtype::float16: return VectorType::f16;
    case Dtype::bfloat16: return VectorType::bf16;
    case Dtype::float64: return VectorType::f64;
    case Dtype::int32: return VectorType::i32;
    case Dtype::int64: return VectorType::i64;
    case Dtype::bool_: return VectorType::b8;
    default: return VectorType::none;
  }
}

std::size_t flat_workspace_bytes(std::int64_t nbytes) {
  RowsPlan plan = plan_rows(1, ceil_div(nbytes, 16));
  return static_cast<std::size_t>(plan.slices > 1 ? plan.slices * kPartialBytes : 0);
}

void normalize_axes(ArrayView* const* views, int count) {
  int ndim = views[0]->ndim();
  // Insertion sort: there are few axes, and they are nearly always in order.
  for (int i = 1; i < ndim; ++i) {
    for (int j = i; j > 0; --j) {
      if (std::abs(views[0]->strides[j - 1]) >= std::abs(views[0]->strides[j])) break;
      for (int k = 0; k < count; ++k) {
        std::swap(views[k]->shape[j - 1], views[k]->shape[j]);
        std::swap(views[k]->strides[j - 1], views[k]->strides[j]);
      }
    }
  }
  collapse_axes(views, count);
  if (views[0]->ndim() > 0) return;
  for (int k = 0; k < count; ++k) {
    views[k]->shape.push_back(1);
    views[k]->strides.push_back(itemsize(views[k]->dtype));
  }
}

RowsPlan plan_rows(std::int64_t outputs, std::int64_t vectors) {
  RowsPlan plan;
  plan.slice_vectors = vectors;
  // Few outputs get many threads, many outputs threads with some vectors each: with more of them
  // the less there is to join, as long as warps stay together and the GPU is full.
  constexpr std::int64_t kThreads = kMultiprocessors * 2048;
  std::int64_t each = outputs <= 1024 ? 1 : 4;
  auto fills = [&](std::int64_t threads) { return threads >= 32 && outputs * threads >= kThreads; };
  while (each > 1 && each < 32 && fills(ceil_div(vectors, 2 * each))) each *= 2;
  plan.group = power_of_two_above(ceil_div(vectors, each));
  constexpr std::int64_t kLeast = kBlock * 8;  // vectors that are worth a block
  // Joining the slices of two blocks takes as long as one block takes for these.
  if (outputs < kFewOutputs && vectors > 2 * kLeast) {
    std::int64_t slices =
        std::min(ceil_div(vectors, kLeast), ceil_div(16 * kMultiprocessors, outputs));
    plan.slice_vectors = round_up(ceil_div(vectors, slices), kBlock * 4);
    plan.slices = ceil_div(vectors, plan.slice_vectors);
  }
  return plan;
}

ColumnsPlan plan_columns(std::int64_t outer, std::int64_t rows, std::int64_t column_vectors) {
  ColumnsPlan plan;
  // Narrow tiles where wide ones would leave multiprocessors idle; 4 vectors are two sectors.
  while (plan.lanes > 4 && outer * ceil_div(column_vectors, plan.lanes) < 60) plan.lanes /= 2;
  plan.tiles_x = ceil_div(column_vectors, plan.lanes);
  plan.tiles = outer * plan.tiles_x;
  plan.slice_rows = rows;
  std::int64_t below = kBlock / plan.lanes;
  if (plan.tiles <= kSemaphores) {
    std::int64_t slices =
        std::min(ceil_div(rows, below * 8), ceil_div(8 * kMultiprocessors, plan.tiles));
    if (slices > 1) {
      plan.slice_rows = round_up(ceil_div(rows, slices), below * 4);
      plan.slices = ceil_div(rows, plan.slice_rows);
    }
  }
  return plan;
}

}  // namespace rensa::cuda
