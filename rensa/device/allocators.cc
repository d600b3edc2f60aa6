// Allocators, and the scopes that choose among them.
#include "rensa/device/allocators.h"

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/pool_options.h"

namespace rensa::cuda {

namespace {

std::size_t index_of(Device device) { return static_cast<std::size_t>(device.index); }

class DefaultAllocator final : public Allocator {
 public:
  MemoryPool& pool(Device device) override { return memory_pool(device); }
};

/// Pools of its own, each made at its first use.
class OwnPools final : public Allocator {
 public:
  using Make = std::function<std::unique_ptr<MemoryPool>(Device)>;
  explicit OwnPools(Make make) : make_(std::move(make)) {}

  MemoryPool& pool(Device device) override {
    if (device.is_cpu()) throw DeviceError("an allocator serves GPUs; cpu has no memory pool");
    check_device(device);
    auto& known = known_[index_of(device)];
    if (MemoryPool* made = known.load(std::memory_order_acquire)) return *made;
    std::lock_guard<std::mutex> hold(mutex_);
    if (!known.load(std::memory_order_relaxed)) {
      pools_[index_of(device)] = make_(device);
      known.store(pools_[index_of(device)].get(), std::memory_order_release);
    }
    return *known.load(std::memory_order_relaxed);
  }

 private:
  Make make_;
  std::mutex mutex_;
  std::array<std::unique_ptr<MemoryPool>, kMaxGpus> pools_;
  std::array<std::atomic<MemoryPool*>, kMaxGpus> known_{};
};

AllocatorPtr own_pools(const char* name, bool caching,
                       const std::function<std::unique_ptr<MemorySource>(Device)>& source) {
  return std::make_shared<OwnPools>([=](Device device) {
    auto pool = std::make_unique<MemoryPool>(device, source(device));
    pool->set_name(name);
    if (!caching) pool->set_caching(false);
    limit_from_environment(*pool);
    return pool;
  });
}

/// The process's choice: a pointer for the hot path, and what keeps it.
struct ProcessAllocator {
  std::atomic<Allocator*> current{nullptr};
  std::mutex mutex;
  std::vector<AllocatorPtr> ever_set;  // threads may be in the middle of using an older one

  static ProcessAllocator& instance() {
    static auto* allocator = new ProcessAllocator;  // never destroyed, as the pools
    return *allocator;
  }
};

/// A thread's scopes.
constinit thread_local std::array<MemoryPool*, kMaxGpus> scoped_pools{};
constinit thread_local Allocator* scoped_allocator = nullptr;

struct NamedPools {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, std::unique_ptr<MemoryPool>> pools;

  static NamedPools& instance() {
    static auto* pools = new NamedPools;
    return *pools;
  }
};

}  // namespace

AllocatorPtr pool_allocator() {
  static auto* allocator = new AllocatorPtr(std::make_shared<DefaultAllocator>());
  return *allocator;
}

AllocatorPtr raw_allocator() {
  static auto* allocator = new AllocatorPtr(
      own_pools("raw", false, [](Device device) { return runtime::device_source(device); }));
  return *allocator;
}

AllocatorPtr async_allocator(AsyncAllocatorOptions options) {
  std::uint64_t threshold = options.release_threshold < 0
                                ? std::numeric_limits<std::uint64_t>::max()
                                : static_cast<std::uint64_t>(options.release_threshold);
  return own_pools("async", false,
                   [=](Device device) { return runtime::async_source(device, threshold); });
}

AllocatorPtr managed_allocator() {
  static auto* allocator = new AllocatorPtr(
      own_pools("managed", true, [](Device device) { return runtime::managed_source(device); }));
  return *allocator;
}

void set_allocator(AllocatorPtr allocator) {
  auto& process = ProcessAllocator::instance();
  std::lock_guard<std::mutex> hold(process.mutex);
  process.current.store(allocator.get(), std::memory_order_release);
  process.ever_set.push_back(std::move(allocator));
}

AllocatorPtr get_allocator() {
  auto& process = ProcessAllocator::instance();
  std::lock_guard<std::mutex> hold(process.mutex);
  if (process.ever_set.empty() || !process.ever_set.back()) return pool_allocator();
  return process.ever_set.back();
}

MemoryPool& current_pool(Device device) {
  if (device.is_cpu()) throw DeviceError("current_pool: cpu has no memory pool; name a GPU");
  if (MemoryPool* pool = scoped_pools[index_of(device)]) return *pool;
  Allocator* allocator = scoped_allocator;
  if (!allocator) {
    allocator = ProcessAllocator::instance().current.load(std::memory_order_acquire);
  }
  return allocator ? allocator->pool(device) : memory_pool(device);
}

AllocatorScope::AllocatorScope(MemoryPool& pool)
    : previous_pools_(scoped_pools), previous_allocator_(scoped_allocator) {
  if (pool.device().is_cpu()) {
    throw DeviceError("AllocatorScope: the pool serves pinned host memory; give one of a GPU");
  }
  scoped_pools[index_of(pool.device())] = &pool;
}

AllocatorScope::AllocatorScope(AllocatorPtr allocator)
    : previous_pools_(scoped_pools),
      previous_allocator_(scoped_allocator),
      keep_(allocator ? std::move(allocator) : pool_allocator()) {
  scoped_pools.fill(nullptr);
  scoped_allocator = keep_.get();
}

AllocatorScope::~AllocatorScope() {
  scoped_pools = previous_pools_;
  scoped_allocator = previous_allocator_;
}

MemoryPool& named_pool(std::string_view name, Device device) {
  auto& known = NamedPools::instance();
  std::lock_guard<std::mutex> hold(known.mutex);
  auto& pool = known.pools[{device.index, std::string(name)}];
  if (!pool) {
    pool = make_memory_pool(device);
    pool->set_name(std::string(name));
  }
  return *pool;
}

void drop_named_pool(std::string_view name, Device device) {
  auto& known = NamedPools::instance();
  std::unique_ptr<MemoryPool> dropped;
  std::lock_guard<std::mutex> hold(known.mutex);
  if (auto found = known.pools.find({device.index, std::string(name)});
      found != known.pools.end()) {
    dropped = std::move(found->second);
    known.pools.erase(found);
  }
}

PoolScope::PoolScope(std::string_view name, Device device) {
  if (device.is_cuda()) scope_ = std::make_unique<AllocatorScope>(named_pool(name, device));
}

PoolScope::~PoolScope() = default;

}  // namespace rensa::cuda
