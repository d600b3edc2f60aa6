// EpochOrder: the order of one epoch's examples and its copies on GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/device/stream.h"

namespace rensa {

/// The memory for the orders of one iterator: two places on each GPU, used in turn, and as much
/// page-locked memory as the host is ahead of the GPU, so that in a steady loop an epoch neither
/// allocates nor waits.
class OrderBuffers {
 public:
  /// `order` (host, int64, always of one length) on `device`, for work of the current stream; sent
  /// there when the place of `generation` holds another. None where that place is a later one's
  /// already.
  std::optional<Array> on(Device device, std::int64_t generation, const Array& order);

 private:
  struct Place {
    std::int64_t generation = -1;
    Array device;
    std::vector<cuda::Stream> readers;  // that have asked for it; the first one sent it
    cuda::Event sent{false};
  };
  struct Staging {
    Array pinned;
    cuda::Event sent{false};
  };
  struct Buffers {
    Place places[2];
    std::vector<Staging> staging;
  };
  /// One whose last copy is done, with a copy of `order`.
  static Staging& stage(Buffers& buffers, const Array& order);
  static void send(Buffers& buffers, Place& place, const cuda::Stream& stream, const Array& order);

  std::mutex mutex_;  // the threads of a parallel updater ask at the same time
  std::map<Device, Buffers> buffers_;
};

/// Immutable: the examples of an epoch, and the first ones of the epochs behind it. `generation`
/// counts the orders that an iterator has drawn.
class EpochOrder {
 public:
  EpochOrder(Array indices, std::int64_t generation, std::int64_t epoch_size, std::uint64_t seed,
             std::shared_ptr<OrderBuffers> buffers)
      : indices_(std::move(indices)),
        generation_(generation),
        epoch_size_(epoch_size),
        seed_(seed),
        buffers_(std::move(buffers)) {}
  const Array& indices() const { return indices_; }
  std::int64_t generation() const { return generation_; }
  std::int64_t epoch_size() const { return epoch_size_; }
  /// The iterator's.
  std::uint64_t seed() const { return seed_; }
  std::optional<Array> on(Device device) const {
    return buffers_->on(device, generation_, indices_);
  }

 private:
  Array indices_;
  std::int64_t generation_, epoch_size_;
  std::uint64_t seed_;
  std::shared_ptr<OrderBuffers> buffers_;
};

/// The numbers 0..n-1 in the `generation`-th random order of `seed` (Fisher-Yates over Philox).
void random_order(std::uint64_t seed, std::int64_t generation, std::int64_t n, std::int64_t* out);

}  // namespace rensa
