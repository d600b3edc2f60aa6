// Index arrays made of shapes, and diagonals.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rensa/array/creation.h"

namespace rensa::xp {

// --- indices of parts of a matrix: one int64 array for each axis ---
/// Of the main diagonal of an array of `ndim` extents n, at most 8 of them.
[[nodiscard]] std::vector<Array> diag_indices(std::int64_t n, int ndim = 2, Placement device = {});
/// Of the main diagonal of an array whose extents are all equal, on its device.
[[nodiscard]] std::vector<Array> diag_indices_from(const Array& a);
/// Of the elements at and below (above) diagonal k of n rows and m columns (n when left out).
[[nodiscard]] std::vector<Array> tril_indices(std::int64_t n, std::int64_t k = 0,
                                              std::optional<std::int64_t> m = {},
                                              Placement device = {});
[[nodiscard]] std::vector<Array> triu_indices(std::int64_t n, std::int64_t k = 0,
                                              std::optional<std::int64_t> m = {},
                                              Placement device = {});
[[nodiscard]] std::vector<Array> tril_indices_from(const Array& a, std::int64_t k = 0);
[[nodiscard]] std::vector<Array> triu_indices_from(const Array& a, std::int64_t k = 0);
/// The places of an (n, n) array of ones that `mask` (as tril and triu: an array and a diagonal)
/// leaves not zero. Waits for the device.
[[nodiscard]] std::vector<Array> mask_indices(
    std::int64_t n, const std::function<Array(const Array&, std::int64_t)>& mask,
    std::int64_t k = 0, Placement device = {});
/// numpy.ndindex: the coordinates of an array of `shape`, one after the other, the last the
/// fastest.
///
///   for (const Shape& at : xp::ndindex({2, 3})) ...
class ndindex {
 public:
  explicit ndindex(const Shape& shape) : shape_(shape) {}
  /// Over the indices of a shape, for a range-for.
  class iterator {
   public:
    iterator(const Shape& shape, std::int64_t left)
        : shape_(shape), at_(Shape::filled(shape.ndim(), 0)), left_(left) {}
    const Shape& operator*() const { return at_; }  // the index
    iterator& operator++();                         // to the next index, the last axis fastest
    /// Whether there is more: for the comparison with end().
    bool operator!=(const iterator& other) const { return left_ != other.left_; }

   private:
    Shape shape_, at_;
    std::int64_t left_;
  };
  iterator begin() const { return iterator(shape_, shape_.total()); }  // the first index
  iterator end() const { return iterator(shape_, 0); }

 private:
  Shape shape_;
};
/// The coordinates of every element of an array of `shape`: (shape.ndim(), *shape).
[[nodiscard]] Array indices(const Shape& shape, Dtype dtype = int64, Placement device = {});
/// 1-d index arrays as an open mesh. A mask gives the places where it is true, and waits for the
/// device. NumPy's c_ and r_ are Python syntax: use column_stack, concatenate and arange.
[[nodiscard]] std::vector<Array> ix_(std::span<const Array> arrays);
[[nodiscard]] std::vector<Array> ix_(std::initializer_list<Array> arrays);

// --- flat and n-dimensional indices ---
/// Flat indices as coordinates in `shape`, in C or Fortran order. Throws IndexError for
/// one out of range, and waits for the device to know.
[[nodiscard]] std::vector<Array> unravel_index(const Array& indices, const Shape& shape,
                                               Order order = 'C');
/// The other way. Coordinates out of range throw IndexError ("raise", which waits for the device),
/// go round ("wrap") or become the nearest in range ("clip").
[[nodiscard]] Array ravel_multi_index(std::span<const Array> coordinates, const Shape& shape,
                                      IndexModeOption mode = IndexMode::raise, Order order = 'C');
[[nodiscard]] Array ravel_multi_index(std::initializer_list<Array> coordinates, const Shape& shape,
                                      IndexModeOption mode = IndexMode::raise, Order order = 'C');

// --- diagonals ---
/// Diagonal `offset` of the matrices that two axes span, as the last axis: a view (writable, unlike
/// NumPy's).
[[nodiscard]] Array diagonal(const Array& a, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1);
[[nodiscard]] Array diagonal(const Array& a, const DiagonalOptions& options);
/// The sum of that diagonal.
[[nodiscard]] Array trace(const Array& a, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1);
Array trace(const Array& a, const TraceOptions& options);
/// Writes the main diagonal of a matrix, or of an array whose extents are all equal. `wrap` goes on
/// in a tall matrix below each square. An array of values is repeated as often as it takes.
void fill_diagonal(const Array& a, Scalar value, bool wrap = false);
void fill_diagonal(const Array& a, const Array& values, bool wrap = false);

}  // namespace rensa::xp
