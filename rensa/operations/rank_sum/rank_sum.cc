// Cutting arrays into the pieces that each rank sums.
#include "rensa/operations/rank_sum/rank_sum.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/device/peers.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kTogether = std::int64_t{2} << 20;  // bytes of a rank's, at least
constexpr std::int64_t kAligned = 16;                      // bytes that a piece begins at

void check_alike(std::span<const std::vector<Operand>> arrays) {
  const std::vector<Operand>& first = arrays[0];
  for (std::size_t rank = 0; rank < arrays.size(); ++rank) {
    const std::vector<Operand>& own = arrays[rank];
    if (own.size() != first.size()) {
      throw ShapeError(fmt::format("rank_sum: {} arrays on rank 0 and {} on rank {}", first.size(),
                                   own.size(), rank));
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      const ArrayView &a = first[i].view, &b = own[i].view;
      if (dtype_kind(b.dtype) != 'f') {
        throw DtypeError(fmt::format("rank_sum: sums floating arrays, got {}", b.describe()));
      }
      if (a.dtype != b.dtype || a.size() != b.size()) {
        throw ShapeError(fmt::format("rank_sum: array {} is {} on rank 0 and {} on rank {}", i,
                                     a.describe(), b.describe(), rank));
      }
      if (!b.is_c_contiguous()) {
        throw ShapeError(
            fmt::format("rank_sum: works in place on C-contiguous arrays, got {} with strides {}; "
                        "pass its ascontiguous()",
                        b.describe(), b.strides.str()));
      }
    }
  }
}

void check_reach(std::span<const std::vector<Operand>> arrays) {
  std::vector<Device> devices;
  for (const std::vector<Operand>& own : arrays) {
    for (const Operand& array : own) {
      if (array.view.device == own[0].view.device) continue;
      throw DeviceError(
          fmt::format("rank_sum: a rank's arrays are {} and {}; move one with .to(...)",
                      own[0].view.describe(), array.view.describe()));
    }
    devices.push_back(own[0].view.device);
  }
  if (cuda::share_memory(devices)) return;
  std::vector<std::string> names;
  for (Device device : devices) names.push_back(device.str());
  throw DeviceError(fmt::format(
      "rank_sum: {} do not reach each other's memory; add the arrays up by copies of them",
      fmt::join(names, ", ")));
}

/// Elements [begin, end) of a contiguous array.
Operand part(const Operand& array, std::int64_t begin, std::int64_t end) {
  Operand result = array;
  std::int64_t size = itemsize(array.view.dtype);
  result.view.data += begin * size;
  result.view.shape = Shape{end - begin};
  result.view.strides = Shape{size};
  return result;
}

/// The places of arrays of one dtype that go together. Those of a rare dtype come from far apart:
/// groups stand in the order in which they are complete.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Operand>& arrays) {
  struct Open {
    std::size_t group = 0;
    std::int64_t bytes = kTogether;  // so far
  };
  std::map<Dtype, Open> open;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    auto& [group, bytes] = open[arrays[i].view.dtype];
    if (bytes >= kTogether) {
      group = groups.size();
      bytes = 0;
      groups.emplace_back();
    }
    groups[group].push_back(i);
    bytes += arrays[i].view.nbytes();
  }
  std::ranges::sort(groups, {}, [](const auto& group) { return group.back(); });
  return groups;
}

}  // namespace

std::vector<RankSum> rank_sums(std::span<const std::vector<Operand>> arrays) {
  std::vector<RankSum> sums;
  if (arrays.empty() || arrays[0].empty()) return sums;
  check_alike(arrays);
  check_reach(arrays);
  auto ranks = static_cast<std::int64_t>(arrays.size());
  for (const std::vector<std::size_t>& group : groups_of(arrays[0])) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      RankSum sum;
      sum.ranks = static_cast<int>(ranks);
      sum.rank = static_cast<int>(rank);
      for (std::size_t i : group) {
        const ArrayView& view = arrays[0][i].view;
        std::int64_t unit = kAligned / itemsize(view.dtype);
        std::int64_t units = (view.size() + unit - 1) / unit;
        std::int64_t begin = units * rank / ranks * unit;
        std::int64_t end = std::min(units * (rank + 1) / ranks * unit, view.size());
        if (begin >= end) continue;
        for (const std::vector<Operand>& own : arrays) {
          sum.pieces.push_back(part(own[i], begin, end));
        }
      }
      if (!sum.pieces.empty()) sums.push_back(std::move(sum));
    }
  }
  return sums;
}

}  // namespace rensa::operations
