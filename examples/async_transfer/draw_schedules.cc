// Draws docs/pictures/transfer_*.svg: when copies and kernels run, by their order and the rates
// that benchmarks/RESULTS.md has for an H200. async_transfer draws what it has recorded on a GPU.
#include <rensa/array.h>

#include <algorithm>
#include <string>
#include <vector>

#include "arguments.h"

using namespace rensa;
using timeline::Kind;

constexpr double kBytes = 80e6;       // of an array, float64 of (1000, 10000)
constexpr double kPinned = 55.1e9;    // bytes per second to the device
constexpr double kPageable = 16.7e9;  // likewise, through pinned pieces
constexpr double kCopy = kBytes / kPinned, kStaged = kBytes / kPageable;
constexpr double kKernels = 25 * 2 * kBytes / 4164e9;  // 25 multiplications: read and written
constexpr double kCall = 10e-6;                        // of the host, to queue something

/// Bars that are placed by hand; times in seconds.
struct Schedule {
  std::vector<timeline::Record> records;
  /// A bar on stream `row` of a GPU (0: the host's) that starts at `begin`; returns its end.
  double add(Kind kind, const std::string& name, int row, double begin, double length) {
    timeline::Record r;
    r.kind = kind;
    r.name = name;
    r.begin_ns = static_cast<std::int64_t>(begin * 1e9);
    r.end_ns = static_cast<std::int64_t>((begin + length) * 1e9);
    r.device = row == 0 ? cpu() : gpu(0);
    r.row = row == 0 ? 1 : row;
    records.push_back(r);
    return begin + length;
  }
  void draw(const std::string& path, const std::string& title, double milliseconds) const {
    timeline::draw(records, path, {.width = 900, .to_ms = milliseconds, .title = title});
  }
};

constexpr double kShown = 11;  // ms, the same for the three, so that they compare

/// Pageable sources: each call stages its array and returns when it is sent.
static Schedule pageable() {
  Schedule s;
  double host = 0;
  for (int i = 1; i <= 2; ++i) {
    std::string name = "array" + std::to_string(i);
    s.add(Kind::copy_to_device, name, i, host, kStaged);
    host = s.add(Kind::wait, name + ".set", 0, host, kStaged);
  }
  s.add(Kind::operation, "*= 2", 0, host, 25 * kCall);
  s.add(Kind::kernel, "*= 2", 1, host + kCall, kKernels);
  return s;
}

/// Pinned sources: the calls only queue. The copies share the way to the GPU, so that they come one
/// after the other on two streams as well.
static Schedule pinned(bool two_streams) {
  Schedule s;
  double host = s.add(Kind::operation, "set", 0, 0, kCall);
  host = s.add(Kind::operation, "set", 0, host, kCall);
  double first = s.add(Kind::copy_to_device, "array1", 1, kCall, kCopy);
  double second = s.add(Kind::copy_to_device, "array2", two_streams ? 2 : 1, first, kCopy);
  double begin = two_streams ? first : second;  // stream1.synchronize()
  s.add(Kind::wait, "stream1.synchronize", 0, host, begin - host);
  s.add(Kind::operation, "*= 2", 0, begin, 25 * kCall);
  s.add(Kind::kernel, "*= 2", 1, begin + kCall, kKernels);
  return s;
}

/// Six batches of half that size, each worked on for as long as its copy takes: sent when it is
/// needed, or while the one before is worked on, into the one of two slots that is free.
static Schedule batches(bool ahead) {
  constexpr double kLength = kCopy / 2;
  Schedule s;
  double copied = 0, computed = 0, freed[2] = {0, 0};
  for (int i = 0; i < 6; ++i) {
    std::string name = std::to_string(i);
    double free = ahead ? freed[i % 2] : computed;
    copied = s.add(Kind::copy_to_device, name, ahead ? 2 : 1, std::max(copied, free), kLength);
    computed = s.add(Kind::kernel, name, 1, std::max(computed, copied), kLength);
    freed[i % 2] = computed;
  }
  return s;
}

int main(int argc, char** argv) {
  std::string folder = ".";
  Arguments("Draws when copies and kernels run")
      .text("folder", &folder, "where transfer_*.svg are written")
      .parse(argc, argv);
  pageable().draw(folder + "/transfer_pageable.svg", "Pageable memory, two streams", kShown);
  pinned(false).draw(folder + "/transfer_one_stream.svg", "Pinned memory, one stream", kShown);
  pinned(true).draw(folder + "/transfer_two_streams.svg", "Pinned memory, two streams", kShown);
  batches(false).draw(folder + "/transfer_in_turns.svg", "Batches sent when they are needed",
                      kShown);
  batches(true).draw(folder + "/transfer_two_slots.svg", "Batches sent ahead, into two slots",
                     kShown);
}
