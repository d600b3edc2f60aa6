// How work is cut into blocks of a GPU and into parts for a CPU's threads, by the library's kernels
// and by those that kernel/ makes at run time. Plans depend on shapes, strides and dtypes alone,
// never on the machine: so do the results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rensa/core/array_view.h"
#include "rensa/core/dtype.h"
#include "rensa/core/integers.h"
#include "rensa/portable/reduce_blocks.h"
#include "rensa/portable/reduce_parts.h"

namespace rensa::cuda {

/// What work is spread for: the multiprocessors of an H100 or H200.
inline constexpr int kMultiprocessors = 132;

/// Most units of work of one launch: indices are 32-bit and FastDiv takes 31 bits.
inline constexpr std::int64_t kMaxCount = (std::int64_t{1} << 31) - (1 << 20);

/// The smallest power of two that is not below n, between 1 and kBlock.
int power_of_two_above(std::int64_t n);

/// The dtypes that the vector kernels are made for.
enum class VectorType : unsigned char { f32, f16, bf16, f64, i32, i64, b8, none };
inline constexpr int kNumVectorTypes = 7;
VectorType vector_type(Dtype d);

/// Bytes of a partial result; those of `deviations` and `nanmean` take two times as many.
inline constexpr std::int64_t kPartialBytes = 16;

/// Fewer outputs than this leave multiprocessors idle, with a block each.
inline constexpr std::int64_t kFewOutputs = 512;

/// Whether an address is a multiple of `bytes`.
inline bool is_aligned(const void* pointer, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Whether all vectors of `bytes` are aligned: those that follow each other along the last axis of
/// `view`, or, without `along_last`, one that begins at each of its elements.
inline bool vectors_are_aligned(const ArrayView& view, bool along_last, std::int64_t bytes) {
  if (!is_aligned(view.data, bytes)) return false;
  for (int axis = 0; axis < view.ndim() - (along_last ? 1 : 0); ++axis) {
    if (view.shape[axis] > 1 && view.strides[axis] % bytes != 0) return false;
  }
  return true;
}

/// Whether a reduction goes by columns, several outputs side by side, and not output by output:
/// outputs lie more densely than the elements that one is reduced from, or have one element each.
/// The axes of both views are in order (normalize_axes).
bool reduces_columns(const ArrayView& kept, const ArrayView& reduced);

/// For `outputs` that are each reduced from `count` elements lying together, `width` a vector.
ReduceBlocks plan_rows(std::int64_t outputs, std::int64_t count, std::int64_t width);
/// For `columns` outputs that lie together, `outer` times, reduced over `count` rows.
ReduceBlocks plan_columns(std::int64_t outer, std::int64_t columns, std::int64_t count,
                          std::int64_t width);

/// Columns of bool that are one vector: a tile's columns must not be more than a block's threads.
inline constexpr int kBoolColumns = 8;

/// Scratch of a reduction of `nbytes` contiguous bytes to one result, made by plan_rows.
std::size_t flat_workspace_bytes(std::int64_t nbytes);

}  // namespace rensa::cuda

namespace rensa::host {

/// As cuda::reduces_columns; columns are also taken where an output has too few elements for lanes
/// of its own.
bool reduces_columns(const ArrayView& kept, const ArrayView& reduced);

/// For `outputs` that are each reduced by itself.
ReduceParts plan_outputs(std::int64_t outputs, std::int64_t count);
/// For rows of `columns` outputs together, `outer` times, reduced over `count` rows.
ReduceParts plan_tiles(std::int64_t outer, std::int64_t columns, std::int64_t count);

}  // namespace rensa::host
