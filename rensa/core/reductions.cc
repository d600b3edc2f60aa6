// The dtype rules of the reductions.
#include "rensa/core/reductions.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/core/reduction_functors.h"

namespace rensa {

namespace {

namespace number {
enum : int {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) name,
#define RENSA_REDUCTION_BESIDE(name, rule) name,
#include "rensa/core/reductions.def"
#include "rensa/core/reductions/beside.def"
#undef RENSA_REDUCTION
#undef RENSA_REDUCTION_BESIDE
};
}  // namespace number

}  // namespace

namespace reduction {
#define RENSA_INFO(name, rule, is_row, of_nothing)                         \
  extern const ReductionInfo name;                                         \
  constinit const ReductionInfo name = {#name, rule, number::name, is_row, \
                                        [] { return of_nothing; }};
#define RENSA_REDUCTION(name, rule, ...) \
  RENSA_INFO(name, ReductionRule::rule, true, red::name::post(red::name::identity<double>(), 0))
#define RENSA_REDUCTION_BESIDE(name, rule) RENSA_INFO(name, ReductionRule::rule, false, 0.0)
#include "rensa/core/reductions.def"
#include "rensa/core/reductions/beside.def"
#undef RENSA_REDUCTION
#undef RENSA_REDUCTION_BESIDE
#undef RENSA_INFO
}  // namespace reduction

std::span<const Reduction> all_reductions() {
  static constexpr Reduction rows[] = {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) reduction::name,
#define RENSA_REDUCTION_BESIDE(name, rule) reduction::name,
#include "rensa/core/reductions.def"
#include "rensa/core/reductions/beside.def"
#undef RENSA_REDUCTION
#undef RENSA_REDUCTION_BESIDE
  };
  return rows;
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
