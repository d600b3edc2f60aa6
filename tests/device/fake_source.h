// A memory source that counts, and streams that do nothing: what the pool's tests stand on.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "rensa/device/memory_pool.h"
#include "rensa/device/stream_state.h"

namespace rensa::testing {

/// Heap memory up to a capacity. Work on a stream is "running" between start(stream) and
/// finish(stream); tickets recorded meanwhile are done after finish.
class FakeDevice {
 public:
  explicit FakeDevice(std::int64_t capacity = std::int64_t{1} << 40) : capacity_(capacity) {}

  void start(cuda::StreamState* stream) { set(stream, true); }
  void finish(cuda::StreamState* stream) { set(stream, false); }

  struct Counts {
    int allocations = 0, frees = 0, tickets = 0, discarded = 0, poisoned = 0, synchronized = 0;
    int trims = 0, orders = 0;
    cuda::StreamState *earlier = nullptr, *later = nullptr;          // at the last order
    cuda::StreamState *allocated_on = nullptr, *freed_on = nullptr;  // at the last call
    std::int64_t bytes = 0, last_size = 0, last_poisoned = 0;
  };
  Counts counts() {
    std::lock_guard<std::mutex> hold(mutex_);
    return counts_;
  }
  void fail_allocations(bool on) {
    std::lock_guard<std::mutex> hold(mutex_);
    failing_ = on;
  }
  void refuse_orders(bool on) {
    std::lock_guard<std::mutex> hold(mutex_);
    refusing_ = on;
  }
  std::unique_ptr<MemorySource> source();

 private:
  friend class FakeSource;
  struct Ticket {
    cuda::StreamState* stream;
    std::int64_t epoch;
  };
  struct Work {
    bool running = false;
    std::int64_t epoch = 0;  // grows whenever the stream's work is done
  };
  void set(cuda::StreamState* stream, bool running) {
    std::lock_guard<std::mutex> hold(mutex_);
    Work& work = work_[stream];
    work.running = running;
    if (!running) ++work.epoch;
  }

  std::mutex mutex_;
  std::int64_t capacity_;
  bool failing_ = false, refusing_ = false;
  Counts counts_;
  std::map<void*, std::int64_t> sizes_;
  std::map<cuda::StreamState*, Work> work_;
};

class FakeSource final : public MemorySource {
 public:
  explicit FakeSource(FakeDevice& device) : device_(device) {}

  void* allocate(std::int64_t nbytes) override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    if (device_.failing_ || device_.counts_.bytes + nbytes > device_.capacity_) return nullptr;
    void* data = std::malloc(static_cast<std::size_t>(nbytes));
    device_.sizes_[data] = nbytes;
    device_.counts_.bytes += nbytes;
    device_.counts_.last_size = nbytes;
    ++device_.counts_.allocations;
    return data;
  }
  void free(void* data) noexcept override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    device_.counts_.bytes -= device_.sizes_.at(data);
    device_.sizes_.erase(data);
    ++device_.counts_.frees;
    std::free(data);
  }
  void* allocate_on(std::int64_t nbytes, cuda::StreamState* stream) override {
    void* data = allocate(nbytes);
    std::lock_guard<std::mutex> hold(device_.mutex_);
    device_.counts_.allocated_on = stream;
    return data;
  }
  void free_on(void* data, cuda::StreamState* stream) noexcept override {
    free(data);
    std::lock_guard<std::mutex> hold(device_.mutex_);
    device_.counts_.freed_on = stream;
  }
  void trim() noexcept override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    ++device_.counts_.trims;
  }
  std::int64_t capacity() override { return device_.capacity_; }
  void* record(cuda::StreamState* stream) override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    FakeDevice::Work& work = device_.work_[stream];
    if (!work.running) return nullptr;
    ++device_.counts_.tickets;
    return new FakeDevice::Ticket{stream, work.epoch};
  }
  bool is_done(void* ticket) override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    auto* known = static_cast<FakeDevice::Ticket*>(ticket);
    return device_.work_[known->stream].epoch > known->epoch;
  }
  void discard(void* ticket) noexcept override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    ++device_.counts_.discarded;
    delete static_cast<FakeDevice::Ticket*>(ticket);
  }
  bool order(cuda::StreamState* earlier, cuda::StreamState* later) override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    if (device_.refusing_) return false;
    ++device_.counts_.orders;
    device_.counts_.earlier = earlier;
    device_.counts_.later = later;
    return true;
  }
  void poison(void* data, std::int64_t nbytes, cuda::StreamState*) noexcept override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    ++device_.counts_.poisoned;
    device_.counts_.last_poisoned = nbytes;
    std::memset(data, 0xff, static_cast<std::size_t>(nbytes));
  }
  void synchronize() override {
    std::lock_guard<std::mutex> hold(device_.mutex_);
    ++device_.counts_.synchronized;
    for (auto& [stream, work] : device_.work_) ++work.epoch;
  }

 private:
  FakeDevice& device_;
};

inline std::unique_ptr<MemorySource> FakeDevice::source() {
  return std::make_unique<FakeSource>(*this);
}

inline std::shared_ptr<cuda::StreamState> fake_stream() {
  return std::make_shared<cuda::StreamState>(gpu(0), nullptr, false);
}

/// A pool of gpu(0) over 1 GiB of such memory.
class PoolFixture : public ::testing::Test {
 protected:
  PoolFixture() {
    pool.set_caching(true);  // whatever the environment says
    pool.set_poison(false);
  }
  StoragePtr get(std::int64_t nbytes) { return pool.malloc(nbytes, stream.get()); }

  FakeDevice device{1_GiB};
  std::shared_ptr<cuda::StreamState> stream = fake_stream(), other = fake_stream();
  MemoryPool pool{gpu(0), device.source()};
};

}  // namespace rensa::testing
