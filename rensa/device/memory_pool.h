// The memory pool, with CuPy's semantics: arenas per stream, 512-byte units, best fit, split and
// merge, a limit, statistics and hooks. It serves device memory and, with one arena, pinned memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rensa/device/storage.h"

namespace rensa {

inline namespace literals {
/// N * 1024 bytes: 64_KiB.
constexpr std::int64_t operator""_KiB(unsigned long long n) {
  return static_cast<std::int64_t>(n) << 10;
}
/// N * 1024^2 bytes: 64_MiB.
constexpr std::int64_t operator""_MiB(unsigned long long n) {
  return static_cast<std::int64_t>(n) << 20;
}
/// N * 1024^3 bytes: 2_GiB.
constexpr std::int64_t operator""_GiB(unsigned long long n) {
  return static_cast<std::int64_t>(n) << 30;
}
}  // namespace literals

/// Where a pool gets its memory, and what orders frees behind other streams' work. The CUDA sources
/// stand behind cuda::memory_pool; tests give their own.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// nullptr when there is no more; anything else that goes wrong throws.
  virtual void* allocate(std::int64_t nbytes) = 0;
  virtual void free(void* data) noexcept = 0;  // takes back what allocate() gave
  /// As allocate and free, in the order of a stream's work: memory is freed once what the stream
  /// has queued so far is done, or as if it were. `stream` is null for pinned memory and for memory
  /// of a stream that is gone and done.
  virtual void* allocate_on(std::int64_t nbytes, cuda::StreamState*) { return allocate(nbytes); }
  virtual void free_on(void* data, cuda::StreamState*) noexcept { free(data); }
  /// Gives back what the source itself caches.
  virtual void trim() noexcept {}
  /// Bytes that there are in all, for limits that are shares of it; 0: not known.
  virtual std::int64_t capacity() { return 0; }
  /// A ticket that is done once all work queued on `stream` so far is; nullptr: already done.
  virtual void* record(cuda::StreamState* stream) = 0;
  virtual bool is_done(void* ticket) = 0;           // whether that work is done; does not wait
  virtual void discard(void* ticket) noexcept = 0;  // gives a ticket back
  /// Work queued on `later` from now on starts after all that is queued on `earlier` so far. False
  /// where that cannot be had: `later` is being captured, and `earlier` not with it.
  virtual bool order(cuda::StreamState* earlier, cuda::StreamState* later) = 0;
  /// Writes a pattern over a freed block in the order of its home stream (the poison mode).
  virtual void poison(void* data, std::int64_t nbytes, cuda::StreamState* stream) noexcept = 0;
  /// Waits until the device is idle; the last resort before OutOfMemoryError.
  virtual void synchronize() = 0;
};

/// One call of an allocator, as hooks see it. CuPy's MemoryHook.
struct MemoryEvent {
  Device device;              // whose memory
  std::int64_t size;          // bytes asked for
  std::int64_t rounded_size;  // bytes of the block
  const void* data;           // null before an allocation
};
/// Told what allocators do, before and after; CuPy's MemoryHook. MemoryHookScope has it called.
class MemoryHook {
 public:
  virtual ~MemoryHook() = default;
  virtual void alloc_preprocess(const MemoryEvent&) {}    // memory is asked from the driver
  virtual void alloc_postprocess(const MemoryEvent&) {}   // the driver has given it
  virtual void malloc_preprocess(const MemoryEvent&) {}   // a block is asked from the pool
  virtual void malloc_postprocess(const MemoryEvent&) {}  // the pool has given it
  virtual void free_preprocess(const MemoryEvent&) {}     // a block goes back to the pool
  virtual void free_postprocess(const MemoryEvent&) {}    // it is back
};
/// Hooks are the calling thread's and last for a scope.
class [[nodiscard]] MemoryHookScope {
 public:
  [[nodiscard]] explicit MemoryHookScope(MemoryHook& hook);
  ~MemoryHookScope();
  MemoryHookScope(const MemoryHookScope&) = delete;
  MemoryHookScope& operator=(const MemoryHookScope&) = delete;
};

/// What a pool holds at one moment, in bytes and counts.
struct MemoryStatistics {
  std::int64_t used, peak_used;      // in blocks that are alive; the most since reset_peaks()
  std::int64_t total, peak_total;    // asked from the driver; likewise
  std::int64_t cached;               // total - used
  std::int64_t limit;                // 0: none
  std::int64_t largest_free;         // of the free blocks
  std::int64_t blocks, free_blocks;  // all blocks, and those that are free
  std::int64_t pending_blocks;       // freed, but work of other streams may still use them
  std::int64_t segments;             // pieces of the driver's
  std::int64_t allocations;          // times that the driver was asked, since the start
};

class MemoryPool {
 public:
  /// `pinned`: blocks are host memory that work of several streams may use.
  MemoryPool(Device device, std::unique_ptr<MemorySource> source, bool pinned = false);
  /// Blocks still alive keep the memory behind them; everything else is freed.
  ~MemoryPool();

  /// A block for work on `stream` (null for pinned memory). Throws OutOfMemoryError after the
  /// ladder: free blocks of this arena, of all arenas, of other pools, then the device made idle,
  /// which is the only wait here (counted by cuda::sync_count()).
  StoragePtr malloc(std::int64_t nbytes, cuda::StreamState* stream);

  std::int64_t used_bytes() const;     // in blocks that are alive
  std::int64_t free_bytes() const;     // cached
  std::int64_t total_bytes() const;    // asked from the driver
  std::int64_t n_free_blocks() const;  // blocks that wait to be used again
  /// Times the driver was asked for memory since the start.
  std::int64_t n_allocations() const;
  /// The most that used_bytes() and total_bytes() have been since the start or reset_peaks().
  std::int64_t peak_used_bytes() const;
  std::int64_t peak_total_bytes() const;
  void reset_peaks();
  /// All of it, at one moment.
  MemoryStatistics statistics() const;
  /// Gives back every segment that is wholly free (of one stream's arena, or of all). The driver
  /// may wait for the device while it takes memory back; that is not counted.
  void free_all_blocks();
  void free_all_blocks(cuda::StreamState* stream);
  Device device() const;  // whose memory it is
  /// Bytes that total_bytes() may reach; 0 is none.
  void set_limit(std::int64_t bytes);
  /// "90%" of the device's memory, or a number of bytes, as RENSA_GPU_MEMORY_LIMIT has it (which
  /// every pool of a GPU starts with). Throws ValueError.
  void set_limit(std::string_view text);
  /// A share, 0 to 1, of the device's memory; 0 is no limit. Throws ValueError.
  void set_limit_fraction(double fraction);
  std::int64_t get_limit() const;
  /// Freed blocks are overwritten, so that a read of one shows. For the checkers.
  void set_poison(bool on);
  /// Every malloc goes to the driver and every free back, so that memory checkers see each.
  void set_caching(bool on);
  /// Segments are kept until the pool ends, whoever asks for them: the memory behind addresses that
  /// a recording holds.
  void set_retaining(bool on);
  /// Bytes that the device has in all; 0 where the source does not know.
  std::int64_t capacity() const;
  /// What reports and errors call this pool.
  void set_name(std::string name);
  /// Whether `storage` is a block of this pool.
  bool owns(const Storage* storage) const;
  /// A readable account: used, cached, limit, largest free block, the biggest holders.
  std::string report() const;
  /// The arena of a stream that is being destroyed: its blocks serve all streams from now on.
  void release_stream(cuda::StreamState* stream) noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

namespace cuda {
/// The default allocator's pool of a GPU. Set up at the first use.
MemoryPool& memory_pool(Device device);
/// The pool of page-locked host memory.
MemoryPool& pinned_memory_pool();
/// A further pool of a GPU's memory, for AllocatorScope (allocators.h).
std::unique_ptr<MemoryPool> make_memory_pool(Device device);

/// Tells every pool that `stream` is at its end (MemoryPool::release_stream).
void release_from_pools(StreamState* stream) noexcept;
}  // namespace cuda

}  // namespace rensa
