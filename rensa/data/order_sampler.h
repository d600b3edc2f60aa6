// Order samplers: which examples an epoch is made of, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rensa/data/random_stream.h"

namespace rensa {

/// What an order sampler is asked for.
struct EpochRequest {
  std::int64_t size;    // examples of the dataset
  std::int64_t number;  // of the orders that the iterator drew before; it counts on after reset()
  std::uint64_t seed;   // the iterator's
  /// Random numbers for this order alone.
  RandomStream random() const;
};

/// The numbers of an epoch's examples, in order: any number of them, the same one for each epoch;
/// an example may be left out, or come several times. An iterator may ask for an order more than
/// once, and ahead of its time, so what is given has to follow from the request: then an iterator
/// that goes on from a file has the same orders. Called by one thread at a time.
using OrderSampler = std::function<std::vector<std::int64_t>(const EpochRequest&)>;

namespace iterators {

/// All examples in a random order: what an iterator does that shuffles, and the same orders.
class ShuffleOrderSampler {
 public:
  std::vector<std::int64_t> operator()(const EpochRequest& request) const;
};

/// Examples drawn with replacement, each as likely as its share of the weights (PyTorch's
/// WeightedRandomSampler).
class WeightedOrderSampler {
 public:
  /// A weight for each example; an epoch has `n_samples` draws, or as many as there are weights
  /// where that is 0. Throws ValueError for weights that are negative, not finite or all zero, and
  /// when it is asked by an iterator over another number of examples.
  explicit WeightedOrderSampler(const std::vector<double>& weights, std::int64_t n_samples = 0);
  std::vector<std::int64_t> operator()(const EpochRequest& request) const;

 private:
  std::shared_ptr<const std::vector<double>> ends_;  // sums of the weights up to each
  std::int64_t n_samples_;
};

struct BucketOrderSamplerOptions {
  /// Examples are sorted within random groups of this many batches: more make lengths more alike,
  /// fewer make batches more random.
  std::int64_t batches_per_bucket = 100;
  /// Leaves out, other ones in each epoch, the examples that fill no batch. Without it an iterator
  /// that repeats goes on in the middle of a batch, and those of later epochs mix lengths.
  bool drop_last = false;
};

/// Batches of examples of similar lengths, in a random order, so that padding is small. The batch
/// size has to be the iterator's.
class BucketOrderSampler {
 public:
  /// The length of each example. Throws ValueError for a batch_size or batches_per_bucket below 1,
  /// and when it is asked by an iterator over another number of examples.
  BucketOrderSampler(std::vector<std::int64_t> lengths, std::int64_t batch_size,
                     BucketOrderSamplerOptions options = {});
  std::vector<std::int64_t> operator()(const EpochRequest& request) const;

 private:
  std::shared_ptr<const std::vector<std::int64_t>> lengths_;
  std::int64_t batch_size_;
  BucketOrderSamplerOptions options_;
};

}  // namespace iterators
}  // namespace rensa
