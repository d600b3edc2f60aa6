// Convolution, interpolation and window functions.
#pragma once

#include <optional>
#include <string_view>

#include "rensa/array/creation.h"

namespace rensa::xp {

/// The discrete convolution of two 1-d (or 0-d) arrays, summed directly. `mode` is "full" (every
/// overlap), "same" (the longer operand's length) or "valid" (whole overlaps only). The operands'
/// common dtype; 16-bit floats are summed in float. Throws ShapeError for an empty operand.
[[nodiscard]] Array convolve(const Array& a, const Array& v, std::string_view mode = "full");
/// sum over n of a[n + k] * conj(v[n]) for each k, in the same modes.
[[nodiscard]] Array correlate(const Array& a, const Array& v, std::string_view mode = "valid");

/// What interp gives in front of the first point and behind the last; their values when left out.
struct InterpOptions {
  std::optional<Scalar> left = {}, right = {};  // in front of the first point, and behind the last
  /// x is an angle, say: it goes round after this much, and xp may stand in any order. Without left
  /// and right.
  std::optional<double> period = {};
};
/// The polygon through the points (xp, fp) at `x`: float64, complex128 for a complex fp. xp rises,
/// which is not looked at. Throws ShapeError unless xp and fp are 1-d and of one length, not 0.
[[nodiscard]] Array interp(const Array& x, const Array& xp, const Array& fp,
                           const InterpOptions& options = {});

/// Windows of m float64 points; none for m < 1.
[[nodiscard]] Array bartlett(std::int64_t m, Placement device = {});
[[nodiscard]] Array blackman(std::int64_t m, Placement device = {});  // blackman's window
[[nodiscard]] Array hamming(std::int64_t m, Placement device = {});   // hamming's window
[[nodiscard]] Array hanning(std::int64_t m, Placement device = {});   // hann's window
/// Kaiser's window; beta 0 is a rectangle.
[[nodiscard]] Array kaiser(std::int64_t m, double beta, Placement device = {});

}  // namespace rensa::xp
