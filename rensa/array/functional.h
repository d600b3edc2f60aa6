// Routines that take functions.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "rensa/array/creation.h"

namespace rensa::xp {

/// `f` applied to every 1-d slice of `a` along an axis; the axes of its results, which have one
/// shape, stand in that axis's place. One call of `f` per slice. Throws ShapeError where there is
/// no slice.
[[nodiscard]] Array apply_along_axis(const std::function<Array(const Array&)>& f, int axis,
                                     const Array& a);

/// f(a, axis) for one axis after the other; an axis that `f` drops is put back with extent 1.
/// Throws ShapeError where `f` changes the number of axes otherwise.
[[nodiscard]] Array apply_over_axes(const std::function<Array(const Array&, int)>& f,
                                    const Array& a, const AxisList& axes);

/// f called once, with the coordinates of every element of an array of `shape`: shape.ndim() arrays
/// of `dtype`. What it gives.
[[nodiscard]] Array fromfunction(const std::function<Array(const std::vector<Array>&)>& f,
                                 const Shape& shape, const CreationOptions& options = {});

/// What piecewise gives where a condition holds: a number, or a function of the whole `x`.
class Piece {
 public:
  template <std::convertible_to<Scalar> T> Piece(T number) : value_(Scalar(number)) {}
  template <class F>
  requires std::is_invocable_r_v<Array, F, const Array&> Piece(F f)
      : value_(std::function<Array(const Array&)>(std::move(f))) {}
  /// The number or the function.
  const std::variant<Scalar, std::function<Array(const Array&)>>& value() const { return value_; }

 private:
  std::variant<Scalar, std::function<Array(const Array&)>> value_;
};
/// For each element of x the piece whose (bool) condition holds, the last of several; one piece
/// more than conditions is for where none does, else that is 0. In x's dtype. Unlike NumPy's, a
/// function is given all of x, so that no shape depends on values and nothing waits.
[[nodiscard]] Array piecewise(const Array& x, std::span<const Array> conditions,
                              const std::vector<Piece>& pieces);
[[nodiscard]] Array piecewise(const Array& x, std::initializer_list<Array> conditions,
                              const std::vector<Piece>& pieces);

}  // namespace rensa::xp
