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
/// both its square root (ortho). By these names or by NumPy's words. Throws ValueError for another
/// word.
class Norm {
 public:
  enum Kind : unsigned char { backward, ortho, forward };  // the direction that carries the factor
  Norm(Kind kind) : kind_(kind) {}
  Norm(const char* word);
  operator Kind() const { return kind_; }  // for a switch

 private:
  Kind kind_;
};

/// Values along an axis before the transform: what is more is cut off, what is missing is 0.
using Length = std::optional<std::int64_t>;

/// NumPy's keywords of transforms of one axis.
struct FftOptions {
  rensa::detail::NamedOptions named = {};
  Length n = {};
  int axis = -1;               // one axis; negative ones count from the end
  Norm norm = Norm::backward;  // which direction carries the factor 1/n
  ArrayOption out = {};  // of the result's shape, converted ("same_kind"); what the call returns
};
struct FftnOptions {
  rensa::detail::NamedOptions named = {};
  AxisList s = {};
  std::optional<AxisList> axes = {};  // the last two (fft2) or all when left out
  Norm norm = Norm::backward;         // which direction carries the factor 1/n
  ArrayOption out = {};  // of the result's shape, converted ("same_kind"); what the call returns
};

// fft(a), fft(a, 8), fft(a, {}, 0, "ortho"), fft(a, {.axis = 0, .norm = "ortho"}).
#define RENSA_DECLARE_FFT(name)                                                                   \
  Array name(const Array& a, const FftOptions& options = {});                                     \
  [[nodiscard]] inline Array name(const Array& a, Length n, int axis,                             \
                                  Norm norm = Norm::backward) {                                   \
    return name(a, FftOptions{.n = n, .axis = axis, .norm = norm});                               \
  }                                                                                               \
  template <std::convertible_to<Length> T> [[nodiscard]] Array name(const Array& a, const T& n) { \
    return name(a, FftOptions{.n = n});                                                           \
  }
// fft2(a), fft2(a, {8, 8}), fft2(a, {8, 8}, {0, 1}, "ortho"), fft2(a, {.axes = {0, 1}}).
#define RENSA_DECLARE_FFTN(name)                                                           \
  Array name(const Array& a, const FftnOptions& options = {});                             \
  [[nodiscard]] inline Array name(const Array& a, const AxisList& s, const AxisList& axes, \
                                  Norm norm = Norm::backward) {                            \
    return name(a, FftnOptions{.s = s, .axes = axes, .norm = norm});                       \
  }                                                                                        \
  template <std::convertible_to<AxisList> T>                                               \
  [[nodiscard]] Array name(const Array& a, const T& s) {                                   \
    return name(a, FftnOptions{.s = s});                                                   \
  }                                                                                        \
  [[nodiscard]] inline Array name(const Array& a, std::initializer_list<std::int64_t> s) { \
    return name(a, FftnOptions{.s = AxisList(s)});                                         \
  }
/// The discrete Fourier transform along one axis, and back.
RENSA_DECLARE_FFT(fft)
RENSA_DECLARE_FFT(ifft)
/// The last two axes unless said.
RENSA_DECLARE_FFTN(fft2)
RENSA_DECLARE_FFTN(ifft2)
/// All axes unless said; with `s` alone the last s.size() ones.
RENSA_DECLARE_FFTN(fftn)
RENSA_DECLARE_FFTN(ifftn)

/// Of real operands: the n / 2 + 1 first values, which determine the others.
RENSA_DECLARE_FFT(rfft)
/// Back: n real values (2 * (m - 1) of m complex ones unless said).
RENSA_DECLARE_FFT(irfft)
/// As fftn, the last of `axes` being the real one.
RENSA_DECLARE_FFTN(rfft2)
RENSA_DECLARE_FFTN(irfft2)
RENSA_DECLARE_FFTN(rfftn)
RENSA_DECLARE_FFTN(irfftn)  // back from rfftn

/// Of a signal that is Hermitian in time, whose spectrum is real, and back.
RENSA_DECLARE_FFT(hfft)
RENSA_DECLARE_FFT(ihfft)
#undef RENSA_DECLARE_FFT
#undef RENSA_DECLARE_FFTN

/// The frequencies of fft's (rfft's) values for samples `d` apart: float64 unless said. Throws
/// DtypeError unless `dtype` is a floating one.
[[nodiscard]] Array fftfreq(std::int64_t n, double d = 1, Placement device = {});
[[nodiscard]] Array rfftfreq(std::int64_t n, double d = 1, Placement device = {});
struct FreqOptions {
  rensa::detail::NamedOptions named = {};
  std::optional<Dtype> dtype = {};
  Placement device = {};  // the current device when left out
};
[[nodiscard]] Array fftfreq(std::int64_t n, double d, const FreqOptions& options);
[[nodiscard]] Array rfftfreq(std::int64_t n, double d, const FreqOptions& options);
/// Moves the frequency 0 to the middle of the axes (all unless said), and back.
[[nodiscard]] Array fftshift(const Array& a, AxisList axes = {});
[[nodiscard]] Array ifftshift(const Array& a, AxisList axes = {});

}  // namespace rensa::xp::fft
