// The CPU's memory of arrays that a test takes: how much of it, and a pattern over what it gives
// back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include "rensa/device/heap_hook.h"

namespace rensa::testing {

/// Counts the bytes that are in use, and overwrites what is given back with NaN, so that a later
/// read of it shows.
struct HeapInUse final : HeapHook {
  void heap_malloc(const void* data, std::int64_t nbytes) override {
    sizes[data] = nbytes;
    most = std::max(most, now += nbytes);
  }
  void heap_free(const void* data) override {
    auto known = sizes.find(data);
    if (known == sizes.end()) return;
    std::memset(const_cast<void*>(data), 0xff, static_cast<std::size_t>(known->second));
    now -= known->second;
    sizes.erase(known);
  }
  /// The most since the last call.
  std::int64_t take_most() {
    std::int64_t result = most;
    most = now;
    return result;
  }
  std::map<const void*, std::int64_t> sizes;
  std::int64_t now = 0, most = 0;
};

}  // namespace rensa::testing
