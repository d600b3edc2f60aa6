// How records that overlap are shown: one above the other, in lanes.
#pragma once

#include <cstddef>
#include <vector>

#include "rensa/device/timeline.h"

namespace rensa::timeline {

/// Sorts a row's records by their beginning and gives the lane of each, counted from 0: the first
/// in which none overlaps with it.
std::vector<std::size_t> arrange_lanes(std::vector<const Record*>& records);

}  // namespace rensa::timeline
