// The memory pool in words.
#include <fmt/format.h>

#include <functional>
#include <map>

#include "rensa/device/pool_core.h"
#include "rensa/device/pool_options.h"

namespace rensa {

std::string readable_bytes(std::int64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

namespace pool {

namespace {

constexpr int kHoldersShown = 5;

std::string limit_text(std::int64_t limit) { return limit > 0 ? readable_bytes(limit) : "none"; }

}  // namespace

template <class F> void Core::for_each_arena(F&& f) const {
  for (const auto& arena : arenas_) f(*arena);
  for (const auto& retired : retired_) f(*retired.arena);
  f(shared_);
}

std::int64_t Core::largest_free() const {
  std::int64_t most = 0;
  for_each_arena([&](const Arena& arena) {
    for (const FreeIndex& index : arena.free) {
      if (Block* block = index.largest()) most = std::max(most, block->size);
    }
  });
  return most;
}

/// "2 x 512.00 MiB, 1 x 3.00 MiB": the sizes that hold most.
std::string Core::holders() const {
  std::map<std::int64_t, std::int64_t> counts;
  for_each_arena([&](const Arena& arena) {
    for (const Segment* segment : arena.segments) {
      for (const Block* block = segment->first; block; block = block->after) {
        if (block->state == Block::State::alive) ++counts[block->size];
      }
    }
  });
  std::multimap<std::int64_t, std::int64_t, std::greater<>> by_bytes;
  for (auto [size, count] : counts) by_bytes.emplace(size * count, size);
  std::string text;
  int shown = 0;
  for (auto [bytes, size] : by_bytes) {
    if (shown++ == kHoldersShown) break;
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", bytes / size, readable_bytes(size));
  }
  return text.empty() ? "nothing" : text;
}

/// Under the lock.
MemoryStatistics Core::count() const {
  MemoryStatistics s{};
  s.used = used;
  s.peak_used = peak_used;
  s.total = total;
  s.peak_total = peak_total;
  s.cached = s.total - s.used;
  s.limit = limit;
  s.largest_free = largest_free();
  for_each_arena([&](const Arena& arena) {
    s.free_blocks += arena.free[0].count() + arena.free[1].count();
    s.blocks += arena.busy;
  });
  for (Block* block = pending_first_; block; block = block->next) ++s.pending_blocks;
  s.blocks -= s.pending_blocks;
  s.segments = segments_;
  s.allocations = driver_calls;
  return s;
}

MemoryStatistics Core::statistics() const {
  Lock hold(lock_);
  return count();
}

std::string Core::title() const {
  std::string text = pinned ? "pinned host memory" : device.str();
  return name_.empty() ? text : fmt::format("{} (pool \"{}\")", text, name_);
}

std::string Core::report() const {
  Lock hold(lock_);
  MemoryStatistics s = count();
  std::string name = name_.empty() ? "" : fmt::format(" \"{}\"", name_);
  return fmt::format(
      "{} memory pool{}\n"
      "  used    {} in {} blocks, {} at most\n"
      "  cached  {} in {} free blocks, the largest {}; {} blocks wait for other streams\n"
      "  total   {} in {} segments, {} at most, limit {}; the driver was asked {} times\n"
      "  biggest holders: {}\n",
      pinned ? "pinned host" : device.str(), name, readable_bytes(s.used), s.blocks,
      readable_bytes(s.peak_used), readable_bytes(s.cached), s.free_blocks,
      readable_bytes(s.largest_free), s.pending_blocks, readable_bytes(s.total), s.segments,
      readable_bytes(s.peak_total), limit_text(s.limit), s.allocations, holders());
}

std::string Core::out_of_memory_text(std::int64_t nbytes) const {
  Lock hold(lock_);
  return fmt::format(
      "out of memory on {}: asked for {} ({} bytes); used {}, cached {}, limit {}, largest free "
      "block {}; biggest holders: {}; free arrays, take a smaller batch, or raise the limit "
      "(memory_pool(device).set_limit, RENSA_GPU_MEMORY_LIMIT)",
      title(), readable_bytes(nbytes), nbytes, readable_bytes(used), readable_bytes(total - used),
      limit_text(limit), readable_bytes(largest_free()), holders());
}

std::int64_t Core::n_free_blocks() const {
  Lock hold(lock_);
  std::int64_t count = 0;
  for_each_arena(
      [&](const Arena& arena) { count += arena.free[0].count() + arena.free[1].count(); });
  return count;
}

}  // namespace pool
}  // namespace rensa
