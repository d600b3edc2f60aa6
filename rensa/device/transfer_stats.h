// How much has been copied between host and GPUs.
#pragma once

#include <cstdint>

#include "rensa/core/device.h"

namespace rensa::cuda {

struct TransferCount {
  std::int64_t transfers = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const TransferCount&, const TransferCount&) = default;
};

/// The copies that the process has started, by direction, whether they waited or not. Copies within
/// one GPU are kernels and stand in no row; replays of graphs are not counted.
struct TransferStats {
  TransferCount host_to_device;
  TransferCount device_to_host;
  TransferCount peer;  // from one GPU to another
};
TransferStats transfer_stats();
/// Counts one, as a Transfer does that starts.
void count_transfer(Device from, Device to, std::int64_t nbytes);

}  // namespace rensa::cuda
