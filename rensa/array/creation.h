// Routines that make arrays. Every one takes a device, the current one when left out; what is made
// from an array is made on that array's device.
#pragma once

#include <complex>
#include <concepts>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/host_values.h"

namespace rensa {

/// Where a creation routine puts its array: a Device, or the thread's current one.
class Placement {
 public:
  Placement() = default;
  Placement(Device device) : device_(device), given_(true) {}
  Device device() const;  // the current one where none was given
  /// Whether a device was named.
  bool given() const { return given_; }

 private:
  Device device_;
  bool given_ = false;
};

}  // namespace rensa

namespace rensa::xp {

// --- of one value ---
/// NumPy's keywords of empty, zeros, ones and full. The order is 'C' or 'F'.
struct CreationOptions {
  rensa::detail::NamedOptions named = {};
  std::optional<Dtype> dtype = {};
  Order order = 'C';
  Placement device = {};  // the current device when left out
};
/// A shape is {3, 4}, or n for {n}.
[[nodiscard]] Array empty(const Shape& shape, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array empty(const Shape& shape, const CreationOptions& options);
/// 0 everywhere.
[[nodiscard]] Array zeros(const Shape& shape, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array zeros(const Shape& shape, const CreationOptions& options);
/// 1 everywhere.
[[nodiscard]] Array ones(const Shape& shape, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array ones(const Shape& shape, const CreationOptions& options);
[[nodiscard]] Array full(const Shape& shape, Scalar value, Dtype dtype, Placement device = {});
[[nodiscard]] Array full(const Shape& shape, Scalar value,
                         Placement device = {});  // the value's own dtype
[[nodiscard]] Array full(const Shape& shape, Scalar value, const CreationOptions& options);
/// Where a ..._like routine differs from its model: zeros_like(a, {.dtype = float64}).
struct Like {
  std::optional<Dtype> dtype = {};
  std::optional<Shape> shape = {};    // the model's when left out
  std::optional<Device> device = {};  // the model's when left out
  Order order = 'C';                  // 'K' and 'A' take after the model
};
[[nodiscard]] Array empty_like(const Array& a, const Like& like = {});
[[nodiscard]] Array zeros_like(const Array& a, const Like& like = {});
[[nodiscard]] Array ones_like(const Array& a, const Like& like = {});
[[nodiscard]] Array full_like(const Array& a, Scalar value, const Like& like = {});
// What is written by mistake, told by what to write instead.
#define RENSA_CREATION_SLIPS(name)                                          \
  template <std::integral... N>                                             \
  requires(sizeof...(N) > 1) auto name(N...) {                              \
    static_assert(rensa::detail::kWrong<N...>,                              \
                  "a shape is one argument: write xp::" #name "({3, 4})");  \
    return Array();                                                         \
  }                                                                         \
  template <std::convertible_to<std::string_view> T>                        \
  auto name(const Shape&, const T&, Placement = {}) {                       \
    static_assert(rensa::detail::kWrong<T>,                                 \
                  "a dtype is no text: write xp::" #name                    \
                  "({3, 4}, float64), or parse_dtype(text) for the dtype"); \
    return Array();                                                         \
  }
RENSA_CREATION_SLIPS(empty)
RENSA_CREATION_SLIPS(zeros)
RENSA_CREATION_SLIPS(ones)
#undef RENSA_CREATION_SLIPS
/// Page-locked host memory.
[[nodiscard]] Array empty_pinned(const Shape& shape, Dtype dtype = float32);

// --- ranges ---
/// Evenly spaced values in [start, stop). Integers give int64 and floats float64 unless said.
[[nodiscard]] Array arange(Scalar stop, Dtype dtype, Placement device = {});
[[nodiscard]] Array arange(Scalar stop, Placement device = {});
[[nodiscard]] Array arange(Scalar start, Scalar stop, Scalar step, Dtype dtype,
                           Placement device = {});
[[nodiscard]] Array arange(Scalar start, Scalar stop, Scalar step = 1, Placement device = {});
[[nodiscard]] Array arange(Scalar start, Scalar stop, Scalar step, const CreationOptions& options);
[[nodiscard]] inline Array arange(Scalar start, Scalar stop, const CreationOptions& options) {
  return arange(start, stop, 1, options);
}
[[nodiscard]] Array arange(Scalar stop, const CreationOptions& options);
/// `num` values from start to stop, the latter included unless `endpoint` is false; integer dtypes
/// take the floor. Throws ValueError for num < 0.
[[nodiscard]] Array linspace(double start, double stop, std::int64_t num = 50,
                             Dtype dtype = float64, Placement device = {});
[[nodiscard]] Array linspace(double start, double stop, std::int64_t num, bool endpoint,
                             Dtype dtype = float64, Placement device = {});
struct LinspaceOptions {
  rensa::detail::NamedOptions named = {};
  bool endpoint = true;
  std::optional<Dtype> dtype = {};  // float64 when left out, complex128 of complex numbers
  int axis = 0;                     // of arrays: where the samples lie
  Placement device = {};            // not of arrays
};
[[nodiscard]] Array linspace(Scalar start, Scalar stop, std::int64_t num,
                             const LinspaceOptions& options);
/// Between complex numbers.
[[nodiscard]] Array linspace(std::complex<double> start, std::complex<double> stop,
                             std::int64_t num = 50);
/// linspace(retstep=True): the values, and the distance between two of them (NaN for one value).
std::pair<Array, double> linspace_retstep(double start, double stop, std::int64_t num = 50,
                                          bool endpoint = true, Dtype dtype = float64,
                                          Placement device = {});
/// Between the elements of two arrays, which broadcast; the samples lie along a new axis `axis`.
/// Integers give float64, unless `dtype` says otherwise.
[[nodiscard]] Array linspace(const Array& start, const Array& stop, std::int64_t num = 50,
                             const LinspaceOptions& options = {});
/// base ** linspace(start, stop, num, endpoint).
[[nodiscard]] Array logspace(double start, double stop, std::int64_t num = 50, bool endpoint = true,
                             double base = 10, Dtype dtype = float64, Placement device = {});
/// A geometric progression from start to stop, of one sign both and not 0 (else ValueError).
[[nodiscard]] Array geomspace(double start, double stop, std::int64_t num = 50,
                              bool endpoint = true, Dtype dtype = float64, Placement device = {});

// --- from host values and other arrays ---
/// `data`'s values, C-contiguous, copied before the call returns.
[[nodiscard]] Array from_host(const void* data, const Shape& shape, Dtype dtype,
                              Placement device = {});
/// An array of host values (rensa/array/host_values.h): xp::array(2.5), xp::array({{1, 2.5}, {3,
/// 4}}), xp::array(vector), of the values' own dtype (int gives int64, as in NumPy) or another. The
/// values are copied before the call returns. Throws ValueError for ragged lists and for integers
/// that the dtype cannot hold.
[[nodiscard]] Array array(const HostValues& values, Placement device = {});
[[nodiscard]] Array array(const HostValues& values, Dtype dtype, Placement device = {});
/// A copy of `a`, where it lies unless a device is given. (Templates, so that braces never mean an
/// Array.)
template <rensa::detail::ArrayLike A> [[nodiscard]] Array array(const A& a, Placement device = {}) {
  const Array& from = a;
  return from.copy(device.given() ? device.device() : from.device());
}
template <rensa::detail::ArrayLike A>
[[nodiscard]] Array array(const A& a, Dtype dtype, Placement device = {}) {
  const Array& from = a;
  Array cast = from.astype(dtype);
  return device.given() ? cast.to(device.device()) : cast;
}

/// What asarray is to make: the array-API standard's keywords.
struct AsarrayOptions {
  std::optional<Dtype> dtype = {};
  std::optional<Device> device = {};
  /// true: always a new array. false: never one, ValueError where it would take one.
  std::optional<bool> copy = {};
};
/// `a` itself where it has the dtype and lies on the device already, else a copy that does.
[[nodiscard]] Array asarray(const Array& a, const AsarrayOptions& options);
template <rensa::detail::ArrayLike A> [[nodiscard]] Array asarray(const A& a) {
  return asarray(a, AsarrayOptions{});
}
template <rensa::detail::ArrayLike A>
[[nodiscard]] Array asarray(const A& a, Dtype dtype, std::optional<Device> device = {}) {
  return asarray(a, AsarrayOptions{dtype, device, {}});
}
/// As array(), of host values, which always takes a copy (xp::wrap does not).
[[nodiscard]] Array asarray(const HostValues& values, Placement device = {});
[[nodiscard]] Array asarray(const HostValues& values, Dtype dtype, Placement device = {});
/// `a` itself where it is C-contiguous and of the dtype. A 0-d array becomes one of shape (1,).
[[nodiscard]] Array ascontiguousarray(const Array& a);
[[nodiscard]] Array ascontiguousarray(const Array& a, Dtype dtype);
/// A new array of the same values, C-contiguous unless `order` says otherwise.
[[nodiscard]] Array copy(const Array& a);
[[nodiscard]] Array copy(const Array& a, Order order);
/// Any dtype converts into any other, complex ones by their real part.
[[nodiscard]] Array astype(const Array& a, Dtype dtype);
[[nodiscard]] inline Array astype(const Array& a, Dtype dtype, Order order) {
  return a.astype(dtype, order);
}
/// copy = false: `a` itself when it has the dtype.
template <std::same_as<bool> B> [[nodiscard]] Array astype(const Array& a, Dtype dtype, B copy) {
  return a.astype(dtype, copy);
}
/// Throws DtypeError where `casting` does not allow the cast.
[[nodiscard]] Array astype(const Array& a, Dtype dtype, const AstypeOptions& options);
/// `a` itself, or a copy that has the dtype and each of the requirements: "C" (C-contiguous), "F"
/// (Fortran-contiguous), "A" (aligned), "W" (writable), "O" (memory of its own). Throws ValueError
/// for others.
[[nodiscard]] Array require(const Array& a, std::optional<Dtype> dtype = {},
                            std::span<const std::string_view> requirements = {});
[[nodiscard]] Array require(const Array& a, std::optional<Dtype> dtype,
                            std::initializer_list<std::string_view> requirements);
/// asarray that throws ValueError for infinities and NaN, for which it waits.
[[nodiscard]] Array asarray_chkfinite(const Array& a, std::optional<Dtype> dtype = {},
                                      Order order = 'K');
namespace detail {
void check_iter_count(std::int64_t got, std::int64_t count);
}  // namespace detail
/// Numbers that a range of C++ gives, one after the other, at most `count` of them unless it is
/// negative. Throws ValueError where there are fewer than `count`.
template <class R>
requires requires(R& r) { std::begin(r), std::end(r); }
[[nodiscard]] Array fromiter(R&& range, Dtype dtype, std::int64_t count = -1,
                             Placement device = {}) {
  std::vector<std::iter_value_t<decltype(std::begin(range))>> values;
  for (auto&& value : range) {
    if (count >= 0 && static_cast<std::int64_t>(values.size()) == count) break;
    values.push_back(value);
  }
  detail::check_iter_count(static_cast<std::int64_t>(values.size()), count);
  return array(values, dtype, device);
}

// --- matrices ---
[[nodiscard]] Array eye(std::int64_t n, Dtype dtype = float32, Placement device = {});
/// n rows and m columns with ones on diagonal k (k > 0: above the main one).
[[nodiscard]] Array eye(std::int64_t n, std::int64_t m, std::int64_t k = 0, Dtype dtype = float32,
                        Placement device = {});
/// NumPy's keywords of eye and tri.
struct EyeOptions {
  rensa::detail::NamedOptions named = {};
  std::optional<std::int64_t> M = {};  // columns, as many as rows when left out
  std::int64_t k = 0;
  std::optional<Dtype> dtype = {};  // float32 when left out
  Order order = 'C';                // 'C' or 'F'
  Placement device = {};            // the current device when left out
};
[[nodiscard]] Array eye(std::int64_t n, const EyeOptions& options);
/// N rows and columns, with ones on the main diagonal.
[[nodiscard]] Array identity(std::int64_t n, Dtype dtype = float32, Placement device = {});
/// Of a 1-d `v` the matrix that has it on diagonal k; of a 2-d one its diagonal k, a view. Throws
/// ShapeError for other arrays.
[[nodiscard]] Array diag(const Array& v, std::int64_t k = 0);
/// diag(v.ravel(), k).
[[nodiscard]] Array diagflat(const Array& v, std::int64_t k = 0);
/// Ones at and below diagonal k, n rows and m columns.
[[nodiscard]] Array tri(std::int64_t n, std::int64_t m, std::int64_t k = 0, Dtype dtype = float32,
                        Placement device = {});
[[nodiscard]] Array tri(std::int64_t n, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array tri(std::int64_t n, const EyeOptions& options);
/// The last two axes of `a` with zeros above (tril) or below (triu) diagonal k; of a 1-d array the
/// square matrix whose rows are it. A new array. Throws ShapeError for a 0-d array.
[[nodiscard]] Array tril(const Array& a, std::int64_t k = 0);
[[nodiscard]] Array triu(const Array& a, std::int64_t k = 0);
/// The powers of a 1-d x as columns, n of them (as many as x has elements when left out), falling
/// unless `increasing`.
[[nodiscard]] Array vander(const Array& x, std::optional<std::int64_t> n = {},
                           bool increasing = false);

// --- grids ---
/// One coordinate array for each 1-d (or 0-d) array: x[i] along axis i for indexing "ij", with the
/// first two axes exchanged for "xy". With `sparse` other axes have extent 1; without `copy` the
/// results are views. Throws ValueError for another word, ShapeError for other arrays.
struct MeshgridOptions {
  rensa::detail::NamedOptions named = {};
  std::string_view indexing = "xy";
  bool sparse = false, copy = true;
};
[[nodiscard]] std::vector<Array> meshgrid(std::span<const Array> arrays,
                                          const MeshgridOptions& options = {});
[[nodiscard]] std::vector<Array> meshgrid(std::initializer_list<Array> arrays,
                                          const MeshgridOptions& options = {});
[[nodiscard]] std::vector<Array> meshgrid(std::span<const Array> arrays, std::string_view indexing);
[[nodiscard]] std::vector<Array> meshgrid(std::initializer_list<Array> arrays,
                                          std::string_view indexing);
/// One axis of mgrid and ogrid: Python's start:stop:step, or with points() start:stop:num*1j, which
/// includes stop.
class GridAxis {
 public:
  template <std::convertible_to<Scalar> T> GridAxis(T stop) : stop_(Scalar(stop)) {}
  GridAxis(Scalar start, Scalar stop, Scalar step = 1) : start_(start), stop_(stop), step_(step) {}
  /// Throws ValueError for num < 0.
  static GridAxis points(double start, double stop, std::int64_t num);
  bool is_integral() const;  // whether arange of it is one of integers
  [[nodiscard]] Array values(Dtype dtype, Device device) const;  // its values: 1-d

 private:
  Scalar start_ = 0, stop_, step_ = 1;
  std::int64_t num_ = -1;
};
/// numpy.mgrid: the dense coordinates stacked along a new first axis; of one axis the 1-d values.
/// int64 where all numbers are integers, else float64.
[[nodiscard]] Array mgrid(std::initializer_list<GridAxis> axes, Placement device = {});
/// numpy.ogrid: coordinates that broadcast against one another.
[[nodiscard]] std::vector<Array> ogrid(std::initializer_list<GridAxis> axes, Placement device = {});

}  // namespace rensa::xp
