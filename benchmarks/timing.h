// What the benchmarks share: five timings, their median, and how a figure is printed.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "rensa/device/stream.h"

namespace rensa::benchmarks {

/// Waits for everything queued on `device`; nothing to do on the CPU.
inline void wait_for(Device device) {
  if (device.is_cuda()) cuda::synchronize(device);
}

/// Seconds per call in five timings of `n` calls each, the least first, after `warm_up` untimed
/// ones.
template <class F>
std::array<double, 5> sorted_seconds(F&& f, int n, Device device, int warm_up = 4) {
  for (int i = 0; i < warm_up; ++i) f();
  std::array<double, 5> seconds;
  for (double& s : seconds) {
    wait_for(device);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) f();
    wait_for(device);
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    s = elapsed.count() / n;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

/// Median seconds per call of those timings.
template <class F> double median_seconds(F&& f, int n, Device device, int warm_up = 4) {
  return sorted_seconds(f, n, device, warm_up)[2];
}

/// One figure on a line of its own, as JSON; `more` is further members, each after a comma.
inline void print_figure(const std::string& name, double value, const char* unit,
                         const std::string& more = "") {
  std::printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"%s}\n", name.c_str(), value,
              unit, more.c_str());
  std::fflush(stdout);
}

}  // namespace rensa::benchmarks
