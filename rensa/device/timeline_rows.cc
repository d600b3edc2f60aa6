#include "rensa/device/timeline_rows.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <utility>

namespace rensa::timeline {

std::vector<std::size_t> arrange_lanes(std::vector<const Record*>& records) {
  std::stable_sort(records.begin(), records.end(), [](const Record* a, const Record* b) {
    return std::pair(a->begin_ns, -a->end_ns) < std::pair(b->begin_ns, -b->end_ns);
  });
  std::vector<std::size_t> lane;
  using Busy = std::pair<std::int64_t, std::size_t>;  // until when, which lane
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::set<std::size_t> free;
  for (const Record* record : records) {
    for (; !busy.empty() && busy.top().first <= record->begin_ns; busy.pop()) {
      free.insert(busy.top().second);
    }
    if (free.empty()) free.insert(busy.size());
    std::size_t first = free.extract(free.begin()).value();
    busy.emplace(record->end_ns, first);
    lane.push_back(first);
  }
  return lane;
}

}  // namespace rensa::timeline
