// Parts of a dataset for the ranks of a group.
#include "rensa/data/scatter_dataset.h"

#include <fmt/format.h>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/epoch_order.h"

namespace rensa::datasets {

SubDataset scatter_dataset(const Dataset& dataset, const Communicator& communicator,
                           const ScatterOptions& options) {
  std::int64_t size = dataset.size(), ranks = communicator.size(), rank = communicator.rank();
  // What all have to agree on: how long their datasets are, and rank 0's seed.
  Array own = xp::zeros({2}, int64, cpu());
  own[0] = size;
  if (options.shuffle && !options.seed) {
    own[1] = xp::random::randint(0, std::int64_t{1} << 62, {}, int64, cpu());
  } else if (options.shuffle) {
    own[1] = static_cast<std::int64_t>(*options.seed);
  }
  std::vector<Array> all = communicator.allgather(own);
  for (int r = 0; r < communicator.size(); ++r) {
    auto other = all[static_cast<std::size_t>(r)][0].item<std::int64_t>();
    if (other == size) continue;
    throw ValueError(fmt::format(
        "scatter_dataset: {} has {} examples and {} has {}; every rank opens the same dataset",
        communicator.describe(static_cast<int>(rank)), size, communicator.describe(r), other));
  }
  if (size < ranks) {
    throw ValueError(fmt::format("scatter_dataset: {} examples for {} ranks", size, ranks));
  }
  Order order;
  if (options.shuffle) {
    order.resize(static_cast<std::size_t>(size));
    random_order(static_cast<std::uint64_t>(all[0][1].item<std::int64_t>()), 0, size, order.data());
  }
  std::int64_t begin = size * rank / ranks;
  std::int64_t end =
      options.force_equal_length ? begin + (size + ranks - 1) / ranks : size * (rank + 1) / ranks;
  return SubDataset(dataset, begin, end, order);
}

}  // namespace rensa::datasets
