// Labels of pictures as an array.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::datasets {

/// The labels as `dtype`. Throws ValueError naming `dataset` for one that it cannot hold.
Array image_labels(const char* dataset, const std::vector<std::int64_t>& labels, Dtype dtype);

}  // namespace rensa::datasets
