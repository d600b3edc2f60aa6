// Ufuncs as objects, NumPy's protocol: xp::add(a, b), xp::add.reduce(a), xp::add.at(a, index, b),
// xp::add.types(). One constant a public row of ops.def (array/ufuncs/).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/options.h"
#include "rensa/core/ufunc_info.h"

namespace rensa::xp {

/// NumPy's keywords of ufunc.reduce.
struct UfuncReduceOptions {
  rensa::detail::NamedOptions named = {};
  /// One axis, several (of ufuncs whose operands may change places) or `none`, which is all.
  Axes axis = 0;
  bool keepdims = false;  // the reduced axes stay, of extent 1
  /// What to compute in, and so the result's dtype.
  std::optional<Dtype> dtype = {};
  /// Where the results go, converted ("same_kind"); what the call returns.
  ArrayOption out = {};
  /// What the reduction starts with; needed for nothing where there is no identity.
  std::optional<Scalar> initial = {};
  /// bool: which elements count; a ufunc without an identity needs `initial` then.
  ArrayOption where = {};
};

/// NumPy's keywords of ufunc.accumulate and ufunc.reduceat.
struct UfuncAxisOptions {
  rensa::detail::NamedOptions named = {};
  int axis = 0;                     // one axis; negative ones count from the end
  std::optional<Dtype> dtype = {};  // what to compute in, and so the result's
  ArrayOption out = {};  // where the results go, converted ("same_kind"); what the call returns
};

/// What NumPy tells of a ufunc.
class UfuncObject {
 public:
  constexpr explicit UfuncObject(const UfuncInfo& row) : row_(row) {}
  /// The row of ops.def.
  constexpr Ufunc row() const { return row_; }
  std::string_view name() const { return ufunc_info(row_).name; }
  int nin() const { return ufunc_info(row_).inputs; }  // inputs
  int nout() const { return 1; }                       // outputs
  int nargs() const { return nin() + 1; }              // inputs and outputs
  /// What it computes, by NumPy's letters: "ff->f". bfloat16, which has none, is left out.
  std::vector<std::string> types() const;
  int ntypes() const { return static_cast<int>(types().size()); }
  /// What changes nothing: the result of reducing nothing. None where NumPy has None.
  std::optional<Scalar> identity() const;

 private:
  Ufunc row_;
};

/// A ufunc of one operand.
class UnaryUfunc : public UfuncObject {
 public:
  using UfuncObject::UfuncObject;
  [[nodiscard]] Array operator()(const Array& a) const;
  Array operator()(const Array& a, const UfuncOptions& options) const;
  /// a[index] = f(a[index]), an element as often as it is named; results are converted in whatever
  /// way. Throws IndexError, DtypeError. Waits for the device.
  void at(const Array& a, const Array& index) const;
  void at(const Array& a, std::initializer_list<Index> index) const;
};

/// A ufunc of two operands. The methods along an axis are NumPy's; only those of add, multiply,
/// maximum, minimum, fmax, fmin, logical_and and logical_or reduce by one kernel, other associative
/// ones by a logarithm of the axis's extent, the rest (subtract, divide, power ...) by a launch an
/// element of the axis. Narrow integers are added and multiplied in 64 bits unless `dtype` says
/// otherwise. They throw DtypeError where the result's dtype is not the operands' (less of floats),
/// IndexError, ShapeError, and ValueError for nothing without an identity.
class BinaryUfunc : public UfuncObject {
 public:
  using UfuncObject::UfuncObject;
  [[nodiscard]] Array operator()(const Array& a, const Array& b) const;
  [[nodiscard]] Array operator()(const Array& a, Scalar b) const;
  [[nodiscard]] Array operator()(Scalar a, const Array& b) const;
  Array operator()(const Array& a, const Array& b, const UfuncOptions& options) const;
  Array operator()(const Array& a, Scalar b, const UfuncOptions& options) const;
  Array operator()(Scalar a, const Array& b, const UfuncOptions& options) const;

  /// f(... f(f(a[0], a[1]), a[2]) ...) along `axis`, the first one where it is left out.
  Array reduce(const Array& a, const UfuncReduceOptions& options) const;
  [[nodiscard]] Array reduce(const Array& a) const { return reduce(a, UfuncReduceOptions{}); }
  template <AxisLike T>
  [[nodiscard]] Array reduce(const Array& a, const T& axis, bool keepdims = false) const {
    return reduce(a, UfuncReduceOptions{.axis = Axes(axis), .keepdims = keepdims});
  }
  template <std::same_as<int> I>
  [[nodiscard]] Array reduce(const Array& a, std::initializer_list<I> axes,
                             bool keepdims = false) const {
    return reduce(a, UfuncReduceOptions{.axis = Axes(axes), .keepdims = keepdims});
  }
  /// The results on the way to that of reduce, one for each element of the axis.
  Array accumulate(const Array& a, const UfuncAxisOptions& options) const;
  [[nodiscard]] Array accumulate(const Array& a, int axis = 0) const {
    return accumulate(a, UfuncAxisOptions{.axis = axis});
  }
  /// For each i of the 1-d integer array `indices` the reduction of a[indices[i]:indices[i + 1]],
  /// to the end for the last one, or the element a[indices[i]] where the next index is not greater.
  /// Throws IndexError for an index that is negative or beyond the axis. Waits for the device.
  Array reduceat(const Array& a, const Array& indices, const UfuncAxisOptions& options) const;
  [[nodiscard]] Array reduceat(const Array& a, const Array& indices, int axis = 0) const {
    return reduceat(a, indices, UfuncAxisOptions{.axis = axis});
  }
  /// f of every element of `a` with every one of `b`, of shape a.shape() + b.shape().
  Array outer(const Array& a, const Array& b, const UfuncOptions& options = {}) const;
  /// a[index] = f(a[index], b), an element as often as it is named; results are converted in
  /// whatever way. Throws IndexError, DtypeError. Waits for the device, but for add, maximum and
  /// minimum of what is of a's kind, which are scatter_add, scatter_max and scatter_min.
  void at(const Array& a, const Array& index, const Array& b) const;
  void at(const Array& a, const Array& index, Scalar b) const;
  void at(const Array& a, std::initializer_list<Index> index, const Array& b) const;
  void at(const Array& a, std::initializer_list<Index> index, Scalar b) const;
};

}  // namespace rensa::xp
