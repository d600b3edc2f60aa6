// Rows of recurrent networks, with zeros behind their elements where products want rows of a
// certain length, and the weights of a layer in one array.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/autograd/function_node.h"

namespace rensa::functions::detail {

/// A last axis of `count` blocks behind one another. Each has `from` elements and gets `to` of
/// them: zeros are put behind, or the last ones are left out.
struct Blocks {
  std::int64_t count, from, to;
};

/// Each x with its blocks so resized, in memory of its own. `zeros` (n,) are of the longest blocks,
/// or longer. Of any order of derivatives.
Variables resize_blocks(const Variables& xs, const std::vector<Blocks>& blocks, const Array& zeros);

/// Weights (units, in) or biases (units,) that go behind one another along axis 0.
struct WeightGroup {
  Indexes members;
  std::int64_t rows;  // that each of them gets, `units` or more; the last ones are zeros
  Blocks columns;     // of weights
};

/// The groups, each in one array. `zeros` (n,) are of the longest rows; undefined where nothing is
/// resized.
Variables join_weights(const Variables& all, const std::vector<WeightGroup>& groups,
                       const Array& zeros);

}  // namespace rensa::functions::detail
