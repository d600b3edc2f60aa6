// MemoryPool, the hooks, and the list of all pools.
#include "rensa/device/memory_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/pool_core.h"
#include "rensa/device/pool_options.h"

namespace rensa {

namespace pool {

constinit thread_local int hook_count = 0;

namespace {

std::vector<MemoryHook*>& hooks() {
  thread_local std::vector<MemoryHook*> list;
  return list;
}

/// All pools' insides: a stream that ends tells each.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Core>> cores;

  static Registry& instance() {
    static auto* registry = new Registry;  // never destroyed: static arrays may end later
    return *registry;
  }
  void add(const std::shared_ptr<Core>& core) {
    std::lock_guard<std::mutex> hold(mutex);
    std::erase_if(cores, [](const auto& known) { return known.expired(); });
    cores.push_back(core);
  }
  std::vector<std::shared_ptr<Core>> all() {
    std::lock_guard<std::mutex> hold(mutex);
    std::vector<std::shared_ptr<Core>> alive;
    for (const auto& known : cores) {
      if (auto core = known.lock()) alive.push_back(std::move(core));
    }
    return alive;
  }
};

}  // namespace

void call_hooks(void (MemoryHook::*event)(const MemoryEvent&), const MemoryEvent& what) {
  for (MemoryHook* hook : hooks()) (hook->*event)(what);
}

void free_cached_elsewhere(const Core& core) {
  for (const auto& other : Registry::instance().all()) {
    if (other.get() != &core && other->device == core.device && other->pinned == core.pinned) {
      other->free_all_blocks();
    }
  }
}

}  // namespace pool

MemoryHookScope::MemoryHookScope(MemoryHook& hook) {
  pool::hooks().push_back(&hook);
  ++pool::hook_count;
}

MemoryHookScope::~MemoryHookScope() {
  pool::hooks().pop_back();
  --pool::hook_count;
}

struct MemoryPool::Impl : pool::Core {
  using Core::Core;
};

MemoryPool::MemoryPool(Device device, std::unique_ptr<MemorySource> source, bool pinned)
    : impl_(std::make_shared<Impl>(device, std::move(source), pinned)) {
  pool::Registry::instance().add(impl_);
}

MemoryPool::~MemoryPool() { impl_->close(impl_); }

StoragePtr MemoryPool::malloc(std::int64_t nbytes, cuda::StreamState* stream) {
  if (nbytes < 0 || nbytes > pool::kMostAsked) {
    throw OutOfMemoryError(impl_->out_of_memory_text(nbytes));
  }
  std::int64_t size = round_up(std::max<std::int64_t>(nbytes, 1), pool::kUnit);
  if (pool::hook_count == 0) return StoragePtr::adopt(impl_->malloc(nbytes, size, stream));
  MemoryEvent event{impl_->device, nbytes, size, nullptr};
  pool::call_hooks(&MemoryHook::malloc_preprocess, event);
  pool::Block* block = impl_->malloc(nbytes, size, stream);
  StoragePtr storage = StoragePtr::adopt(block);
  event.rounded_size = block->size;
  event.data = block->data();
  pool::call_hooks(&MemoryHook::malloc_postprocess, event);
  return storage;
}

Device MemoryPool::device() const { return impl_->device; }
std::int64_t MemoryPool::used_bytes() const { return impl_->used; }
std::int64_t MemoryPool::total_bytes() const { return impl_->total; }
std::int64_t MemoryPool::free_bytes() const {
  std::int64_t used = impl_->used, total = impl_->total;  // another thread may come in between
  return std::max<std::int64_t>(total - used, 0);
}
std::int64_t MemoryPool::n_free_blocks() const { return impl_->n_free_blocks(); }
std::int64_t MemoryPool::n_allocations() const { return impl_->driver_calls; }
void MemoryPool::free_all_blocks() { impl_->free_all_blocks(); }
void MemoryPool::free_all_blocks(cuda::StreamState* stream) { impl_->free_all_blocks(stream); }
std::int64_t MemoryPool::get_limit() const { return impl_->limit; }
std::int64_t MemoryPool::peak_used_bytes() const { return impl_->peak_used; }
std::int64_t MemoryPool::peak_total_bytes() const { return impl_->peak_total; }
void MemoryPool::reset_peaks() { impl_->reset_peaks(); }
MemoryStatistics MemoryPool::statistics() const { return impl_->statistics(); }
std::int64_t MemoryPool::capacity() const { return impl_->source().capacity(); }
void MemoryPool::set_retaining(bool on) { impl_->set_retaining(on); }
void MemoryPool::set_name(std::string name) { impl_->set_name(std::move(name)); }
void MemoryPool::set_poison(bool on) { impl_->set_poison(on); }
void MemoryPool::set_caching(bool on) { impl_->set_caching(on); }
std::string MemoryPool::report() const { return impl_->report(); }
void MemoryPool::release_stream(cuda::StreamState* stream) noexcept {
  impl_->release_stream(stream);
}

void MemoryPool::set_limit(std::int64_t bytes) {
  if (bytes < 0) {
    throw ValueError(
        fmt::format("set_limit: {} bytes; give a positive number, or 0 for no limit", bytes));
  }
  impl_->limit = bytes;
}

void MemoryPool::set_limit(std::string_view text) {
  set_limit(parse_memory_limit("set_limit", text, capacity()));
}

void MemoryPool::set_limit_fraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw ValueError(fmt::format(
        "set_limit_fraction: {}; give a share from 0 (no limit) to 1 (all of it)", fraction));
  }
  set_limit(memory_share("set_limit_fraction", fraction, capacity()));
}

bool MemoryPool::owns(const Storage* storage) const {
  const auto* block = dynamic_cast<const pool::Block*>(storage);
  return block && block->segment && block->segment->pool == impl_.get();
}

namespace cuda {

std::unique_ptr<MemoryPool> make_memory_pool(Device device) {
  if (device.is_cpu()) throw DeviceError("make_memory_pool: cpu has no pool; name a GPU");
  check_device(device);
  auto pool = std::make_unique<MemoryPool>(device, runtime::device_source(device));
  limit_from_environment(*pool);
  return pool;
}

void release_from_pools(StreamState* stream) noexcept {
  for (const auto& core : pool::Registry::instance().all()) core->release_stream(stream);
}

}  // namespace cuda

}  // namespace rensa
