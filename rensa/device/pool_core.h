// The inside of a MemoryPool. Blocks that are alive keep it, so it may outlive the pool itself.
//
// Rules:
// - Requests are rounded up to 512 bytes. Those below 1 MiB ("small") are cut from segments of 2 to
//   32 MiB that grow with the arena; larger ones get segments of their own, in steps of 2 MiB (what
//   the driver hands out anyway).
// - A free block is found by best fit and cut to size; what is left of a block in a large segment
//   stays with it when it is below 1 MiB, and a block of 64 MiB or more is not cut for a request of
//   a quarter of it or less while the driver still has memory: it would be missing whole later.
// - A freed block merges with its free neighbours, at once if only its home stream used it, else
//   when the events recorded on the other streams are done ("pending").
// - Before more is had for a large request, free segments too small for it go back, as much as it
//   asks for, while the pool caches more than is in use and more than twice the request: sizes that
//   grow step by step do not leave all their forerunners behind.
// - Where nothing fits: pending blocks are looked at; the driver is asked; any larger block is cut;
//   the arena's free segments, then all arenas', go back to the driver; the device is made idle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rensa/device/memory_pool.h"
#include "rensa/device/pool_blocks.h"
#include "rensa/device/spin_lock.h"

namespace rensa::pool {

inline constexpr std::int64_t kLargeRequest = std::int64_t{1} << 20;
inline constexpr std::int64_t kSegmentUnit = std::int64_t{2} << 20;
inline constexpr std::int64_t kMostSmallSegment = std::int64_t{32} << 20;
inline constexpr std::int64_t kPreciousBlock = std::int64_t{64} << 20;

class Core {
 public:
  Core(Device device, std::unique_ptr<MemorySource> source, bool pinned);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Block* malloc(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream);
  void free(Block* block) noexcept;
  void note_use(Block* block, cuda::StreamState* stream);

  void free_all_blocks();
  void free_all_blocks(cuda::StreamState* stream);
  void release_stream(cuda::StreamState* stream) noexcept;
  /// The pool is gone: free blocks go back to the source now, the others when they are freed.
  /// `self` keeps this object until then.
  void close(std::shared_ptr<Core> self) noexcept;
  void set_poison(bool on);
  void set_caching(bool on);
  void set_retaining(bool on);
  void set_name(std::string name);
  void reset_peaks();
  MemoryStatistics statistics() const;
  MemorySource& source() { return *source_; }
  std::string report() const;
  std::string out_of_memory_text(std::int64_t nbytes) const;
  std::int64_t n_free_blocks() const;

  const Device device;
  const bool pinned;
  // Written under the lock, read without it.
  std::atomic<std::int64_t> used{0}, total{0}, limit{0}, driver_calls{0};
  std::atomic<std::int64_t> peak_used{0}, peak_total{0};

 private:
  using Lock = std::unique_lock<SpinLock>;
  enum class Cut { sparing, any };

  /// What must not be given up under the lock: giving it up may call the driver or this pool.
  struct Dropped {
    std::vector<Use> uses;
    std::vector<std::shared_ptr<cuda::StreamState>> streams;
    Segment* segments = nullptr;
    std::shared_ptr<Core> core;
  };
  struct Retired {
    std::unique_ptr<Arena> arena;
    void* ticket;
  };

  // Under the lock.
  Arena& arena_of(cuda::StreamState* stream);
  Block* take(Arena& arena, std::int64_t size, Cut cut);
  Block* take_shared(Arena& arena, std::int64_t size, Cut cut);
  Block* carve(Block* block, std::int64_t size);
  void open(Block* block, std::int64_t nbytes, cuda::StreamState* stream);
  void merge(Block* block) noexcept;
  void settle(Block* block, Dropped& dropped) noexcept;
  void pend(Block* block) noexcept;
  void look_at_pending(int most, Dropped& dropped) noexcept;
  bool is_done(Block* block) noexcept;
  void* ticket_of(cuda::StreamState* stream) noexcept;
  bool is_done(void* ticket) noexcept;
  void share_retired(Dropped& dropped) noexcept;
  void share(Retired& retired, Dropped& dropped) noexcept;
  void release_free_segments(Arena& arena, Dropped& dropped) noexcept;
  void release_all(Dropped& dropped) noexcept;
  void release_segment(Segment* segment, Dropped& dropped) noexcept;
  void finish_if_closed(Dropped& dropped) noexcept;
  void more_spare_blocks();
  Block* spare_block();
  void recycle(Block* block);
  template <class F> void for_each_arena(F&& f) const;
  MemoryStatistics count() const;
  std::string title() const;
  std::string holders() const;
  std::int64_t largest_free() const;

  bool note_use(Block* block, cuda::StreamState* stream, bool now);

  // Without the lock.
  void take_back(Block* block) noexcept;
  void take_back_slowly(Block* block) noexcept;
  void let_go(Dropped& dropped) noexcept;
  Block* malloc_slowly(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream);
  Block* try_cached(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream, Cut cut);
  Block* grow(std::int64_t segment_size, std::int64_t nbytes, std::int64_t size,
              cuda::StreamState* stream);
  void trim_for(std::int64_t size, cuda::StreamState* stream);
  bool reserve(std::int64_t bytes);
  std::int64_t segment_size_for(std::int64_t size, cuda::StreamState* stream);

  mutable SpinLock lock_;
  std::unique_ptr<MemorySource> source_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // the one used last in front
  Arena shared_;                                // of streams that are gone
  std::vector<Retired> retired_;                // on their way there
  Block *pending_first_ = nullptr, *pending_last_ = nullptr;
  Block* spare_ = nullptr;
  std::vector<std::unique_ptr<Block[]>> slabs_;
  std::int64_t segments_ = 0;
  unsigned operations_ = 0;
  bool poison_, caching_;
  bool plain_;              // caching and no poison: a free is a merge
  bool retaining_ = false;  // no segment goes back before the end
  std::string name_;
  std::shared_ptr<Core> self_;  // set once the pool is gone
};

/// How many memory hooks the calling thread has: one predictable branch where there are none.
extern constinit thread_local int hook_count;
/// Gives back what other pools of `core`'s kind of memory cache.
void free_cached_elsewhere(const Core& core);
/// Calls `event` of each of them.
void call_hooks(void (MemoryHook::*event)(const MemoryEvent&), const MemoryEvent& what);

}  // namespace rensa::pool
