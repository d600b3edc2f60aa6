#include "rensa/optimizers/gradient_packs.h"

#include <algorithm>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/manipulation.h"

namespace rensa::detail {

std::vector<Alike> groups_of(const std::vector<Array>& arrays) {
  std::vector<Alike> groups;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    auto same = std::ranges::find_if(groups, [&](const Alike& group) {
      return group.device == a.device() && group.dtype == a.dtype();
    });
    if (same == groups.end()) same = groups.insert(same, {a.device(), a.dtype(), {}});
    same->members.push_back(i);
  }
  return groups;
}

Array Ends::joined() const {
  if (arrays_.size() == 1) return arrays_[0].ravel();
  std::vector<Array> flat;
  for (const Array& a : arrays_) flat.push_back(a.ravel());
  return flat.empty() ? xp::empty({0}, dtype_, device_) : xp::concatenate(flat);
}

void Ends::assign(const Array& joined, std::int64_t at) const {
  std::vector<CopyPair> parts;
  for (const Array& a : arrays_) {
    parts.push_back({joined[Slice(at, at + a.size())].reshape(a.shape()), a});
    at += a.size();
  }
  copy_parts("multi_node_optimizer", parts);
}

std::vector<Ends> packs_of(const std::vector<Array>& arrays) {
  std::vector<Ends> packs;
  for (const Alike& group : groups_of(arrays)) {
    std::int64_t bytes = 0;
    for (auto i = group.members.rbegin(); i != group.members.rend(); ++i) {
      if (bytes == 0 || bytes + arrays[*i].nbytes() > kPackBytes) {
        packs.emplace_back(group.device, group.dtype);
        bytes = 0;
      }
      packs.back().add(arrays[*i]);
      bytes += arrays[*i].nbytes();
    }
  }
  return packs;
}

void in_packs(const std::vector<Array>& arrays, const MadeOfArray& make) {
  for (const Ends& pack : packs_of(arrays)) pack.assign(make(pack.joined()));
}

}  // namespace rensa::detail
