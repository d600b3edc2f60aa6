// The reductions as values: dtype rules of the rows of reductions.def, and of those beside it whose
// accumulators are more than a value: argmax and argmin carry positions, deviations (the sum of
// |a - mean|^2), variance and standard_deviation a mean, nanmean a count.
#pragma once

#include <cstdint>
#include <span>

#include "rensa/core/dtype.h"
#include "rensa/core/ufunc_info.h"

namespace rensa {

enum class ReductionRule : std::uint8_t {
  sum,         // bool and narrow integers to (u)int64, else same
  mean,        // integers to float64, else same
  order,       // b i u f -> same; an empty reduction is an error
  nan_sum,     //     f c -> same; numbers alone count
  nan_order,   //     f   -> same; numbers alone count; an empty reduction is an error
  count,       // all -> int64, counted in 64 bits
  truth,       // b i u f -> bool
  position,    // b i u f -> int64; an empty reduction is an error
  deviations,  // b i u f -> integers to float64, else same
  nan_mean,    //     f c -> same
};

struct ReductionInfo {
  const char* name;
  ReductionRule rule;
  int number;
  bool is_row;             // of reductions.def
  double (*of_nothing)();  // what comes of no elements, where they are no error
};
/// A reduction: reduction::sum and so on. Those that the library's own code names stand here.
using Reduction = Row<ReductionInfo>;
namespace reduction {
extern const ReductionInfo sum, prod, mean, max, min, any, all, sum_of_squares, count_nonzero;
extern const ReductionInfo nansum, nanprod, nanmax, nanmin, norm;
extern const ReductionInfo argmax, argmin, deviations, variance, standard_deviation, nanmean;
}  // namespace reduction

inline const ReductionInfo& reduction_info(Reduction reduction) { return reduction.info(); }

/// All of them, the rows of reductions.def first.
std::span<const Reduction> all_reductions();

/// The dtypes that `reduction` of an array of `input` computes in and returns. Throws DtypeError.
UfuncTypes reduction_types(Reduction reduction, Dtype input);

/// Whether kernels of `rule` exist over `type`: what a backend has to instantiate.
constexpr bool rule_takes(ReductionRule rule, ComputeType type) {
  bool complex = type == ComputeType::c64 || type == ComputeType::c128;
  bool integer = type == ComputeType::i64 || type == ComputeType::u64;
  switch (rule) {
    case ReductionRule::sum: return true;
    case ReductionRule::mean:
    case ReductionRule::nan_mean:
    case ReductionRule::nan_sum: return !integer;
    case ReductionRule::deviations:
    case ReductionRule::nan_order: return !integer && !complex;
    case ReductionRule::count: return type != ComputeType::f32 && type != ComputeType::c64;
    default: return !complex;
  }
}

}  // namespace rensa
