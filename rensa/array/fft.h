// Discrete Fourier transforms: namespace xp::fft, with NumPy's names.
//
// `n` (or `s`, an extent for each of `axes`) is the length transformed: a longer operand is cut, a
// shorter one filled up with zeros. float32 and complex64 give complex64, as do float16 and
// bfloat16 (irfft and hfft give these back), all else complex128. Any length is fast: n log n,
// large prime factors too. Throws ValueError for a length below 1, IndexError for a bad axis,
// DtypeError for complex operands of the transforms that take real ones (rfft, ihfft). Nothing here
// waits for the device.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/array/axis_list.h"
#include "rensa/array/routines.h"

namespace rensa::xp::fft {

/// Which direction carries the factor 1/n: the inverse one (backward), the other one (forward), or
/// both its square root (ortho).
enum class Norm : unsigned char { backward, ortho, forward };

using Length = std::optional<std::int64_t>;

Array fft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);
Array ifft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);
/// The last two axes unless said.
Array fft2(const Array& a, AxisList s = {}, AxisList axes = {-2, -1}, Norm norm = Norm::backward);
Array ifft2(const Array& a, AxisList s = {}, AxisList axes = {-2, -1}, Norm norm = Norm::backward);
/// All axes unless said; with `s` alone the last s.size() ones.
Array fftn(const Array& a, AxisList s = {}, AxisList axes = {}, Norm norm = Norm::backward);
Array ifftn(const Array& a, AxisList s = {}, AxisList axes = {}, Norm norm = Norm::backward);

/// Of real operands: the n / 2 + 1 first values, which determine the others.
Array rfft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);
/// Back: n real values (2 * (m - 1) of m complex ones unless said).
Array irfft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);
/// As fftn, the last of `axes` being the real one.
Array rfft2(const Array& a, AxisList s = {}, AxisList axes = {-2, -1}, Norm norm = Norm::backward);
Array irfft2(const Array& a, AxisList s = {}, AxisList axes = {-2, -1}, Norm norm = Norm::backward);
Array rfftn(const Array& a, AxisList s = {}, AxisList axes = {}, Norm norm = Norm::backward);
Array irfftn(const Array& a, AxisList s = {}, AxisList axes = {}, Norm norm = Norm::backward);

/// Of a signal that is Hermitian in time, whose spectrum is real, and back.
Array hfft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);
Array ihfft(const Array& a, Length n = {}, int axis = -1, Norm norm = Norm::backward);

/// The frequencies of fft's (rfft's) values for samples `d` apart: float64.
Array fftfreq(std::int64_t n, double d = 1, Placement device = {});
Array rfftfreq(std::int64_t n, double d = 1, Placement device = {});
/// Moves the frequency 0 to the middle of the axes (all unless said), and back.
Array fftshift(const Array& a, AxisList axes = {});
Array ifftshift(const Array& a, AxisList axes = {});

}  // namespace rensa::xp::fft
