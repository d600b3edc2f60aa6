// Links between GPUs by NCCL's messages.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "rensa/backend/cuda/check.h"
#include "rensa/backend/cuda/nccl.h"
#include "rensa/communication/communication_error.h"
#include "rensa/communication/heartbeat.h"
#include "rensa/communication/processes.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/host_errors.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/exchange/gpu_links.h"

namespace rensa::cuda {

namespace {

template <std::size_t N> void put(char (&out)[N], const std::string& text) {
  text.copy(out, N - 1);
}

/// What is queued inside starts together at the end: messages that go both ways would wait for each
/// other otherwise.
class NcclGroup {
 public:
  NcclGroup() { check_nccl("ncclGroupStart", nccl().group_start()); }
  ~NcclGroup() {
    if (open_) nccl().group_end();  // on the way out of an exception
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() {
    open_ = false;
    check_nccl("ncclGroupEnd", nccl().group_end());
  }

 private:
  bool open_ = true;
};

/// Leaves the thread's device as it was.
class KeepDevice {
 public:
  KeepDevice() { known_ = cudaGetDevice(&device_) == cudaSuccess; }
  ~KeepDevice() {
    if (known_) cudaSetDevice(device_);
  }
  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  int device_ = 0;
  bool known_ = false;
};

/// NCCL's communicator of a rank. To make one waits for the others, and hears of none that fails:
/// it is done by a thread of its own, which is left behind where `check` throws, and after twice
/// the timeout. (Of a rank that falls silent within the timeout `check` knows by then, and names
/// it.)
ncclComm_t communicator_of(const ncclUniqueId& id, int rank, int size, Device device,
                           std::chrono::seconds timeout, const std::function<void()>& check) {
  auto patience = 2 * timeout;
  auto deadline = communication::Clock::now() + patience;
  struct Made {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    ncclResult_t result = ncclSuccess;
    ncclComm_t communicator = nullptr;
  };
  auto made = std::make_shared<Made>();
  std::thread thread([made, id, rank, size, device] {
    cudaSetDevice(device.index);
    ncclComm_t communicator = nullptr;
    ncclResult_t result = nccl().comm_init_rank(&communicator, size, id, rank);
    std::lock_guard lock(made->mutex);
    made->result = result, made->communicator = communicator, made->done = true;
    made->changed.notify_all();
  });
  try {
    std::unique_lock lock(made->mutex);
    while (
        !made->changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return made->done; })) {
      check();
      if (communication::Clock::now() < deadline) continue;
      throw CommunicationError(fmt::format(
          "on: NCCL has not connected the GPUs within {} s, though all ranks are there (twice "
          "RENSA_COMMUNICATION_TIMEOUT)",
          patience.count()));
    }
  } catch (...) {
    thread.detach();
    throw;
  }
  thread.join();
  if (made->result != ncclSuccess) check();
  check_nccl("ncclCommInitRank", made->result);
  return made->communicator;
}

/// Has exchanges go in the order in which they are queued, on whichever streams. (Within a graph
/// they stand in an order.)
class OneAfterTheOther {
 public:
  /// `last` is when the last one is done.
  OneAfterTheOther(cudaStream_t stream, cudaEvent_t last) : stream_(stream), last_(last) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    RENSA_CUDA_CALL(cudaStreamIsCapturing(stream, &status));
    captured_ = status != cudaStreamCaptureStatusNone;
    if (!captured_) runtime::wait_event(stream_, last_);
  }
  void end() const {
    if (!captured_) RENSA_CUDA_CALL(cudaEventRecord(last_, stream_));
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t last_;
  bool captured_ = false;
};

}  // namespace

struct GpuLinks::Impl {
  Device device;
  std::atomic<ncclComm_t> communicator = nullptr;  // null where the group has failed
  std::timed_mutex call;                           // held while NCCL is called
  cudaEvent_t exchanged = nullptr;                 // the last exchange is done
  std::once_flag failed;
  std::optional<LastingError> failure;
  std::optional<communication::Heartbeat> heartbeat;

  /// What the GPU computes from now on is garbage.
  void fail_waits(const std::string& text) {
    std::call_once(failed, [&] {
      failure.emplace(device, std::make_exception_ptr(CommunicationError(text)));
    });
  }
  void check() {
    try {
      heartbeat->check();
    } catch (const CommunicationError& error) {
      fail_waits(error.what());
      throw;
    }
  }
  /// By the heartbeat: what the GPU waits for will not come.
  void give_up(const std::string& text) {
    fail_waits(text);
    cudaSetDevice(device.index);
    ncclComm_t all;
    {
      // A call that takes so long is itself one that waits for a rank: to abort ends it.
      std::unique_lock lock(call, std::chrono::seconds(2));
      all = communicator.exchange(nullptr);
    }
    // Returns when the recordings that hold its work are gone, too.
    if (all) nccl().comm_abort(all);
  }
};

GpuLinks::Greeting GpuLinks::greeting(Device device, bool is_first) {
  Greeting result;
  try {
    check_device(device);
    KeepDevice keep;
    cudaDeviceProp properties;
    std::string uuid;
    RENSA_CUDA_CALL(cudaGetDeviceProperties(&properties, device.index));
    for (char byte : properties.uuid.bytes) uuid += fmt::format("{:02x}", byte & 0xff);
    put(result.gpu, uuid);
    static_assert(sizeof(ncclUniqueId) == sizeof(result.id));
    ncclUniqueId id{};
    const Nccl& library = nccl();  // throws where it is missing
    // Making an id starts a thread that waits for all ranks, so only the first rank makes one.
    if (is_first) check_nccl("ncclGetUniqueId", library.get_unique_id(&id));
    std::memcpy(result.id, &id, sizeof(id));
  } catch (const std::exception& error) {
    put(result.refusal, error.what());
  }
  return result;
}

GpuLinks::GpuLinks(std::shared_ptr<communication::Transport> heartbeat, Device device,
                   const Greeting& first)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = device;
  int rank = heartbeat->rank(), size = heartbeat->size();
  auto timeout = communication::communication_timeout();
  impl_->heartbeat.emplace(std::move(heartbeat), timeout,
                           [impl = impl_.get()](const std::string& text) { impl->give_up(text); });
  ncclUniqueId id;
  std::memcpy(&id, first.id, sizeof(id));
  auto check = [this] { impl_->check(); };
  try {
    impl_->communicator = communicator_of(id, rank, size, device, timeout, check);
    check();
    KeepDevice keep;
    RENSA_CUDA_CALL(cudaSetDevice(device.index));
    RENSA_CUDA_CALL(cudaEventCreateWithFlags(&impl_->exchanged, cudaEventDisableTiming));
  } catch (const std::exception& error) {
    impl_->heartbeat->tell_failure(error.what());
    throw;
  }
}

GpuLinks::~GpuLinks() {
  KeepDevice keep;
  // Errors are met again, and reported, by whoever waits next. Where a rank has failed the
  // heartbeat ends the wait.
  cudaError_t error = cudaSetDevice(impl_->device.index);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) impl_->heartbeat->tell_failure(cudaGetErrorString(error));
  impl_->heartbeat.reset();
  if (ncclComm_t all = impl_->communicator.exchange(nullptr)) nccl().comm_destroy(all);
  if (impl_->exchanged) cudaEventDestroy(impl_->exchanged);
}

void GpuLinks::note(const communication::Label& label,
                    std::span<const communication::Outgoing> sent,
                    std::span<const communication::Incoming> received) {
  impl_->check();
  impl_->heartbeat->note(label, sent, received);
}

void GpuLinks::exchange(std::span<const communication::Outgoing> sent,
                        std::span<const communication::Incoming> received,
                        const LaunchContext& context) {
  try {
    std::lock_guard lock(impl_->call);
    ncclComm_t all = impl_->communicator;
    if (!all) return impl_->check();
    auto* stream = static_cast<cudaStream_t>(context.handle);
    OneAfterTheOther in_order(stream, impl_->exchanged);
    NcclGroup together;
    for (const communication::Outgoing& out : sent) {
      if (out.nbytes == 0) continue;
      check_nccl("ncclSend", nccl().send(out.data, static_cast<std::size_t>(out.nbytes), ncclInt8,
                                         out.peer, all, stream));
    }
    for (const communication::Incoming& in : received) {
      if (in.nbytes == 0) continue;
      check_nccl("ncclRecv", nccl().recv(in.data, static_cast<std::size_t>(in.nbytes), ncclInt8,
                                         in.peer, all, stream));
    }
    together.end();
    in_order.end();
  } catch (const CudaError& error) {
    impl_->check();  // which knows why
    impl_->heartbeat->tell_failure(error.what());
    throw;
  }
}

}  // namespace rensa::cuda
