// Names of dtypes, and NumPy's rules for what two of them meet in.
#include "rensa/core/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "rensa/core/error.h"

namespace rensa {

namespace {

struct Name {
  std::string_view name;
  std::string_view code;      // numpy.dtype.char on a platform whose long has 64 bits
  std::string_view protocol;  // numpy.dtype.str without the byte order
};

// bfloat16 has neither a letter nor a protocol string in NumPy.
constexpr Name kNames[kNumDtypes] = {
    {"bool", "?", "b1"},    {"int8", "b", "i1"},      {"int16", "h", "i2"},
    {"int32", "i", "i4"},   {"int64", "l", "i8"},     {"uint8", "B", "u1"},
    {"uint16", "H", "u2"},  {"uint32", "I", "u4"},    {"uint64", "L", "u8"},
    {"float16", "e", "f2"}, {"bfloat16", "", ""},     {"float32", "f", "f4"},
    {"float64", "d", "f8"}, {"complex64", "F", "c8"}, {"complex128", "D", "c16"},
};

bool is_integer(Dtype d) { return dtype_kind(d) == 'i' || dtype_kind(d) == 'u'; }

Dtype signed_of_size(std::int64_t size) {
  return size <= 1 ? int8 : size <= 2 ? int16 : size <= 4 ? int32 : int64;
}
Dtype float_of_size(std::int64_t size) { return size <= 4 ? float32 : float64; }
Dtype complex_of_size(std::int64_t size) { return size <= 8 ? complex64 : complex128; }

Dtype promote_integers(Dtype a, Dtype b) {
  if (dtype_kind(a) == dtype_kind(b)) return itemsize(a) >= itemsize(b) ? a : b;
  std::int64_t signed_size = itemsize(dtype_kind(a) == 'i' ? a : b);
  std::int64_t unsigned_size = itemsize(dtype_kind(a) == 'i' ? b : a);
  std::int64_t size = std::max(signed_size, 2 * unsigned_size);
  return size > 8 ? float64 : signed_of_size(size);
}

// The float that holds every value of an integer or float `d`, or what NumPy takes for it.
Dtype float_holding(Dtype d) { return dtype_kind(d) == 'f' ? d : floating_dtype(d); }

// Two real dtypes, at least one of them a float.
Dtype promote_floats(Dtype a, Dtype b) {
  if (dtype_kind(a) != 'f') std::swap(a, b);
  if (dtype_kind(b) != 'f' && itemsize(b) == 1) return a;  // either 16-bit type holds them
  b = float_holding(b);
  // The two 16-bit types meet in float32.
  return a == b ? a : float_of_size(std::max(itemsize(a), itemsize(b)));
}

// NumPy's order of kinds; a same-kind cast never goes back in it.
int kind_order(Dtype d) {
  switch (dtype_kind(d)) {
    case 'b': return 0;
    case 'u': return 1;
    case 'i': return 2;
    case 'f': return 3;
    default: return 4;
  }
}

}  // namespace

std::string_view dtype_name(Dtype d) { return kNames[static_cast<int>(d)].name; }
std::ostream& operator<<(std::ostream& os, Dtype d) { return os << dtype_name(d); }

Dtype parse_dtype(std::string_view text) {
  std::string_view rest = text;
  bool protocol = !rest.empty() && (rest[0] == '<' || rest[0] == '|' || rest[0] == '=');
  if (protocol) rest.remove_prefix(1);
  for (int i = 0; i < kNumDtypes && !rest.empty(); ++i) {
    const Name& n = kNames[i];
    if (rest == n.protocol || rest == n.code || (!protocol && rest == n.name)) {
      return static_cast<Dtype>(i);
    }
  }
  if (!protocol && rest == "bool_") return bool_;
  if (!rest.empty() && rest[0] == '>') {
    throw DtypeError(fmt::format(
        "dtype: \"{}\" is big-endian; only little-endian data is read, swap its bytes first",
        text));
  }
  throw DtypeError(fmt::format(
      "dtype: \"{}\" names no dtype; the dtypes are bool, int8 to int64, uint8 to uint64, float16, "
      "bfloat16, float32, float64, complex64 and complex128",
      text));
}

Dtype promote_types(Dtype a, Dtype b) {
  if (a == b || b == bool_) return a;
  if (a == bool_) return b;
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  bool a_complex = dtype_kind(a) == 'c', b_complex = dtype_kind(b) == 'c';
  if (!a_complex && !b_complex) return promote_floats(a, b);
  auto complex_size = [](Dtype d, bool complex) {
    return complex ? itemsize(d) : 2 * itemsize(float_holding(d));
  };
  return complex_of_size(std::max(complex_size(a, a_complex), complex_size(b, b_complex)));
}

Dtype DtypeSet::promoted() const {
  auto each = [&](auto f) {
    for (int i = 0; i < kNumDtypes; ++i) {
      if (bits_ >> i & 1u) f(static_cast<Dtype>(i));
    }
  };
  Dtype widest = bool_;  // of the floats and complex numbers
  each([&](Dtype d) {
    if (d >= float16) widest = promote_types(widest, d);
  });
  Dtype result = widest;
  each([&](Dtype d) {
    result = promote_types(result, widest == bool_ ? d : promote_types(widest, d));
  });
  return result;
}

Dtype floating_dtype(Dtype d) {
  if (dtype_kind(d) == 'f' || dtype_kind(d) == 'c') return d;
  return itemsize(d) == 1 ? float16 : itemsize(d) == 2 ? float32 : float64;
}

bool can_cast_same_kind(Dtype from, Dtype to) { return kind_order(from) <= kind_order(to); }

}  // namespace rensa
