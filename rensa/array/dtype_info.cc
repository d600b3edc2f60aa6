// NumPy's questions about dtypes.
#include "rensa/array/dtype_info.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"

namespace rensa::xp {

bool can_cast(Dtype from, Dtype to, Casting casting) {
  switch (casting) {
    case Casting::no:
    case Casting::equiv: return from == to;
    case Casting::safe: return promote_types(from, to) == to;
    case Casting::same_kind: return can_cast_same_kind(from, to);
    default: return true;
  }
}

bool can_cast(Dtype from, Dtype to, std::string_view casting) {
  constexpr std::string_view names[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
  for (int i = 0; i < 5; ++i) {
    if (casting == names[i]) return can_cast(from, to, static_cast<Casting>(i));
  }
  throw ValueError(fmt::format(
      "can_cast: \"{}\" names no casting, only no, equiv, safe, same_kind and unsafe do", casting));
}

bool can_cast(const Array& from, Dtype to, Casting casting) {
  return can_cast(from.dtype(), to, casting);
}

Dtype result_type(std::span<const TypeArgument> arguments) {
  if (arguments.empty()) throw ValueError("result_type: no arguments");
  DtypeSet dtypes;
  bool any = false;
  for (const TypeArgument& a : arguments) {
    if (a.weak()) continue;
    dtypes.add(a.dtype());
    any = true;
  }
  Dtype common = dtypes.promoted();
  for (const TypeArgument& a : arguments) {
    if (!a.weak()) continue;
    common =
        any ? a.scalar().result_type(common) : promote_types(common, a.scalar().default_dtype());
  }
  return common;
}

Dtype common_type(std::span<const Array> arrays) {
  Dtype common = float16;
  for (const Array& a : arrays) {
    char kind = dtype_kind(a.dtype());
    if (kind == 'b') {
      throw DtypeError(fmt::format("common_type: {} are no numbers", a.view().describe()));
    }
    common = promote_types(common, kind == 'f' || kind == 'c' ? a.dtype() : float64);
  }
  return common;
}

Dtype common_type(std::initializer_list<Array> arrays) {
  return common_type(std::span<const Array>(arrays.begin(), arrays.size()));
}

Dtype min_scalar_type(Scalar value) {
  if (value.kind() == 'b') return bool_;
  if (value.is_integral()) {
    for (Dtype d : {uint8, int8, uint16, int16, uint32, int32, uint64}) {
      if (!rensa::detail::is_out_of_range(value, d)) return d;
    }
    return int64;
  }
  // A float stays finite; that it is rounded does not count.
  auto finite_in = [](double x, double most) { return !(std::abs(x) >= most) || std::isinf(x); };
  double real = value.real(), imaginary = 0;
  if (value.kind() == 'c') imaginary = value.as<std::complex<double>>().imag();
  bool in_float = finite_in(real, 3.4e38) && finite_in(imaginary, 3.4e38);
  if (value.kind() == 'c') return in_float ? complex64 : complex128;
  return finite_in(real, 65000) ? float16 : in_float ? float32 : float64;
}

Dtype min_scalar_type(const Array& a) { return a.dtype(); }

finfo::finfo(Dtype d) : dtype(d == complex64 ? float32 : d == complex128 ? float64 : d) {
  switch (dtype) {
    case Dtype::float16: nmant = 10, nexp = 5; break;
    case Dtype::bfloat16: nmant = 7, nexp = 8; break;
    case Dtype::float32: nmant = 23, nexp = 8; break;
    case Dtype::float64: nmant = 52, nexp = 11; break;
    default:
      throw DtypeError(
          fmt::format("finfo: {} is no floating dtype; iinfo answers for integers", dtype_name(d)));
  }
  bits = 1 + nexp + nmant;
  maxexp = 1 << (nexp - 1);
  minexp = 2 - maxexp;
  eps = std::ldexp(1.0, -nmant);
  epsneg = eps / 2;
  max = std::ldexp(2 - eps, maxexp - 1);
  min = -max;
  smallest_normal = tiny = std::ldexp(1.0, minexp);
  smallest_subnormal = std::ldexp(1.0, minexp - nmant);
  precision = static_cast<int>(nmant * std::log10(2.0));
  resolution = std::pow(10.0, -precision);
}

iinfo::iinfo(Dtype d) : dtype(d), bits(static_cast<int>(itemsize(d)) * 8) {
  bool is_signed = dtype_kind(d) == 'i';
  if (!is_signed && dtype_kind(d) != 'u') {
    throw DtypeError(
        fmt::format("iinfo: {} is no integer dtype; finfo answers for floats", dtype_name(d)));
  }
  max = ~std::uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
  min = is_signed ? -static_cast<std::int64_t>(max) - 1 : 0;
}

bool issubdtype(Dtype dtype, Kind kind) {
  char k = dtype_kind(dtype);
  switch (kind) {
    case Kind::generic: return true;
    case Kind::number: return k != 'b';
    case Kind::integer: return k == 'i' || k == 'u';
    case Kind::signedinteger: return k == 'i';
    case Kind::unsignedinteger: return k == 'u';
    case Kind::inexact: return k == 'f' || k == 'c';
    case Kind::floating: return k == 'f';
    default: return k == 'c';
  }
}

bool issubdtype(Dtype dtype, Dtype other) { return dtype == other; }

bool isdtype(Dtype dtype, std::string_view kind) {
  char k = dtype_kind(dtype);
  if (kind == "bool") return k == 'b';
  if (kind == "signed integer") return k == 'i';
  if (kind == "unsigned integer") return k == 'u';
  if (kind == "integral") return k == 'i' || k == 'u';
  if (kind == "real floating") return k == 'f';
  if (kind == "complex floating") return k == 'c';
  if (kind == "numeric") return k != 'b';
  throw ValueError(
      fmt::format("isdtype: \"{}\" names no kind; the kinds are bool, signed integer, "
                  "unsigned integer, integral, real floating, complex floating and "
                  "numeric",
                  kind));
}

bool isdtype(Dtype dtype, Dtype other) { return dtype == other; }

bool isdtype(Dtype dtype, std::initializer_list<std::string_view> kinds) {
  return isdtype(dtype, std::span<const std::string_view>(kinds.begin(), kinds.size()));
}

bool isdtype(Dtype dtype, std::span<const std::string_view> kinds) {
  bool any = false;
  for (std::string_view kind : kinds) any |= isdtype(dtype, kind);
  return any;
}

std::map<std::string, std::int64_t> array_namespace_info::capabilities() {
  return {{"boolean indexing", 1}, {"data-dependent shapes", 1}, {"max dimensions", kMaxNdim}};
}

Device array_namespace_info::default_device() { return ThreadState::current().device; }

std::map<std::string, Dtype> array_namespace_info::default_dtypes(std::optional<Device>) {
  return {{"real floating", float32},
          {"complex floating", complex128},
          {"integral", int64},
          {"indexing", int64}};
}

std::vector<Device> array_namespace_info::devices() {
  std::vector<Device> result = {cpu()};
  for (int i = 0; i < num_gpus(); ++i) result.push_back(gpu(i));
  return result;
}

std::map<std::string, Dtype> array_namespace_info::dtypes(
    std::optional<Device>, std::initializer_list<std::string_view> kind) {
  std::map<std::string, Dtype> result;
  for (Dtype d : {bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16,
                  bfloat16, float32, float64, complex64, complex128}) {
    if (kind.size() == 0 || isdtype(d, kind)) result.emplace(dtype_name(d), d);
  }
  return result;
}

}  // namespace rensa::xp
