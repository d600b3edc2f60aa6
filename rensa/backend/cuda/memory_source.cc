// Where the pools get device memory and page-locked host memory, and the events that tell when a
// stream is done with a freed block.
#include <cuda_runtime.h>

#include <array>
#include <cstring>
#include <mutex>

#include "rensa/backend/cuda/check.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/spin_lock.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda::runtime {

namespace {

constexpr int kPoison = 0xff;  // NaN in every floating type, -1 in the signed integers

/// A recorded event of one device, from a stock that is never given back.
struct Ticket {
  cudaEvent_t event;
  int device;
  Ticket* next;
};

class TicketStock {
 public:
  static TicketStock& of(int device) {
    static auto* stocks = new std::array<TicketStock, kMaxGpus>;
    return (*stocks)[static_cast<std::size_t>(device)];
  }
  Ticket* take(Device device) {
    {
      std::lock_guard<SpinLock> hold(lock_);
      if (Ticket* ticket = first_) {
        first_ = ticket->next;
        return ticket;
      }
    }
    return new Ticket{static_cast<cudaEvent_t>(create_event(device, false)), device.index, nullptr};
  }
  void put(Ticket* ticket) {
    std::lock_guard<SpinLock> hold(lock_);
    ticket->next = first_;
    first_ = ticket;
  }

 private:
  SpinLock lock_;
  Ticket* first_ = nullptr;
};

/// Tickets are the same for both kinds of memory.
class EventSource : public MemorySource {
 public:
  void* record(StreamState* stream) override {
    set_device(stream->device());
    Ticket* ticket = TicketStock::of(stream->device().index).take(stream->device());
    cudaError_t error = cudaEventRecord(ticket->event, static_cast<cudaStream_t>(stream->handle()));
    if (error == cudaSuccess) return ticket;
    TicketStock::of(ticket->device).put(ticket);
    RENSA_CUDA_CHECK(error);
    return nullptr;
  }
  bool is_done(void* ticket) override { return event_done(static_cast<Ticket*>(ticket)->event); }
  void discard(void* ticket) noexcept override {
    auto* known = static_cast<Ticket*>(ticket);
    TicketStock::of(known->device).put(known);
  }
};

class DeviceSource final : public EventSource {
 public:
  explicit DeviceSource(Device device) : device_(device) {}
  void* allocate(std::int64_t nbytes) override {
    return allocate_device(device_, static_cast<std::size_t>(nbytes));
  }
  void free(void* data) noexcept override { free_device(data); }
  void poison(void* data, std::int64_t nbytes, StreamState* stream) noexcept override {
    if (cudaMemsetAsync(data, kPoison, static_cast<std::size_t>(nbytes),
                        static_cast<cudaStream_t>(stream->handle())) != cudaSuccess) {
      (void)cudaGetLastError();
    }
  }
  void synchronize() override { synchronize_device(device_); }

 private:
  Device device_;
};

class PinnedSource final : public EventSource {
 public:
  void* allocate(std::int64_t nbytes) override {
    void* data = nullptr;
    cudaError_t error =
        cudaHostAlloc(&data, static_cast<std::size_t>(nbytes), cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    RENSA_CUDA_CHECK(error);
    return data;
  }
  void free(void* data) noexcept override {
    if (cudaFreeHost(data) != cudaSuccess) (void)cudaGetLastError();
  }
  void poison(void* data, std::int64_t nbytes, StreamState*) noexcept override {
    std::memset(data, kPoison, static_cast<std::size_t>(nbytes));
  }
  void synchronize() override {
    for (Device device : try_all_gpus()) synchronize_device(device);
  }
};

}  // namespace

std::unique_ptr<MemorySource> device_source(Device device) {
  return std::make_unique<DeviceSource>(device);
}

std::unique_ptr<MemorySource> pinned_source() { return std::make_unique<PinnedSource>(); }

}  // namespace rensa::cuda::runtime
