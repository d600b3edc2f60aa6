// NumPy's questions about dtypes. Nothing here touches a device.
#pragma once

#include <string>
#include <string_view>

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
  bool weak() const { return weak_; }
  Dtype dtype() const { return dtype_; }
  const Scalar& scalar() const { return scalar_; }

 private:
  Dtype dtype_ = Dtype::bool_;
  Scalar scalar_;
  bool weak_ = false;
};
/// The dtype that all meet in. Throws ValueError for no arguments.
Dtype result_type(std::initializer_list<TypeArgument> arguments);
template <class... A> Dtype result_type(const A&... arguments) {
  return result_type({TypeArgument(arguments)...});
}

/// The limits of a floating dtype (of its parts, for a complex one). Throws DtypeError for others.
struct finfo {
  explicit finfo(Dtype dtype);
  explicit finfo(const Array& a) : finfo(a.dtype()) {}
  Dtype dtype;             // of the parts
  int bits;                // of the parts
  int nmant, nexp;         // bits of the fraction and of the exponent
  int minexp, maxexp;      // the least exponent of a normal number; the first that overflows
  int precision;           // decimal digits
  double eps, epsneg;      // from 1 to the next number, and to the one before
  double max, min;         // the greatest and the least number
  double smallest_normal;  // the least positive normal number
  double tiny;             // the same
  double smallest_subnormal;
  double resolution;  // 10 ** -precision
};

/// The limits of an integer dtype. Throws DtypeError for others.
struct iinfo {
  explicit iinfo(Dtype dtype);
  explicit iinfo(const Array& a) : iinfo(a.dtype()) {}
  Dtype dtype;
  int bits;
  std::int64_t min;
  std::uint64_t max;
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
bool isdtype(Dtype dtype, std::initializer_list<std::string_view> kinds);

/// Whether the argument is a number, and no array (a 0-d one neither).
template <class T> constexpr bool isscalar(const T&) {
  return std::convertible_to<T, Scalar> && !std::derived_from<T, Array>;
}

}  // namespace rensa::xp
