// How the CPU's benchmarks beside other libraries time: both sides see the same machine, and what
// else that does only ever adds.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace rensa::benchmarks {

/// The least seconds a call of seven timings of `calls` calls, after an untimed one.
template <class F> double fastest_seconds(const F& f, int calls) {
  f();
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 7; ++turn) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) f();
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    least = std::min(least, elapsed.count() / calls);
  }
  return least;
}

}  // namespace rensa::benchmarks
