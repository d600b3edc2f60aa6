// How work is cut into blocks: the host's part of the CUDA kernels, free of CUDA types. Plans
// depend on shapes, strides and dtypes alone, never on the GPU: so do the results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rensa/core/array_view.h"
#include "rensa/core/ufunc.h"

namespace rensa::cuda {

inline constexpr int kBlock = 256;  // threads of a block, unless a kernel says otherwise

/// What work is spread for: the multiprocessors of an H100 or H200.
inline constexpr int kMultiprocessors = 132;

/// Most units of work of one launch: indices are 32-bit and FastDiv takes 31 bits.
inline constexpr std::int64_t kMaxCount = (std::int64_t{1} << 31) - (1 << 20);

inline constexpr int kNumComputeTypes = 6;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return ceil_div(n, multiple) * multiple;
}
/// The smallest power of two that is not below n, between 1 and kBlock.
int power_of_two_above(std::int64_t n);

/// The dtypes that the vector kernels are made for.
enum class VectorType : unsigned char { f32, f16, bf16, f64, i32, i64, b8, none };
inline constexpr int kNumVectorTypes = 7;
VectorType vector_type(Dtype d);

/// Orders the axes of `count` views of one shape by falling stride in the first of them and merges
/// those that lie behind one another. At least one axis stays.
void normalize_axes(ArrayView* const* views, int count);

/// Bytes of a partial result; those of `deviations` and `nanmean` take two times as many.
inline constexpr std::int64_t kPartialBytes = 16;

/// Fewer outputs than this leave multiprocessors idle, with a block each.
inline constexpr std::int64_t kFewOutputs = 512;

/// How outputs that are each reduced from elements lying together are spread over blocks: `group`
/// threads per output; of long ones each of `slices` blocks takes `slice_vectors`.
struct RowsPlan {
  int group = 1;
  std::int64_t slices = 1;
  std::int64_t slice_vectors = 0;
};
RowsPlan plan_rows(std::int64_t outputs, std::int64_t vectors);

/// How outputs that lie together, reduced over rows, are spread over blocks: a block has `lanes`
/// threads side by side, one per vector of columns, and kBlock / lanes of them below one another;
/// each of `slices` blocks takes `slice_rows`.
struct ColumnsPlan {
  int lanes = 32;
  std::int64_t tiles_x = 1, tiles = 1;  // of one outer index, and in all
  std::int64_t slices = 1;
  std::int64_t slice_rows = 0;
};
ColumnsPlan plan_columns(std::int64_t outer, std::int64_t rows, std::int64_t column_vectors);

/// Columns of bool that are one vector: a tile's columns must not be more than a block's threads.
inline constexpr int kBoolColumns = 8;

/// Scratch of a reduction of `nbytes` contiguous bytes to one result, made by plan_rows.
std::size_t flat_workspace_bytes(std::int64_t nbytes);

}  // namespace rensa::cuda
