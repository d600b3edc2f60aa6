// Which pool the arrays of a GPU come from: the default one, another kind of memory, or a pool of
// one's own for a part of the program; for the process, or for a scope of one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "rensa/core/device.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/memory_pool.h"

namespace rensa::cuda {

/// A kind of memory: one pool for each GPU. Derive from it for a kind of one's own; pool() may be
/// called by several threads, and what it returns lives as long as the allocator.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual MemoryPool& pool(Device device) = 0;
};
using AllocatorPtr = std::shared_ptr<Allocator>;  // a shared handle to one

/// The default: memory_pool(device).
AllocatorPtr pool_allocator();
/// No pool: every request goes to cudaMalloc and every free to cudaFree, which waits for the
/// device.
AllocatorPtr raw_allocator();

struct AsyncAllocatorOptions {
  /// Freed memory that the driver's pool keeps for the next request; the rest goes back when a
  /// stream is waited for. Negative: it keeps everything.
  std::int64_t release_threshold = -1;
};
/// The driver's own pool: cudaMallocAsync and cudaFreeAsync in the order of the streams.
AllocatorPtr async_allocator(AsyncAllocatorOptions options = {});
/// A pool of managed memory (cudaMallocManaged), which moves between host and device by itself and
/// may exceed the device's.
AllocatorPtr managed_allocator();

/// The whole process allocates from `allocator` from now on, but for scopes; null: the default.
/// Arrays keep their memory. An allocator once set stays until the process ends.
void set_allocator(AllocatorPtr allocator);
AllocatorPtr get_allocator();

/// The pool that the calling thread's allocations on `device` come from now.
MemoryPool& current_pool(Device device);

/// Allocations of this thread come from `pool` (on its device), or from `allocator` (on all GPUs),
/// in this scope. Scopes nest. Arrays may outlive the pool.
class [[nodiscard]] AllocatorScope {
 public:
  /// Throws DeviceError for a pool of pinned memory.
  [[nodiscard]] explicit AllocatorScope(MemoryPool& pool);
  [[nodiscard]] explicit AllocatorScope(AllocatorPtr allocator);
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

 private:
  std::array<MemoryPool*, kMaxGpus> previous_pools_;
  Allocator* previous_allocator_;
  AllocatorPtr keep_;
};

/// cupy.cuda.using_allocator: `auto scope = using_allocator(raw_allocator());`
inline AllocatorScope using_allocator(MemoryPool& pool) { return AllocatorScope(pool); }
inline AllocatorScope using_allocator(AllocatorPtr allocator) {
  return AllocatorScope(std::move(allocator));
}

/// The private pool of that name on a GPU, made at the first call; reports and errors show the
/// name.
MemoryPool& named_pool(std::string_view name, Device device);
/// Ends it; arrays that are alive keep their memory. Nothing for a name that is not there.
void drop_named_pool(std::string_view name, Device device);

/// Allocations of this thread on `device` come from named_pool(name, device) in this scope, so that
/// what a part of the program holds is seen and neither mixes with the rest nor takes from it. On
/// the CPU, which has no pools, nothing changes.
class [[nodiscard]] PoolScope {
 public:
  [[nodiscard]] explicit PoolScope(std::string_view name,
                                   Device device = ThreadState::current().device);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  std::unique_ptr<AllocatorScope> scope_;
};

}  // namespace rensa::cuda
