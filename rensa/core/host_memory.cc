// The limit of host memory and the error beyond it.
#include "rensa/core/host_memory.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;

std::int64_t machine_memory() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return kMost;
  std::int64_t unit = info.mem_unit;
  std::int64_t here = static_cast<std::int64_t>(info.totalram) * unit;
  std::int64_t swap = static_cast<std::int64_t>(info.totalswap) * unit;
  return std::min(here, memory_of_group("/sys/fs/cgroup", "/proc/self/cgroup")) + swap;
}

std::atomic<std::int64_t>& limit() {
  static std::atomic<std::int64_t> most{std::min(kMost, machine_memory())};
  return most;
}

// The number in a file of one number; the greatest where there is none ("max").
std::int64_t number_in(const std::filesystem::path& file) {
  std::int64_t number = 0;
  return std::ifstream(file) >> number ? number : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::int64_t memory_of_group(const std::string& groups, const std::string& membership) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    bool unified = controllers.empty();
    if (!unified && (',' + controllers + ',').find(",memory,") == std::string::npos) continue;
    std::filesystem::path root = unified ? groups : groups + "/memory";
    const char* file = unified ? "memory.max" : "memory.limit_in_bytes";
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      least = std::min(least, number_in(root / group / file));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return least;
}

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
