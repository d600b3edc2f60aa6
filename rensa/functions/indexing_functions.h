// Functions that choose elements by their places, with gradients of any order: what is chosen
// several times has the sum of the gradients. Index arrays are of integers (DtypeError else);
// negative ones count from the end, others out of range throw IndexError, on a GPU at the next
// wait.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// Basic indexing, as x[{...}]: integers, slices, `ellipsis` and `newaxis`. Throws IndexError.
[[nodiscard]] Variable get_item(const Variable& x, std::initializer_list<BasicIndex> index);
[[nodiscard]] Variable get_item(const Variable& x, std::span<const BasicIndex> index);
/// Indexing by integer arrays and boolean masks, alone or mixed with the above: get_item(x, rows),
/// get_item(x, {Slice(), columns}), by NumPy's rules. A mask waits for the device (counted).
[[nodiscard]] Variable get_item(const Variable& x, const Selector& index);
/// a with b, which broadcasts, added to a[index]; every one of equal indices counts.
[[nodiscard]] Variable scatter_add(const Variable& a, const Selector& index, const Variable& b);
/// y[i, j, k] = x[i, index[i, j, k], k] for axis 1: PyTorch's gather. The other extents of `index`
/// may be smaller than x's. Throws ShapeError.
[[nodiscard]] Variable gather(const Variable& x, int axis, const Array& index);
/// The slices of x at the 1-d `index` along `axis`.
[[nodiscard]] Variable index_select(const Variable& x, int axis, const Array& index);
/// y[i, j, ...] = x.ravel()[storage_offset + i * strides[0] + j * strides[1] + ...]: strides count
/// elements of x in C order, wherever these lie. Throws ShapeError unless there are as many strides
/// as extents, ValueError where an element would lie outside of x.
[[nodiscard]] Variable as_strided(const Variable& x, const Shape& shape, const Shape& strides,
                                  std::int64_t storage_offset = 0);
/// x[i, t[i]] of x (n, classes) and integers t (n,). Throws ShapeError, DtypeError.
[[nodiscard]] Variable select_item(const Variable& x, const Variable& t);
/// x[indices[i]] at place i of `axis`, or the other way round with `inv`; `indices` holds each
/// place once.
[[nodiscard]] Variable permutate(const Variable& x, const Array& indices, int axis = 0,
                                 bool inv = false);
/// The k greatest (else least) elements along `axis`, in order, and their places (int64). Throws
/// ValueError for a k that is negative or greater than the extent.
[[nodiscard]] std::pair<Variable, Array> topk(const Variable& x, std::int64_t k, int axis = -1,
                                              bool largest = true);
/// t's integers as rows of `classes` zeros with a one in its place, as a new last axis; of integers
/// out of range all are zeros. Without a gradient. Throws DtypeError.
[[nodiscard]] Variable one_hot(const Variable& t, std::int64_t classes,
                               Dtype dtype = Dtype::float32);

}  // namespace functions

namespace F = functions;

}  // namespace rensa
