// The dtype rules of the elementwise operations.
#include "rensa/core/ufunc_info.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

namespace {

#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)

namespace number {
enum : int {
#define RENSA_UFUNC(name, inputs, rule, expression) name,
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
};
}  // namespace number

// The kinds that a rule takes.
constexpr std::string_view kinds_of(DtypeRule rule) {
  switch (rule) {
    case DtypeRule::arithmetic: return "iufc";
    case DtypeRule::real:
    case DtypeRule::real_bool:
    case DtypeRule::floating:
    case DtypeRule::exponent:
    case DtypeRule::comparison:
    case DtypeRule::real_predicate: return "biuf";
    case DtypeRule::bit_count:
    case DtypeRule::bitwise:
    case DtypeRule::shift: return "biu";
    case DtypeRule::integer: return "iu";
    default: return "biufc";
  }
}

std::string spell_kinds(std::string_view kinds) {
  std::string text;
  for (char kind : kinds) {
    if (!text.empty()) text += ", ";
    text += kind == 'b'   ? "bool"
            : kind == 'i' ? "signed integers"
            : kind == 'u' ? "unsigned integers"
            : kind == 'f' ? "floats"
                          : "complex numbers";
  }
  return text;
}

Dtype real_dtype(Dtype d) { return d == complex64 ? float32 : d == complex128 ? float64 : d; }

}  // namespace

namespace ufunc {
#define RENSA_UFUNC(name, inputs, rule, expression) \
  extern const UfuncInfo name;                      \
  constinit const UfuncInfo name = {#name, inputs, DtypeRule::rule, number::name};
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
}  // namespace ufunc

std::span<const Ufunc> all_ufuncs() {
  static constexpr Ufunc rows[] = {
#define RENSA_UFUNC(name, inputs, rule, expression) ufunc::name,
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
  };
  return rows;
}

bool ufunc_takes(Ufunc ufunc, Dtype common) {
  return kinds_of(ufunc_info(ufunc).rule).find(dtype_kind(common)) != std::string_view::npos;
}

UfuncTypes ufunc_types(Ufunc ufunc, Dtype common) {
  const UfuncInfo& info = ufunc_info(ufunc);
  char kind = dtype_kind(common);
  if (!ufunc_takes(ufunc, common)) {
    throw DtypeError(fmt::format("{}: {} is not taken, only {}; cast with astype", info.name,
                                 dtype_name(common), spell_kinds(kinds_of(info.rule))));
  }
  switch (info.rule) {
    case DtypeRule::number:
    case DtypeRule::real:
    case DtypeRule::shift: {
      Dtype d = kind == 'b' ? int8 : common;
      return {d, d};
    }
    case DtypeRule::doubles: {
      Dtype d = kind == 'c' ? complex128 : float64;
      return {d, d};
    }
    case DtypeRule::floating:
    case DtypeRule::exponent:
    case DtypeRule::analytic: return {floating_dtype(common), floating_dtype(common)};
    case DtypeRule::bit_count: return {common, uint8};
    case DtypeRule::real_predicate:
    case DtypeRule::predicate: return {floating_dtype(common), bool_};
    case DtypeRule::division: {
      Dtype d = kind == 'f' || kind == 'c' ? common : float64;
      return {d, d};
    }
    case DtypeRule::magnitude: return {common, real_dtype(common)};
    case DtypeRule::equality:
    case DtypeRule::comparison: return {common, bool_};
    default: return {common, common};
  }
}

Ufunc kernel_row(Ufunc ufunc, Dtype compute) {
  if (compute == float16 && ufunc == ufunc::nextafter) return ufunc::next_float16;
  if (compute == bfloat16 && ufunc == ufunc::nextafter) return ufunc::next_bfloat16;
  return compute == bool_ && ufunc == ufunc::invert ? ufunc::logical_not : ufunc;
}

ComputeType compute_type(Dtype d) {
  switch (dtype_kind(d)) {
    case 'b':
    case 'i': return ComputeType::i64;
    case 'u': return ComputeType::u64;
    case 'f': return d == float64 ? ComputeType::f64 : ComputeType::f32;
    default: return d == complex64 ? ComputeType::c64 : ComputeType::c128;
  }
}

}  // namespace rensa
