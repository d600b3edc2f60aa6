// GpuLinks: how the GPUs of a group's ranks reach one another.
#pragma once

#include <memory>
#include <span>

#include "rensa/communication/transport.h"
#include "rensa/core/device.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// One rank's end of the connections, by NCCL, between GPUs of which each rank of a group has one.
/// Used by one thread at a time.
class GpuLinks {
 public:
  /// What a rank has to tell the others before they connect. Plain data.
  struct Greeting {
    char gpu[64] = {};       // which one, of all machines; empty for none
    char refusal[512] = {};  // why it cannot connect; empty where it can
    char id[128] = {};       // of the connections, by the first rank
  };
  /// For a GPU of this rank's. Never throws.
  static Greeting greeting(Device device, bool is_first);

  /// Called by all ranks, with the first one's id, once all could. `heartbeat` is a group of the
  /// same ranks for these links alone. Throws CommunicationError where one fails meanwhile, and
  /// CudaError naming what NCCL says.
  GpuLinks(std::shared_ptr<communication::Transport> heartbeat, Device device,
           const Greeting& first);
  /// Waits for what the GPU has queued.
  ~GpuLinks();
  GpuLinks(const GpuLinks&) = delete;
  GpuLinks& operator=(const GpuLinks&) = delete;

  /// To be called before each exchange, and before each replay of it in a captured step: tells the
  /// other ranks, for which the number of bytes counts alone. Throws CommunicationError where one
  /// has failed.
  void note(const communication::Label& label, std::span<const communication::Outgoing> sent,
            std::span<const communication::Incoming> received);
  /// Queues what Transport::exchange does, of memory of the GPU. Where a rank fails before its part
  /// is done, each wait for this GPU throws CommunicationError while the links live, and so does
  /// every note(). Where this rank cannot queue it, the others hear why.
  void exchange(std::span<const communication::Outgoing> sent,
                std::span<const communication::Incoming> received, const LaunchContext& context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa::cuda
