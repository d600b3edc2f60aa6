// Where the pools get device memory and page-locked host memory, and the events that tell when a
// stream is done with a freed block.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>

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
    return new Ticket{static_cast<cudaEvent_t>(create_event(device, {.timing = false})),
                      device.index, nullptr};
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
    cudaError_t error =
        cudaEventRecord(ticket->event, static_cast<cudaStream_t>(stream->order_handle()));
    if (error == cudaSuccess) return ticket;
    TicketStock::of(ticket->device).put(ticket);
    RENSA_CUDA_CALL(error);
    return nullptr;
  }
  bool is_done(void* ticket) override { return event_done(static_cast<Ticket*>(ticket)->event); }
  void discard(void* ticket) noexcept override {
    auto* known = static_cast<Ticket*>(ticket);
    TicketStock::of(known->device).put(known);
  }
  bool order(StreamState* earlier, StreamState* later) override {
    if (later->capture() || is_captured(later->handle()) || is_captured(earlier->order_handle())) {
      return false;
    }
    TicketStock& stock = TicketStock::of(earlier->device().index);
    set_device(earlier->device());
    Ticket* ticket = stock.take(earlier->device());
    cudaError_t error =
        cudaEventRecord(ticket->event, static_cast<cudaStream_t>(earlier->order_handle()));
    if (error == cudaSuccess) {
      set_device(later->device());
      std::shared_lock<std::shared_mutex> hold(stream_order());
      error = cudaStreamWaitEvent(static_cast<cudaStream_t>(later->handle()), ticket->event, 0);
    }
    stock.put(ticket);
    RENSA_CUDA_CALL(error);
    return true;
  }

 protected:
  /// Whether somebody else captures the stream (one of another library's, say), or the legacy
  /// stream is not to be touched since another one is captured.
  static bool is_captured(void* stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status) != cudaSuccess) {
      (void)cudaGetLastError();
      return true;
    }
    return status != cudaStreamCaptureStatusNone;
  }
};

/// The pools' last resort waits whatever ForbidSync says: the alternative is to fail.
void count_wait() {
  AllowSync allowed;
  count_sync("a memory pool at its end");
}

class DeviceSource : public EventSource {
 public:
  explicit DeviceSource(Device device) : device_(device) {}
  void* allocate(std::int64_t nbytes) override {
    return allocate_device(device_, static_cast<std::size_t>(nbytes));
  }
  void free(void* data) noexcept override { free_device(data); }
  /// The driver waits for what runs on the memory's own device. Another one may still use it, in a
  /// recorded step of both say: the stream has been told to wait for that.
  void free_on(void* data, StreamState* stream) noexcept override {
    if (stream && !is_captured(stream->order_handle())) {
      forgive(cudaStreamSynchronize(static_cast<cudaStream_t>(stream->order_handle())));
    }
    free(data);
  }
  void poison(void* data, std::int64_t nbytes, StreamState* stream) noexcept override {
    if (cudaMemsetAsync(data, kPoison, static_cast<std::size_t>(nbytes),
                        static_cast<cudaStream_t>(stream->order_handle())) != cudaSuccess) {
      (void)cudaGetLastError();
    }
  }
  void synchronize() override {
    count_wait();
    synchronize_device(device_);
  }
  std::int64_t capacity() override { return memory_info(device_).total; }

 protected:
  static void forgive(cudaError_t error) noexcept {
    if (error != cudaSuccess) (void)cudaGetLastError();
  }

  Device device_;
};

/// A pool of the driver's. Nothing is cached above it: its order is that of the streams.
class AsyncSource final : public DeviceSource {
 public:
  AsyncSource(Device device, std::uint64_t release_threshold) : DeviceSource(device) {
    set_device(device);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device.index;
    RENSA_CUDA_CALL(cudaMemPoolCreate(&pool_, &properties));
    RENSA_CUDA_CALL(
        cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &release_threshold));
  }
  ~AsyncSource() override { forgive(cudaMemPoolDestroy(pool_)); }
  AsyncSource(const AsyncSource&) = delete;
  AsyncSource& operator=(const AsyncSource&) = delete;

  void* allocate(std::int64_t nbytes) override { return allocate_on(nbytes, nullptr); }
  void* allocate_on(std::int64_t nbytes, StreamState* stream) override {
    set_device(device_);
    void* data = nullptr;
    cudaError_t error =
        cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(nbytes), pool_, handle_of(stream));
    if (error == cudaErrorMemoryAllocation) {
      forgive(error);
      return nullptr;
    }
    RENSA_CUDA_CALL(error);
    return data;
  }
  void free(void* data) noexcept override { free_on(data, nullptr); }
  void free_on(void* data, StreamState* stream) noexcept override {
    try {
      set_device(device_);  // the legacy stream is the current device's
    } catch (...) {
      return;  // the device is gone, and the memory with it
    }
    forgive(cudaFreeAsync(data, handle_of(stream)));
  }
  void trim() noexcept override { forgive(cudaMemPoolTrimTo(pool_, 0)); }

 private:
  static cudaStream_t handle_of(StreamState* stream) {
    // Of a stream that is gone, all work is done: any order will do.
    return static_cast<cudaStream_t>(stream ? stream->order_handle() : legacy_stream());
  }

  cudaMemPool_t pool_ = nullptr;
};

class ManagedSource final : public DeviceSource {
 public:
  using DeviceSource::DeviceSource;
  void* allocate(std::int64_t nbytes) override {
    set_device(device_);
    void* data = nullptr;
    cudaError_t error =
        cudaMallocManaged(&data, static_cast<std::size_t>(nbytes), cudaMemAttachGlobal);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    RENSA_CUDA_CALL(error);
    return data;
  }
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
    RENSA_CUDA_CALL(error);
    return data;
  }
  void free(void* data) noexcept override {
    if (cudaFreeHost(data) != cudaSuccess) (void)cudaGetLastError();
  }
  void poison(void* data, std::int64_t nbytes, StreamState*) noexcept override {
    std::memset(data, kPoison, static_cast<std::size_t>(nbytes));
  }
  void synchronize() override {
    count_wait();
    for (Device device : try_all_gpus()) synchronize_device(device);
  }
};

}  // namespace

std::unique_ptr<MemorySource> device_source(Device device) {
  return std::make_unique<DeviceSource>(device);
}

std::unique_ptr<MemorySource> async_source(Device device, std::uint64_t release_threshold) {
  return std::make_unique<AsyncSource>(device, release_threshold);
}

std::unique_ptr<MemorySource> managed_source(Device device) {
  return std::make_unique<ManagedSource>(device);
}

std::unique_ptr<MemorySource> pinned_source() { return std::make_unique<PinnedSource>(); }

}  // namespace rensa::cuda::runtime
