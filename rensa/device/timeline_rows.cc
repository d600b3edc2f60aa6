#include "rensa/device/timeline_rows.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rensa::timeline {

std::vector<std::size_t> arrange_lanes(std::vector<const Record*>& records) {
  std::stable_sort(records.begin(), records.end(), [](const Record* a, const Record* b) {
    return std::pair(a->begin_ns, -a->end_ns) < std::pair(b->begin_ns, -b->end_ns);
  });
  std::vector<std::size_t> lane;
  std::vector<std::int64_t> ends;
  for (const Record* record : records) {
    std::size_t free = 0;
    while (free < ends.size() && ends[free] > record->begin_ns) ++free;
    if (free == ends.size()) ends.push_back(0);
    ends[free] = record->end_ns;
    lane.push_back(free);
  }
  return lane;
}

}  // namespace rensa::timeline
