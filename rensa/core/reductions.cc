// The dtype rules of the reductions.
#include "rensa/core/reductions.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

namespace {

constexpr ReductionInfo kInfos[static_cast<int>(Reduction::count_)] = {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) {#name, ReductionRule::rule},
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
    {"argmax", ReductionRule::position},
    {"argmin", ReductionRule::position},
    {"deviations", ReductionRule::deviations},
    {"nanmean", ReductionRule::nan_mean},
};

}  // namespace

const ReductionInfo& reduction_info(Reduction reduction) {
  return kInfos[static_cast<int>(reduction)];
}

UfuncTypes reduction_types(Reduction reduction, Dtype input) {
  const ReductionInfo& info = reduction_info(reduction);
  char kind = dtype_kind(input);
  bool integer = kind == 'b' || kind == 'i' || kind == 'u';
  if (info.rule == ReductionRule::sum) {
    Dtype d = kind == 'u' ? uint64 : integer ? int64 : input;
    return {d, d};
  }
  if (info.rule == ReductionRule::count) {
    return {kind == 'u' ? uint64 : integer ? int64 : kind == 'f' ? float64 : complex128, int64};
  }
  bool skips = info.rule == ReductionRule::nan_sum || info.rule == ReductionRule::nan_order ||
               info.rule == ReductionRule::nan_mean;
  if (skips && integer) {
    throw DtypeError(fmt::format("{}: {} is not taken, only floats and complex numbers", info.name,
                                 dtype_name(input)));
  }
  if (info.rule == ReductionRule::nan_sum || info.rule == ReductionRule::nan_mean) {
    return {input, input};
  }
  if (info.rule == ReductionRule::mean) {
    Dtype d = integer ? float64 : input;
    return {d, d};
  }
  if (kind == 'c') {
    throw DtypeError(
        fmt::format("{}: {} is not taken: complex numbers have no order; reduce the "
                    "real part, the imaginary part or the absolute value",
                    info.name, dtype_name(input)));
  }
  if (info.rule == ReductionRule::deviations && integer) return {float64, float64};
  if (info.rule == ReductionRule::truth) return {input, bool_};
  if (info.rule == ReductionRule::position) return {input, int64};
  return {input, input};
}

}  // namespace rensa
