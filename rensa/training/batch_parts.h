// A batch taken in parts, one after the other, whose gradients add up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rensa/autograd/variable.h"

namespace rensa::training {

/// Calls use(part, share) for each of `count` parts of a batch's columns along axis 0, of almost
/// equal sizes, with the share of the samples that the part has; fewer where there are not so many
/// samples.
template <class Use> void each_part(const Variables& columns, std::int64_t count, Use&& use) {
  std::int64_t n = columns.empty() || columns[0].ndim() == 0 ? 1 : columns[0].shape(0);
  count = std::min(count, n);
  if (count <= 1) return use(columns, 1.0);
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t begin = k * n / count, end = (k + 1) * n / count;
    Variables part;
    for (const Variable& column : columns) {
      part.push_back(constant(column.array()[Slice(begin, end)]));
    }
    use(part, static_cast<double>(end - begin) / static_cast<double>(n));
  }
}

}  // namespace rensa::training
