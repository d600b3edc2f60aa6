// The rows of pointwise.def as data.
#include <cmath>

#include "rensa/operations/pointwise/pointwise_functors.h"
#include "rensa/operations/pointwise/pointwise_rows.h"

namespace rensa {

namespace pointwise {

#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)                           \
  constinit const PointwiseRow name{#name, static_cast<int>(Index::name), DtypeRule::rule, \
                                    pw::num_inputs<pw::name>, pw::num_outputs<pw::name>};  \
  static_assert(pw::num_inputs<pw::name> <= kMostPointwiseInputs);                         \
  static_assert(pw::num_outputs<pw::name> <= kMostPointwiseOutputs);                       \
  static_assert(DtypeRule::rule == DtypeRule::floating || DtypeRule::rule == DtypeRule::analytic);
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE

std::span<const PointwiseRow* const> all_rows() {
  static constexpr const PointwiseRow* kRows[kNumRows] = {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements) &name,
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
  };
  return kRows;
}

}  // namespace pointwise

}  // namespace rensa
