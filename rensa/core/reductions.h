// The reductions as values: identifiers and dtype rules, from reductions.def. Those whose
// accumulators are more than a value stand beside the table: argmax and argmin carry positions,
// deviations (the sum of |a - mean|^2) a mean, nanmean a count.
#pragma once

#include <cstdint>

#include "rensa/core/dtype.h"
#include "rensa/core/ufunc.h"

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

enum class Reduction : std::uint8_t {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) name,
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
  argmax,
  argmin,
  deviations,
  nanmean,
  count_
};

struct ReductionInfo {
  const char* name;
  ReductionRule rule;
};
const ReductionInfo& reduction_info(Reduction reduction);

/// Whether `reduction` is a row of reductions.def.
constexpr bool is_table_row(Reduction reduction) { return reduction < Reduction::argmax; }

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
