// What an allocate-and-free of the memory pool costs: mixed sizes from 512 bytes to 16 MiB, 10,000
// blocks alive, a second thread busy on another pool; beside it the same with the pool off. First
// over a source that only counts, so that the pool alone is measured, then over each GPU.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "benchmarks/counting_source.h"
#include "rensa/device/devices.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace {

using namespace rensa;
using benchmarks::CountingSource;

/// 512 bytes to `most`, every power of two as likely.
std::vector<std::int64_t> mixed_sizes(std::size_t count, std::int64_t most, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(9, std::log2(static_cast<double>(most)));
  std::vector<std::int64_t> sizes(count);
  for (auto& size : sizes) size = static_cast<std::int64_t>(std::exp2(exponent(random)));
  return sizes;
}

/// Blocks alive, and a random one of them replaced over and over.
class Load {
 public:
  Load(MemoryPool& pool, cuda::StreamState* stream, std::size_t alive, std::int64_t most,
       unsigned seed)
      : pool_(pool), stream_(stream), sizes_(mixed_sizes(alive, most, seed)) {
    std::mt19937 random(seed + 1);
    order_.resize(1 << 16);
    for (auto& slot : order_) slot = random() % alive;
    for (std::int64_t size : sizes_) blocks_.push_back(pool_.malloc(size, stream_));
  }
  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      std::size_t slot = order_[at_++ % order_.size()];
      blocks_[slot] = StoragePtr();
      blocks_[slot] = pool_.malloc(sizes_[(slot + at_) % sizes_.size()], stream_);
    }
  }

 private:
  MemoryPool& pool_;
  cuda::StreamState* stream_;
  std::vector<std::int64_t> sizes_;
  std::vector<StoragePtr> blocks_;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
};

/// The best of `repeats`, in ns for one free and one malloc.
double measure(Load& load, std::size_t steps, int repeats) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    load.run(steps);
    std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / static_cast<double>(steps));
  }
  return best;
}

void report(const char* where, const char* what, MemoryPool& pool, cuda::StreamState* stream,
            MemoryPool& other, cuda::StreamState* other_stream, std::size_t alive,
            std::int64_t most, std::size_t steps) {
  Load load(pool, stream, alive, most, 1);
  load.run(steps);
  std::int64_t before = pool.n_allocations();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    Load elsewhere(other, other_stream, alive, most, 2);
    while (!stop.load(std::memory_order_relaxed)) elsewhere.run(100);
  });
  double ns = measure(load, steps, 7);
  stop = true;
  busy.join();
  std::printf(
      "%-8s %-9s %6zu alive, up to %5lld KiB: %9.1f ns for malloc + free, "
      "%lld driver calls in %zu\n",
      where, what, alive, static_cast<long long>(most >> 10), ns,
      static_cast<long long>(pool.n_allocations() - before), 7 * steps);
}

void on_the_host() {
  MemoryPool pool(gpu(0), std::make_unique<CountingSource>());
  MemoryPool other(gpu(1), std::make_unique<CountingSource>());
  auto stream = std::make_shared<cuda::StreamState>(gpu(0), nullptr, false);
  auto other_stream = std::make_shared<cuda::StreamState>(gpu(1), nullptr, false);
  report("counting", "pool on", pool, stream.get(), other, other_stream.get(), 10000, 16_MiB,
         300000);
  report("counting", "pool on", pool, stream.get(), other, other_stream.get(), 100, 16_MiB, 300000);
  pool.set_caching(false);
  other.set_caching(false);
  report("counting", "pool off", pool, stream.get(), other, other_stream.get(), 10000, 16_MiB,
         300000);
}

void on_gpu(Device device, Device other_device) {
  auto pool = cuda::make_memory_pool(device);
  auto other = cuda::make_memory_pool(other_device);
  auto* stream = cuda::current_stream_state(device);
  auto* other_stream = cuda::current_stream_state(other_device);
  report(device.str().c_str(), "pool on", *pool, stream, *other, other_stream, 10000, 16_MiB,
         300000);
  pool->free_all_blocks();
  other->free_all_blocks();
  pool->set_caching(false);
  other->set_caching(false);
  report(device.str().c_str(), "pool off", *pool, stream, *other, other_stream, 1000, 16_MiB, 100);
}

}  // namespace

int main() {
  on_the_host();
  int gpus = num_gpus();
  if (gpus > 0) on_gpu(gpu(0), gpu(gpus > 1 ? 1 : 0));
}
