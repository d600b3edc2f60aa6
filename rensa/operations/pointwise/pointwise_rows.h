// The rows of pointwise.def by name. Who includes this is compiled again for each new row.
#pragma once

#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::pointwise {

#define RENSA_POINTWISE(name, rule, inputs, outputs, statements) extern const PointwiseRow name;
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE

/// The rows' places in the table.
enum class Index : int {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements) name,
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
  count_
};
inline constexpr int kNumRows = static_cast<int>(Index::count_);

}  // namespace rensa::pointwise
