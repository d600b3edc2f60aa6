// A batch taken in parts, one after the other, whose gradients add up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rensa/autograd/variable.h"

namespace rensa::training {

/// The samples of a batch's columns.
inline std::int64_t num_samples(const Variables& columns) {
  return columns.empty() || columns[0].ndim() == 0 ? 1 : columns[0].shape(0);
}

/// How many parts there are of `count` that are asked for: fewer where there are not so many
/// samples.
inline std::int64_t num_parts(const Variables& columns, std::int64_t count) {
  return std::max(std::min(count, num_samples(columns)), std::int64_t{1});
}

/// Calls use(part, share) for each of the num_parts() parts of a batch's columns along axis 0, of
/// almost equal sizes, with the share of the samples that the part has.
template <class Use> void each_part(const Variables& columns, std::int64_t count, Use&& use) {
  const std::int64_t n = num_samples(columns);
  count = num_parts(columns, count);
  if (count == 1) return use(columns, 1.0);
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
