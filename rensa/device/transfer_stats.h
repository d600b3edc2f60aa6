// How much has been copied between host and GPUs.
#pragma once

#include <cstdint>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// Copies in one direction.
struct TransferCount {
  std::int64_t transfers = 0;  // how many
  std::int64_t bytes = 0;      // in all of them
  friend bool operator==(const TransferCount&, const TransferCount&) = default;
};

/// The copies that the process has started, by direction, whether they waited or not. Copies within
/// one GPU are kernels and stand in no row; replays of graphs are not counted.
struct TransferStats {
  TransferCount host_to_device;  // counted when started
  TransferCount device_to_host;  // counted when started
  TransferCount peer;            // from one GPU to another
};
TransferStats transfer_stats();  // what was copied so far
/// Counts one, as a Transfer does that starts.
void count_transfer(Device from, Device to, std::int64_t nbytes);

}  // namespace rensa::cuda
