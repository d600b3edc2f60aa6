// The counters of transfers.
#include "rensa/device/transfer_stats.h"

#include <atomic>

namespace rensa::cuda {

namespace {

struct Counter {
  std::atomic<std::int64_t> transfers{0}, bytes{0};
  TransferCount read() const {
    return {transfers.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed)};
  }
};
Counter host_to_device, device_to_host, peer;

}  // namespace

TransferStats transfer_stats() {
  return {host_to_device.read(), device_to_host.read(), peer.read()};
}

void count_transfer(Device from, Device to, std::int64_t nbytes) {
  Counter& counter = from.is_cpu() ? host_to_device : to.is_cpu() ? device_to_host : peer;
  counter.transfers.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(nbytes, std::memory_order_relaxed);
}

}  // namespace rensa::cuda
