// MultithreadIterator: examples fetched ahead, by threads.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/data/iterator.h"

namespace rensa::iterators {

struct MultithreadIteratorOptions {
  bool repeat = true;   // goes on behind the end of an epoch
  bool shuffle = true;  // in a new order each epoch
  /// As SerialIteratorOptions has them.
  std::optional<std::uint64_t> seed = {};
  OrderSampler order_sampler = {};  // as SerialIteratorOptions has it
  /// Threads that fetch; 0: as many as get_num_threads().
  int n_threads = 0;
  /// Batches that are fetched ahead of the one that is asked for, at the most.
  std::int64_t n_prefetch = 2;
};

/// SerialIterator's batches, bit for bit and whatever the number of threads, with their examples
/// fetched by threads while the batches before them are worked on. Fetching begins with the first
/// next(). epoch() and its like, and what files keep, are of the batches that were handed out.
///
/// An exception of an example is thrown by the next() that would have given its batch, that of the
/// first such example in it; the batch counts as handed out, and the next() after it gives the one
/// behind. reset(), the reading of a file and the destructor drop what was fetched ahead, and wait
/// for the examples that are in work, not for whole batches.
///
/// The dataset's functions are called in several threads at once, under the device and the
/// configuration that the thread had which made the iterator. What they draw at random has to come
/// from the RandomStream that they are given (TransformDataset, Dataset). A dataset of arrays is
/// left to the converter, which gathers whole batches: there are no threads then. One thread at a
/// time may use the iterator.
class MultithreadIterator : public Iterator {
 public:
  /// Throws as SerialIterator does, and ValueError for an n_threads or n_prefetch below 0 or beyond
  /// 1024 and 2^20.
  MultithreadIterator(Dataset dataset, std::int64_t batch_size,
                      MultithreadIteratorOptions options = {});
};

}  // namespace rensa::iterators
