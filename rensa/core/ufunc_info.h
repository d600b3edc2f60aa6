// The elementwise operations as values: arity and dtype rules of the rows of ops.def.
#pragma once

#include <cstdint>
#include <span>

#include "rensa/core/dtype.h"
#include "rensa/core/row.h"

namespace rensa {

/// How a ufunc's result dtype follows from its inputs' common dtype, and which kinds it takes.
enum class DtypeRule : std::uint8_t {
  any,             // b i u f c -> same
  number,          // b i u f c -> same, bool to int8
  arithmetic,      //   i u f c -> same; bool is an error, as in numpy.subtract
  real,            // b i u f   -> same, bool to int8
  real_bool,       // b i u f   -> same
  floating,        // b i u f   -> f by floating_dtype
  exponent,        // b i u f   -> f by floating_dtype of the first; the second is an integer
  doubles,         // b i u f c -> float64, complex to complex128
  analytic,        // b i u f c -> f or c by floating_dtype
  division,        // b i u f c -> integers to float64, else same
  magnitude,       // b i u f c -> same, complex to its real type
  equality,        // b i u f c -> bool
  comparison,      // b i u f   -> bool
  predicate,       // b i u f c -> bool, computed in floating_dtype
  real_predicate,  // b i u f -> bool, computed in floating_dtype
  bitwise,         // b i u     -> same
  shift,           // b i u     -> same, bool to int8
  integer,         //   i u     -> same
  bit_count,       // b i u     -> uint8
  where,           // the condition is read as truth; the other two decide
};

/// What is known of a row of ops.def.
struct UfuncInfo {
  const char* name;  // NumPy's
  int inputs;        // operands: 1, 2 or 3
  DtypeRule rule;    // which dtypes it takes and gives
  int number;        // the row's place in ops.def
};
/// A row of ops.def: ufunc::add and so on. Those that the library's own code names are declared
/// here; another one is declared by whoever names it.
using Ufunc = Row<UfuncInfo>;
/// The rows that the library's own code names.
namespace ufunc {
extern const UfuncInfo copy, where, add, subtract, multiply, floor_divide, remainder, negative;
extern const UfuncInfo maximum, minimum, fmax, fmin, clip, equal, not_equal, less, less_equal;
extern const UfuncInfo greater, greater_equal, logical_and, logical_or, logical_xor, logical_not;
extern const UfuncInfo exp, log, power, sin, cos, tanh, rint, trunc, relu, relu_grad;
}  // namespace ufunc

inline const UfuncInfo& ufunc_info(Ufunc ufunc) { return ufunc.info(); }  // what is known of a row

/// All rows of ops.def, in its order.
std::span<const Ufunc> all_ufuncs();

/// What a ufunc computes in, and gives.
struct UfuncTypes {
  Dtype compute;  // what every input is converted to
  Dtype output;   // of the result
};
/// The dtypes that `ufunc` computes in and returns for inputs that meet in `common`. Throws
/// DtypeError naming the ufunc where it does not take that kind.
UfuncTypes ufunc_types(Ufunc ufunc, Dtype common);

/// Whether ufunc_types() has an answer for `common`.
bool ufunc_takes(Ufunc ufunc, Dtype common);

/// The row whose kernel computes `ufunc` in `compute`: mostly itself. nextafter has rows of its own
/// for the 16-bit floats, which compute in float, and invert of bool is logical_not.
Ufunc kernel_row(Ufunc ufunc, Dtype compute);

/// The type V of functors.h that a kernel computes `d` in.
enum class ComputeType : std::uint8_t { i64, u64, f32, f64, c64, c128 };
ComputeType compute_type(Dtype d);

/// Whether kernels of `rule` exist over `type`: what a backend has to instantiate.
constexpr bool rule_takes(DtypeRule rule, ComputeType type) {
  bool integer = type == ComputeType::i64 || type == ComputeType::u64;
  bool complex = type == ComputeType::c64 || type == ComputeType::c128;
  switch (rule) {
    case DtypeRule::any:
    case DtypeRule::number:
    case DtypeRule::arithmetic:
    case DtypeRule::magnitude:
    case DtypeRule::equality:
    case DtypeRule::where: return true;
    case DtypeRule::division:
    case DtypeRule::analytic:
    case DtypeRule::predicate: return !integer;
    case DtypeRule::real:
    case DtypeRule::real_bool:
    case DtypeRule::comparison: return !complex;
    case DtypeRule::floating:
    case DtypeRule::exponent:
    case DtypeRule::real_predicate: return !integer && !complex;
    case DtypeRule::doubles: return type == ComputeType::f64 || type == ComputeType::c128;
    case DtypeRule::bitwise:
    case DtypeRule::bit_count:
    case DtypeRule::integer:
    case DtypeRule::shift: return integer;
  }
  return false;
}

}  // namespace rensa
