// The limit of host memory and the error beyond it.
#include "rensa/core/host_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "rensa/core/error.h"

namespace rensa {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;

std::atomic<std::int64_t>& limit() {
  static std::atomic<std::int64_t> most{
      std::min<std::int64_t>(kMost, 2 * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE))};
  return most;
}

}  // namespace

std::int64_t most_host_memory() { return limit().load(std::memory_order_relaxed); }

std::int64_t limit_host_memory(std::int64_t bytes) {
  return limit().exchange(std::min(bytes, kMost));
}

void throw_out_of_host_memory(const char* operation) {
  throw OutOfMemoryError(
      fmt::format("{}: out of memory on cpu: the system does not give what the work takes; free "
                  "arrays or work in smaller pieces",
                  operation));
}

}  // namespace rensa
