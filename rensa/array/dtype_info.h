// NumPy's questions about dtypes. Nothing here touches a device.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::xp {

/// What a conversion may lose, from nothing to everything.
enum class Casting { no, equiv, safe, same_kind, unsafe };

/// Whether an array of `from` may be converted to `to`. bfloat16 stands where float16 does.
bool can_cast(Dtype from, Dtype to, Casting casting = Casting::safe);
/// By NumPy's name: "no", "equiv", "safe", "same_kind", "unsafe". Throws ValueError for others.
bool can_cast(Dtype from, Dtype to, std::string_view casting);
bool can_cast(const Array& from, Dtype to, Casting casting = Casting::safe);

using rensa::promote_types;

/// One argument of result_type: an array, a dtype, or a number, which is weak (NEP 50).
class TypeArgument {
 public:
  TypeArgument(const Array& a) : dtype_(a.dtype()) {}
  TypeArgument(Dtype d) : dtype_(d) {}
  template <class T>
  requires(!std::same_as<T, Dtype> && std::convertible_to<T, Scalar>) TypeArgument(T number)
      : scalar_(number), weak_(true) {}
  bool weak() const { return weak_; }     // whether it is a number, whose kind alone counts
  Dtype dtype() const { return dtype_; }  // of an array or a dtype
  const Scalar& scalar() const { return scalar_; }  // where it is weak

 private:
  Dtype dtype_ = Dtype::bool_;
  Scalar scalar_;
  bool weak_ = false;
};
/// The dtype that all meet in. Throws ValueError for no arguments.
Dtype result_type(std::span<const TypeArgument> arguments);
inline Dtype result_type(std::initializer_list<TypeArgument> arguments) {
  return result_type(std::span<const TypeArgument>(arguments.begin(), arguments.size()));
}
template <class... A>
requires(std::convertible_to<const A&, TypeArgument>&&...) Dtype
    result_type(const A&... arguments) {
  return result_type({TypeArgument(arguments)...});
}
/// The dtype of arrays' numbers in floats: float64 for integers. Throws DtypeError for bool.
Dtype common_type(std::span<const Array> arrays);
Dtype common_type(std::initializer_list<Array> arrays);
/// The smallest dtype that holds the number: uint8 for 10, int16 for -200, float16 for 1.5. The
/// dtype of an array.
Dtype min_scalar_type(Scalar value);
Dtype min_scalar_type(const Array& a);

/// The limits of a floating dtype (of its parts, for a complex one). Throws DtypeError for others.
struct finfo {
  explicit finfo(Dtype dtype);
  explicit finfo(const Array& a) : finfo(a.dtype()) {}
  Dtype dtype;                // of the parts
  int bits;                   // of the parts
  int nmant, nexp;            // bits of the fraction and of the exponent
  int minexp, maxexp;         // the least exponent of a normal number; the first that overflows
  int precision;              // decimal digits
  double eps, epsneg;         // from 1 to the next number, and to the one before
  double max, min;            // the greatest and the least number
  double smallest_normal;     // the least positive normal number
  double tiny;                // the same
  double smallest_subnormal;  // the least positive number
  double resolution;          // 10 ** -precision
};

/// The limits of an integer dtype. Throws DtypeError for others.
struct iinfo {
  explicit iinfo(Dtype dtype);
  explicit iinfo(const Array& a) : iinfo(a.dtype()) {}
  Dtype dtype;
  int bits;           // of an element
  std::int64_t min;   // the least number
  std::uint64_t max;  // the greatest number
};

/// NumPy's abstract types of dtypes.
enum class Kind {
  generic,
  number,
  integer,
  signedinteger,
  unsignedinteger,
  inexact,
  floating,
  complexfloating,
};
/// Whether `dtype` is one of `kind`, or is the other dtype. bool is generic and nothing else.
bool issubdtype(Dtype dtype, Kind kind);
bool issubdtype(Dtype dtype, Dtype other);

/// The array API's: "bool", "signed integer", "unsigned integer", "integral", "real floating",
/// "complex floating", "numeric". Throws ValueError for others.
bool isdtype(Dtype dtype, std::string_view kind);
bool isdtype(Dtype dtype, Dtype other);
/// Whether any of the kinds says so.
bool isdtype(Dtype dtype, std::span<const std::string_view> kinds);
bool isdtype(Dtype dtype, std::initializer_list<std::string_view> kinds);

/// The array API's questions about the namespace.
struct array_namespace_info {
  /// "boolean indexing" and "data-dependent shapes" (1: yes), "max dimensions".
  static std::map<std::string, std::int64_t> capabilities();
  /// The calling thread's current device.
  static Device default_device();
  /// Of "real floating", "complex floating", "integral" and "indexing".
  static std::map<std::string, Dtype> default_dtypes(std::optional<Device> device = {});
  /// The CPU and every GPU that there is.
  static std::vector<Device> devices();
  /// By name, all or those of some of isdtype's kinds.
  static std::map<std::string, Dtype> dtypes(std::optional<Device> device = {},
                                             std::initializer_list<std::string_view> kind = {});
};

/// Whether the argument is a number, and no array (a 0-d one neither).
template <class T> constexpr bool isscalar(const T&) {
  return std::convertible_to<T, Scalar> && !std::derived_from<T, Array>;
}

}  // namespace rensa::xp
