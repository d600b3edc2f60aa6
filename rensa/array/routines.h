// The routines of namespace xp, NumPy's names. Every creation routine takes a device, the current
// one when left out; every other runs on the device of its operands.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/core/ufunc.h"

namespace rensa {

/// Where a creation routine puts its array: a Device, or the thread's current one.
class Placement {
 public:
  Placement() = default;
  Placement(Device device) : device_(device), given_(true) {}
  Device device() const;

 private:
  Device device_;
  bool given_ = false;
};

}  // namespace rensa

namespace rensa::xp {

// --- creation (array/creation.cc) --------------------------------------------------------------
Array empty(const Shape& shape, Dtype dtype = float32, Placement device = {});
Array zeros(const Shape& shape, Dtype dtype = float32, Placement device = {});
Array ones(const Shape& shape, Dtype dtype = float32, Placement device = {});
Array full(const Shape& shape, Scalar value, Dtype dtype, Placement device = {});
Array full(const Shape& shape, Scalar value, Placement device = {});  // the value's own dtype
Array empty_like(const Array& a);
Array zeros_like(const Array& a);
Array ones_like(const Array& a);
Array full_like(const Array& a, Scalar value);
/// Page-locked host memory.
Array empty_pinned(const Shape& shape, Dtype dtype = float32);
/// Evenly spaced values in [start, stop). Integers give int64 and floats float64 unless said.
Array arange(Scalar stop, Dtype dtype, Placement device = {});
Array arange(Scalar stop, Placement device = {});
Array arange(Scalar start, Scalar stop, Scalar step, Dtype dtype, Placement device = {});
Array arange(Scalar start, Scalar stop, Scalar step = 1, Placement device = {});
Array linspace(double start, double stop, std::int64_t num = 50, Dtype dtype = float64,
               Placement device = {});
Array eye(std::int64_t n, Dtype dtype = float32, Placement device = {});

/// An array of host values: xp::array({1.f, 2.f}), xp::array({{1, 2}, {3, 4}}), xp::array(vector).
/// int gives int64, as in NumPy; other types their own dtype. The values are copied before the call
/// returns.
Array from_host(const void* data, const Shape& shape, Dtype dtype, Placement device = {});
namespace detail {
template <class T> struct ElementOf { using type = T; };
template <> struct ElementOf<int> { using type = std::int64_t; };
[[noreturn]] void throw_ragged(std::size_t expected, std::size_t row, std::size_t got);
}  // namespace detail
template <class T> Array array(std::span<const T> values, Placement device = {}) {
  using E = typename detail::ElementOf<T>::type;
  if constexpr (std::same_as<E, T>) {
    return from_host(values.data(), {static_cast<std::int64_t>(values.size())}, dtype_of<E>,
                     device);
  } else {
    std::vector<E> converted(values.begin(), values.end());
    return from_host(converted.data(), {static_cast<std::int64_t>(values.size())}, dtype_of<E>,
                     device);
  }
}
template <class T>
requires(!std::same_as<T, bool>) Array array(const std::vector<T>& values, Placement device = {}) {
  return array(std::span<const T>(values), device);
}
template <class T> Array array(std::initializer_list<T> values, Placement device = {}) {
  return array(std::span<const T>(values.begin(), values.size()), device);
}
template <class T>
Array array(std::initializer_list<std::initializer_list<T>> rows, Placement device = {}) {
  std::vector<T> values;
  std::size_t columns = rows.size() ? rows.begin()->size() : 0, row = 0;
  for (const auto& r : rows) {
    if (r.size() != columns) detail::throw_ragged(columns, row, r.size());
    values.insert(values.end(), r.begin(), r.end());
    ++row;
  }
  return array(std::span<const T>(values), device)
      .reshape({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}
/// A 0-d array.
template <class T>
requires std::is_arithmetic_v<T> Array array(T value, Placement device = {}) {
  return array(std::span<const T>(&value, 1), device).reshape({});
}
Array asarray(const Array& a, Dtype dtype);

// --- elementwise: one function a row of ops.def (array/elementwise.cc) ---------------------------
#define RENSA_DECLARE_1(name) Array name(const Array& a);
#define RENSA_DECLARE_2(name)                 \
  Array name(const Array& a, const Array& b); \
  Array name(const Array& a, Scalar b);       \
  Array name(Scalar a, const Array& b);
#define RENSA_DECLARE_3(name)                                 \
  Array name(const Array& a, const Array& b, const Array& c); \
  Array name(const Array& a, const Array& b, Scalar c);       \
  Array name(const Array& a, Scalar b, const Array& c);       \
  Array name(const Array& a, Scalar b, Scalar c);
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_DECLARE_##inputs(name)
#define RENSA_KERNEL(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_KERNEL
#undef RENSA_DECLARE_1
#undef RENSA_DECLARE_2
#undef RENSA_DECLARE_3
inline Array abs(const Array& a) { return absolute(a); }
inline Array invert(const Array& a) { return ~a; }

/// An operand of `elementwise`: an array or a number.
struct ElementwiseArgument {
  ElementwiseArgument(const Array& a) : array(&a) {}
  template <std::convertible_to<Scalar> T> ElementwiseArgument(T number) : scalar(number) {}
  const Array* array = nullptr;
  Scalar scalar;
};
/// Any row of ops.def, internal ones too: broadcasts, promotes, allocates (or writes `out`), runs.
Array elementwise(Ufunc ufunc, std::initializer_list<ElementwiseArgument> arguments,
                  const Array* out = nullptr);

// --- joining and shaping (array/manipulation.cc) -------------------------------------------------
Array reshape(const Array& a, const Shape& shape);
Array transpose(const Array& a);
Array transpose(const Array& a, const Shape& axes);
Array broadcast_to(const Array& a, const Shape& shape);
Array concatenate(std::span<const Array> arrays, int axis = 0);
Array concatenate(std::initializer_list<Array> arrays, int axis = 0);
Array stack(std::span<const Array> arrays, int axis = 0);
/// `a` summed to `shape`, the reverse of broadcasting.
Array sum_to(const Array& a, const Shape& shape);

// --- reductions (array/reduce.cc)
// ------------------------------------------------------------------
Array sum(const Array& a, Axes axis = {}, bool keepdims = false);
Array prod(const Array& a, Axes axis = {}, bool keepdims = false);
Array mean(const Array& a, Axes axis = {}, bool keepdims = false);
Array max(const Array& a, Axes axis = {}, bool keepdims = false);
Array min(const Array& a, Axes axis = {}, bool keepdims = false);
Array any(const Array& a, Axes axis = {}, bool keepdims = false);
Array all(const Array& a, Axes axis = {}, bool keepdims = false);
Array argmax(const Array& a);
Array argmax(const Array& a, int axis, bool keepdims = false);
Array argmin(const Array& a);
Array argmin(const Array& a, int axis, bool keepdims = false);
/// Waits for the device.
bool array_equal(const Array& a, const Array& b);
bool allclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8);

// --- products (array/linalg.cc)
// ---------------------------------------------------------------------
/// NumPy's matmul: 1-d operands are promoted, leading axes broadcast. Throws ShapeError,
/// DtypeError.
Array matmul(const Array& a, const Array& b);
Array dot(const Array& a, const Array& b);
/// x @ w.T + bias for x (n, k), w (m, k), bias (m,) or undefined; the products of functions/linear.
Array linear(const Array& x, const Array& w, const Array& bias);

}  // namespace rensa::xp

namespace rensa::xp::random {

// --- random numbers (array/random.cc): Philox, one generator a device
// ------------------------------
/// Restarts the generators of all devices (or of one) from `seed`. Unseeded, RENSA_SEED or entropy.
void seed(std::uint64_t seed);
void seed(std::uint64_t seed, Device device);
Array uniform(double low, double high, const Shape& shape, Dtype dtype = float32,
              Placement device = {});
Array random(const Shape& shape, Dtype dtype = float32, Placement device = {});  // [0, 1)
Array normal(double loc, double scale, const Shape& shape, Dtype dtype = float32,
             Placement device = {});
Array randint(std::int64_t low, std::int64_t high, const Shape& shape, Dtype dtype = int64,
              Placement device = {});
/// A random order of 0..n-1 (int64): a stable sort by key, so equal on CPU and GPU for one seed.
Array permutation(std::int64_t n, Placement device = {});

/// Seed and position of a device's generator, as numbers that a captured step asks anew each
/// replay. `count` Philox counters are taken.
struct GeneratorPosition {
  HostScalar seed, offset;
};
GeneratorPosition take(Device device, std::int64_t count);

}  // namespace rensa::xp::random
