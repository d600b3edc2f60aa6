// Fourier transforms: axes and lengths to runs along the last axis, or on a GPU along up to three
// of them at once.
#include "rensa/array/fft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/fft/fft.h"

namespace rensa::xp::fft {

using rensa::detail::check_defined;
using rensa::detail::new_array;
using rensa::detail::new_view;

namespace {

using operations::FftKind;

constexpr int kMaxRank = 3;  // axes that cuFFT transforms at once, towards complex values

// What every step of a transform needs to know.
struct Transform {
  const char* name;
  FftKind kind;
  bool inverse;
  Norm norm;

  Transform as(FftKind other) const { return {name, other, inverse, norm}; }
  // The factor for `count` values transformed.
  double scale(double count) const {
    if (norm == Norm::ortho) return 1 / std::sqrt(count);
    return (norm == Norm::backward) == inverse ? 1 / count : 1;
  }
};

bool is_single(Dtype dtype) {
  return dtype == float32 || dtype == complex64 || dtype == float16 || dtype == bfloat16;
}

Dtype input_dtype(const Transform& t, const Array& a) {
  bool single = is_single(a.dtype());
  if (t.kind != FftKind::real_to_complex) return single ? complex64 : complex128;
  if (dtype_kind(a.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("{}: {} is complex; it takes real operands only", t.name, a.view().describe()));
  }
  return single ? float32 : float64;
}

Dtype output_dtype(const Transform& t, Dtype input) {
  bool single = is_single(input);
  if (t.kind == FftKind::complex_to_real) return single ? float32 : float64;
  return single ? complex64 : complex128;
}

// Extents of the last axis before and after a transform of `n` values.
std::int64_t input_extent(const Transform& t, std::int64_t n) {
  return t.kind == FftKind::complex_to_real ? n / 2 + 1 : n;
}
std::int64_t output_extent(const Transform& t, std::int64_t n) {
  return t.kind == FftKind::real_to_complex ? n / 2 + 1 : n;
}

void check_length(const Transform& t, std::int64_t n) {
  if (n >= 1) return;
  throw ValueError(fmt::format("{}: {} values cannot be transformed; at least 1 can", t.name, n));
}

// The part of `a` inside of `shape`.
Array cut(const Array& a, const Shape& shape) {
  Shape smaller = a.shape();
  for (int i = 0; i < a.ndim(); ++i) smaller[i] = std::min(smaller[i], shape[i]);
  return new_view(a, 0, smaller, a.strides());
}

// The values of `a` in a C-contiguous array of `shape`, cut and filled up with zeros.
Array fitted(const char* name, const Array& a, const Shape& shape, Dtype dtype, bool own) {
  // cuFFT wants real numbers aligned as pairs.
  bool aligned = reinterpret_cast<std::uintptr_t>(a.data()) % 16 == 0;
  bool fits = a.shape() == shape && a.dtype() == dtype && a.is_contiguous() && aligned;
  if (fits && !own) return a;
  Array out = new_array(shape, dtype, a.device());
  Array part = cut(a, shape);
  if (part.shape() != shape) rensa::detail::fill_elements(name, out, 0);
  rensa::detail::copy_elements(name, part, new_view(out, 0, part.shape(), out.strides()));
  return out;
}

void refuse_recording(const Transform& t) {
  // A replay would need the plan, which may be gone.
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(t.name);
}

// The spectrum of a real signal of `n` values is real at both ends; NumPy does not look at what
// else stands there, cuFFT may.
void make_ends_real(const char* name, const Array& spectrum, std::int64_t n) {
  ArrayView ends = spectrum.view();
  int last = ends.ndim() - 1;
  std::int64_t size = itemsize(ends.dtype);
  ends.dtype = ends.dtype == complex64 ? float32 : float64;
  ends.data += size / 2;
  ends.shape[last] = n % 2 == 0 ? 2 : 1;
  ends.strides[last] = n / 2 * size;
  rensa::detail::fill_elements(name, Array(spectrum.storage(), ends), 0);
}

// Over the last `rank` axes of `a`, whose lengths are `lengths`, on a GPU.
Array transform_last(const Transform& t, const Array& a, const Shape& lengths) {
  int rank = lengths.size(), first = a.ndim() - rank;
  Shape in_shape = a.shape(), out_shape = a.shape();
  double count = 1;
  for (int i = 0; i < rank; ++i) {
    in_shape[first + i] = out_shape[first + i] = lengths[i];
    count *= static_cast<double>(lengths[i]);
  }
  in_shape[a.ndim() - 1] = input_extent(t, lengths[rank - 1]);
  out_shape[a.ndim() - 1] = output_extent(t, lengths[rank - 1]);
  Dtype dtype = input_dtype(t, a);
  Array out = new_array(out_shape, output_dtype(t, dtype), a.device());
  if (out.size() == 0) return out;
  refuse_recording(t);
  bool to_real = t.kind == FftKind::complex_to_real;
  Array in = fitted(t.name, a, in_shape, dtype, to_real);
  if (to_real) make_ends_real(t.name, in, lengths[rank - 1]);
  operations::Fft op(t.name, t.kind);
  op.inverse = t.inverse;
  op.rank = rank;
  op.length = lengths[rank - 1];
  op.in = in.operand();
  op.out = out.operand();
  launch(op);
  if (double scale = t.scale(count); scale != 1) out *= scale;
  return out;
}

// Along one axis.
Array transform_axis(const Transform& t, const Array& a, std::int64_t n, int axis) {
  check_length(t, n);
  Dtype dtype = input_dtype(t, a);
  if (a.device().is_cuda()) return transform_last(t, a.swapaxes(axis, -1), {n}).swapaxes(axis, -1);
  Shape shape = a.shape();
  shape[axis] = output_extent(t, n);
  Array in = a.astype(dtype, false), out = new_array(shape, output_dtype(t, dtype), a.device());
  if (out.size() == 0) return out;
  if (in.size() == 0) {
    rensa::detail::fill_elements(t.name, out, 0);
    return out;
  }
  Array rows = out.swapaxes(axis, -1);
  operations::Fft op(t.name, t.kind);
  op.inverse = t.inverse;
  op.length = n;
  op.scale = t.scale(static_cast<double>(n));
  in = in.swapaxes(axis, -1);
  op.in = in.operand();
  op.out = rows.operand();
  launch(op);
  return out;
}

// As NumPy: 16-bit floats that go straight to real ones stay what they are.
Array transform(const Transform& t, const Array& a, std::int64_t n, int axis) {
  Array result = transform_axis(t, a, n, axis);
  bool narrow = t.kind == FftKind::complex_to_real && itemsize(a.dtype()) == 2 &&
                dtype_kind(a.dtype()) == 'f';
  return narrow ? result.astype(a.dtype()) : result;
}

Array along_axis(const Transform& t, const Array& a, Length n, int axis) {
  check_defined(t.name, a);
  axis = normalize_axis(t.name, axis, a.ndim());
  std::int64_t extent = a.shape()[axis];
  bool real_result = t.kind == FftKind::complex_to_real;
  return transform(t, a, n.value_or(real_result ? checked_multiply(t.name, 2, extent - 1) : extent),
                   axis);
}

// The axes of a transform of several, with a length each.
struct AxisLengths {
  Shape axes, lengths;
};

AxisLengths resolve(const Transform& t, const Array& a, const AxisList& s, const AxisList& axes) {
  check_defined(t.name, a);
  AxisLengths result;
  if (axes.given()) {
    for (std::int64_t axis : axes.values()) {
      result.axes.push_back(normalize_axis(t.name, axis, a.ndim()));
    }
  } else {
    int count = s.given() ? s.values().size() : a.ndim();
    for (int i = 0; i < count; ++i) {
      result.axes.push_back(normalize_axis(t.name, i - count, a.ndim()));
    }
  }
  if (s.given() && s.values().size() != result.axes.size()) {
    throw ValueError(fmt::format("{}: s = {} does not have a length for each of the axes {}",
                                 t.name, s.values().str(), result.axes.str()));
  }
  for (int i = 0; i < result.axes.size(); ++i) {
    std::int64_t extent = a.shape()[static_cast<int>(result.axes[i])];
    bool last = i + 1 == result.axes.size();
    if (!s.given() && last && t.kind == FftKind::complex_to_real)
      extent = checked_multiply(t.name, 2, extent - 1);
    std::int64_t length = s.given() && s.values()[i] != -1 ? s.values()[i] : extent;
    check_length(t, length);
    result.lengths.push_back(length);
  }
  return result;
}

bool are_last(const Shape& axes, int ndim) {
  for (int i = 0; i < axes.size(); ++i) {
    if (axes[i] != ndim - axes.size() + i) return false;
  }
  return true;
}

Array along_axes(const Transform& t, const Array& a, const AxisList& s, const AxisList& axes) {
  AxisLengths over = resolve(t, a, s, axes);
  int count = over.axes.size();
  if (count == 0 && t.kind != FftKind::complex) {
    throw ValueError(
        fmt::format("{}: there is no axis to transform: {}", t.name, a.view().describe()));
  }
  if (count == 0) return a.astype(output_dtype(t, a.dtype()), true);
  bool at_once = a.device().is_cuda() && count > 1 && count <= kMaxRank;
  if (at_once && t.kind != FftKind::complex_to_real && are_last(over.axes, a.ndim())) {
    return transform_last(t, a, over.lengths);
  }
  // The real axis is the first to go and the last to come back.
  Array result = a;
  auto run = [&](FftKind kind, int i) {
    result = transform(t.as(kind), result, over.lengths[i], static_cast<int>(over.axes[i]));
  };
  if (t.kind == FftKind::complex_to_real) {
    for (int i = 0; i + 1 < count; ++i) run(FftKind::complex, i);
    run(t.kind, count - 1);
  } else {
    run(t.kind, count - 1);
    for (int i = count - 1; i-- > 0;) run(FftKind::complex, i);
  }
  return result;
}

Norm swapped(Norm norm) {
  if (norm == Norm::ortho) return norm;
  return norm == Norm::backward ? Norm::forward : Norm::backward;
}

// `a` rolled by half an axis, for each of `axes`.
Array shifted(const char* name, const Array& a, const AxisList& axes, bool back) {
  check_defined(name, a);
  Shape all;
  for (int i = 0; i < a.ndim(); ++i) all.push_back(i);
  Array result = a;
  for (std::int64_t axis : axes.given() ? axes.values() : all) {
    int i = normalize_axis(name, axis, a.ndim());
    std::int64_t n = a.shape()[i], head = back ? n / 2 : n - n / 2;
    if (n < 2) continue;
    Shape front = result.shape(), rest = result.shape();
    front[i] = head;
    rest[i] = n - head;
    result = concatenate({new_view(result, head * result.strides()[i], rest, result.strides()),
                          new_view(result, 0, front, result.strides())},
                         i);
  }
  return result.view().data == a.view().data ? a.copy() : result;
}

double spacing(const char* name, std::int64_t n, double d) {
  if (n < 1) throw ValueError(fmt::format("{}: {} values have no frequencies", name, n));
  return 1 / (static_cast<double>(n) * d);
}

constexpr FftKind kComplex = FftKind::complex;
constexpr FftKind kToComplex = FftKind::real_to_complex;
constexpr FftKind kToReal = FftKind::complex_to_real;

const AxisList kLastTwo = {-2, -1};

Dtype frequency_dtype(const char* name, const std::optional<Dtype>& dtype) {
  if (!dtype || dtype_kind(*dtype) == 'f') return dtype.value_or(float64);
  throw DtypeError(fmt::format("{}: frequencies are not of {}", name, dtype_name(*dtype)));
}

}  // namespace

Norm::Norm(const char* word) {
  std::string_view given = word ? word : "";
  if (given == "backward") kind_ = backward;
  else if (given == "ortho") kind_ = ortho;
  else if (given == "forward") kind_ = forward;
  else {
    throw ValueError(fmt::format(
        "fft: norm is \"{}\"; it has to be \"backward\", \"ortho\" or \"forward\"", given));
  }
}

#define RENSA_FFT(name, kind, inverse)                                                \
  Array name(const Array& a, const FftOptions& o) {                                   \
    Array result = along_axis({"fft." #name, kind, inverse, o.norm}, a, o.n, o.axis); \
    return rensa::detail::deliver("fft." #name, result, o.out);                       \
  }
#define RENSA_FFTN(name, kind, inverse, usual)                                             \
  Array name(const Array& a, const FftnOptions& o) {                                       \
    Array result =                                                                         \
        along_axes({"fft." #name, kind, inverse, o.norm}, a, o.s, o.axes.value_or(usual)); \
    return rensa::detail::deliver("fft." #name, result, o.out);                            \
  }
RENSA_FFT(fft, kComplex, false)
RENSA_FFT(ifft, kComplex, true)
RENSA_FFTN(fft2, kComplex, false, kLastTwo)
RENSA_FFTN(ifft2, kComplex, true, kLastTwo)
RENSA_FFTN(fftn, kComplex, false, AxisList())
RENSA_FFTN(ifftn, kComplex, true, AxisList())

RENSA_FFT(rfft, kToComplex, false)
RENSA_FFT(irfft, kToReal, true)
RENSA_FFTN(rfft2, kToComplex, false, kLastTwo)
RENSA_FFTN(irfft2, kToReal, true, kLastTwo)
RENSA_FFTN(rfftn, kToComplex, false, AxisList())
RENSA_FFTN(irfftn, kToReal, true, AxisList())
#undef RENSA_FFT
#undef RENSA_FFTN

Array hfft(const Array& a, const FftOptions& o) {
  check_defined("fft.hfft", a);
  Array conjugate = dtype_kind(a.dtype()) == 'c' ? xp::conjugate(a) : a;
  Array result = along_axis({"fft.hfft", kToReal, true, swapped(o.norm)}, conjugate, o.n, o.axis);
  return rensa::detail::deliver("fft.hfft", result, o.out);
}
Array ihfft(const Array& a, const FftOptions& o) {
  Array result = along_axis({"fft.ihfft", kToComplex, false, swapped(o.norm)}, a, o.n, o.axis);
  return rensa::detail::deliver("fft.ihfft", xp::conjugate(result), o.out);
}

Array fftfreq(std::int64_t n, double d, Placement device) {
  double step = spacing("fft.fftfreq", n, d);
  Array whole = concatenate(
      {arange(0, (n - 1) / 2 + 1, 1, float64, device), arange(-(n / 2), 0, 1, float64, device)});
  return xp::multiply(whole, step);
}
Array fftfreq(std::int64_t n, double d, const FreqOptions& options) {
  Dtype dtype = frequency_dtype("fft.fftfreq", options.dtype);
  return fftfreq(n, d, options.device).astype(dtype, false);
}
Array rfftfreq(std::int64_t n, double d, const FreqOptions& options) {
  Dtype dtype = frequency_dtype("fft.rfftfreq", options.dtype);
  return rfftfreq(n, d, options.device).astype(dtype, false);
}
Array rfftfreq(std::int64_t n, double d, Placement device) {
  double step = spacing("fft.rfftfreq", n, d);
  return xp::multiply(arange(0, n / 2 + 1, 1, float64, device), step);
}

Array fftshift(const Array& a, AxisList axes) { return shifted("fft.fftshift", a, axes, false); }
Array ifftshift(const Array& a, AxisList axes) { return shifted("fft.ifftshift", a, axes, true); }

}  // namespace rensa::xp::fft
