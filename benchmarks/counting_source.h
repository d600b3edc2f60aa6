// A memory source without memory: what the pool alone costs and holds.
#pragma once

#include <atomic>
#include <cstdint>

#include "rensa/device/memory_pool.h"

namespace rensa::benchmarks {

/// Addresses with nothing behind them.
class CountingSource final : public MemorySource {
 public:
  void* allocate(std::int64_t nbytes) override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is behind them
    return reinterpret_cast<void*>(next_.fetch_add((nbytes + 511) / 512 * 512));
  }
  void free(void*) noexcept override {}
  void* record(cuda::StreamState*) override { return nullptr; }
  bool is_done(void*) override { return true; }
  void discard(void*) noexcept override {}
  bool order(cuda::StreamState*, cuda::StreamState*) override { return true; }
  void poison(void*, std::int64_t, cuda::StreamState*) noexcept override {}
  void synchronize() override {}

 private:
  std::atomic<std::uintptr_t> next_{std::uintptr_t{1} << 40};
};

}  // namespace rensa::benchmarks
