// Where arrays get their memory: the heap, with a cache of freed blocks; the pools; somebody else.
#include "rensa/device/storage.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/fork.h"
#include "rensa/core/host_memory.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/allocators.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/heap_hook.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/pool_options.h"
#include "rensa/device/spin_lock.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace rensa {

namespace {

// The address sanitizer is to see where each block ends, and every free.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kAddressSanitizer = false;
#endif

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kHeader = 64;  // a HeapStorage stands in front of its data
constexpr std::int64_t kMostAsked = std::int64_t{1}
                                    << 50;  // no machine has most_host_memory() above

/// The capacities that blocks come in: multiples of 64 up to 512, then eight to each doubling.
constexpr int kClasses = 8 + 8 * 42;

constexpr int size_class(std::int64_t nbytes) {
  if (nbytes <= 512) return nbytes <= 64 ? 0 : static_cast<int>((nbytes - 1) / 64);
  auto last = static_cast<std::uint64_t>(nbytes - 1);
  int doubling = std::bit_width(last) - 1;  // 9 for 512 ... 1023
  return 8 + 8 * (doubling - 9) + static_cast<int>((last >> (doubling - 3)) & 7);
}

constexpr std::int64_t class_capacity(int c) {
  if (c < 8) return (c + 1) * 64;
  int doubling = (c - 8) / 8 + 9;
  return std::int64_t{(c - 8) % 8 + 9} << (doubling - 3);
}
static_assert(size_class(512) == 7 && size_class(513) == 8 && class_capacity(8) == 576);
static_assert(size_class(576) == 8 && size_class(577) == 9 &&
              class_capacity(size_class(1024)) == 1024);
static_assert(size_class(kMostAsked) < kClasses &&
              class_capacity(size_class(kMostAsked)) == kMostAsked);

/// Asks for large pages under a block that spans some: a walk at random through small ones looks
/// each page's address up anew. A hint, which the system may leave aside.
void advise_large_pages(void* block, std::size_t nbytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kLarge = std::size_t{4} << 20, kPage = 4096;
  if (nbytes < kLarge) return;
  std::size_t before = kPage - reinterpret_cast<std::uintptr_t>(block) % kPage;
  (void)madvise(static_cast<char*>(block) + before, nbytes - before, MADV_HUGEPAGE);
#else
  (void)block, (void)nbytes;
#endif
}

/// Freed blocks kept for the next allocation of their size class, so that a training loop does not
/// have the kernel map and zero the same big buffers over and over.
class HeapCache {
 public:
  /// A block's header while it is cached.
  struct Block {
    void* raw;  // what malloc gave
    int size_class;
    Block *newer, *older;  // of all blocks, in the order of their coming
    Block *above, *below;  // of those of one class, last in first out
  };
  static_assert(sizeof(Block) <= kHeader);

  static HeapCache& instance() {
    static auto* cache = [] {
      auto* made = new HeapCache;  // never destroyed: arrays may be static objects
      hold_over_fork(made->lock_);
      return made;
    }();
    return *cache;
  }

  /// A cached block of the class, or null.
  Block* take(int c) {
    std::lock_guard<SpinLock> hold(lock_);
    Block* block = top_[static_cast<std::size_t>(c)];
    if (block) unlink(block);
    return block;
  }

  void put(Block* block) {
    std::int64_t size = class_capacity(block->size_class);
    if (!enabled_ || size > kLargest) {
      std::free(block->raw);
      return;
    }
    Block* surplus = nullptr;
    {
      std::lock_guard<SpinLock> hold(lock_);
      link(block);
      while (bytes_ > kMost) {
        Block* oldest = oldest_;
        unlink(oldest);
        oldest->newer = surplus;
        surplus = oldest;
      }
    }
    free_list(surplus);
  }

  void clear() {
    Block* all = nullptr;
    {
      std::lock_guard<SpinLock> hold(lock_);
      while (Block* block = oldest_) {
        unlink(block);
        block->newer = all;
        all = block;
      }
    }
    free_list(all);
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 30;
  static constexpr std::int64_t kLargest = kMost / 4;

  static void free_list(Block* block) {
    while (block) {
      void* raw = block->raw;
      block = block->newer;
      std::free(raw);
    }
  }

  void link(Block* block) {
    Block*& top = top_[static_cast<std::size_t>(block->size_class)];
    block->above = nullptr;
    block->below = top;
    if (top) top->above = block;
    top = block;
    block->newer = nullptr;
    block->older = newest_;
    (newest_ ? newest_->newer : oldest_) = block;
    newest_ = block;
    bytes_ += class_capacity(block->size_class);
  }

  void unlink(Block* block) {
    (block->above ? block->above->below : top_[static_cast<std::size_t>(block->size_class)]) =
        block->below;
    if (block->below) block->below->above = block->above;
    (block->newer ? block->newer->older : newest_) = block->older;
    (block->older ? block->older->newer : oldest_) = block->newer;
    bytes_ -= class_capacity(block->size_class);
  }

  const bool enabled_ = !kAddressSanitizer && !pool_off();
  SpinLock lock_;
  std::int64_t bytes_ = 0;
  Block *newest_ = nullptr, *oldest_ = nullptr;
  std::array<Block*, kClasses> top_{};
};

constinit std::atomic<int> heap_hooks = 0;  // of all threads: one branch where there are none
constinit thread_local HeapHookScope* heap_hook_scope = nullptr;  // the innermost

}  // namespace

/// Those of the calling thread.
struct HeapHooks {
  template <class F> static void call(const F& tell) {
    if (heap_hooks.load(std::memory_order_relaxed) > 0) call(heap_hook_scope, tell);
  }

 private:
  template <class F> static void call(const HeapHookScope* scope, const F& tell) {
    if (!scope) return;
    call(scope->around_, tell);
    tell(scope->hook_);
  }
};

namespace {

/// Heap memory; the object stands in front of its data.
class HeapStorage final : public Storage {
 public:
  HeapStorage(void* raw, int size_class, std::int64_t nbytes) : size_class_(size_class), raw_(raw) {
    data_ = reinterpret_cast<char*>(this) + kHeader;
    nbytes_ = nbytes;
  }

  static StoragePtr make(std::int64_t nbytes) {
    if (nbytes < 0 || nbytes > most_host_memory()) fail(nbytes);
    StoragePtr made = make_new(nbytes);
    HeapHooks::call([&](HeapHook& hook) { hook.heap_malloc(made->data(), nbytes); });
    return made;
  }

 private:
  static StoragePtr make_new(std::int64_t nbytes) {
    int c = size_class(nbytes);
    if (HeapCache::Block* block = HeapCache::instance().take(c)) {
      return StoragePtr(new (block) HeapStorage(block->raw, c, nbytes));
    }
    std::int64_t capacity = kAddressSanitizer ? nbytes : class_capacity(c);
    auto size = static_cast<std::size_t>(kHeader + kAlignment + capacity);
    void* raw = std::malloc(size);
    if (!raw) {
      HeapCache::instance().clear();
      raw = std::malloc(size);
    }
    if (!raw) fail(nbytes);
    HeapHooks::call([&](HeapHook& hook) { hook.heap_acquired(static_cast<std::int64_t>(size)); });
    advise_large_pages(raw, size);
    void* aligned = raw;
    std::align(kAlignment, size - kAlignment, aligned, size);
    return StoragePtr(new (aligned) HeapStorage(raw, c, nbytes));
  }
  [[noreturn]] static void fail(std::int64_t nbytes) {
    throw OutOfMemoryError(fmt::format(
        "out of memory on cpu: asked for {} bytes, which the system does not give; free "
        "arrays or work in smaller pieces",
        nbytes));
  }

  void destroy() noexcept override {
    HeapHooks::call([&](HeapHook& hook) { hook.heap_free(data_); });
    void* raw = raw_;
    int c = size_class_;
    this->~HeapStorage();
    HeapCache::instance().put(new (this) HeapCache::Block{raw, c, {}, {}, {}, {}});
  }

  int size_class_;  // in the padding of the base
  void* raw_;
};
static_assert(sizeof(HeapStorage) <= kHeader);

/// Memory of somebody else's.
class ForeignStorage final : public Storage {
 public:
  ForeignStorage(void* data, std::int64_t nbytes, Device device, void (*deleter)(void*),
                 void* context, bool read_only)
      : deleter_(deleter), context_(context) {
    data_ = static_cast<char*>(data);
    nbytes_ = nbytes;
    device_ = device;
    foreign_ = true;
    read_only_ = read_only;
  }

 private:
  void use_on_other(cuda::StreamState* stream) override {
    std::lock_guard<SpinLock> hold(lock_);
    for (const auto& used : streams_) {
      if (used.get() == stream) return;
    }
    streams_.push_back(stream->shared_from_this());
  }

  void destroy() noexcept override {
    for (const auto& stream : streams_) wait_for(*stream);
    if (deleter_) deleter_(context_);
    delete this;
  }

  static void wait_for(cuda::StreamState& stream) noexcept {
    try {
      if (cuda::runtime::stream_done(stream.handle())) return;
      cuda::count_sync("the release of foreign memory");
      cuda::runtime::synchronize_stream(stream.handle());
    } catch (...) {
      // A failed device runs nothing any more, and a destructor has nobody to tell.
    }
  }

  void (*deleter_)(void*);
  void* context_;
  SpinLock lock_;
  std::vector<std::shared_ptr<cuda::StreamState>> streams_;
};

}  // namespace

HeapHookScope::HeapHookScope(HeapHook& hook)
    : hook_(hook), around_(std::exchange(heap_hook_scope, this)) {
  ++heap_hooks;
}
HeapHookScope::~HeapHookScope() {
  heap_hook_scope = around_;
  --heap_hooks;
}

StoragePtr allocate(std::int64_t nbytes, Device device) {
  if (Recorder* recorder = ThreadState::current().recorder) recorder->memory_wanted(nbytes);
  if (device.is_cpu()) return HeapStorage::make(nbytes);
  check_device(device);
  cuda::StreamState* stream = cuda::current_stream_state(device);
  return cuda::current_pool(device).malloc(nbytes, stream);
}

StoragePtr allocate_pinned(std::int64_t nbytes) {
  return cuda::pinned_memory_pool().malloc(nbytes, nullptr);
}

StoragePtr wrap_storage(void* data, std::int64_t nbytes, Device device, void (*deleter)(void*),
                        void* context, bool read_only) {
  return StoragePtr(new ForeignStorage(data, nbytes, device, deleter, context, read_only));
}

}  // namespace rensa
