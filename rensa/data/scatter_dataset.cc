// Parts of a dataset for the ranks of a group.
#include "rensa/data/scatter_dataset.h"

#include <fmt/format.h>

#include "rensa/array/agreement.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/epoch_order.h"

namespace rensa::datasets {

SubDataset scatter_dataset(const Dataset& dataset, const Communicator& communicator,
                           const ScatterOptions& options) {
  std::int64_t size = dataset.size(), ranks = communicator.size(), rank = communicator.rank();
  check_agreement(communicator, "scatter_dataset", fmt::format("{} examples", size),
                  "every rank opens the same dataset");
  if (size < ranks) {
    throw ValueError(fmt::format("scatter_dataset: {} examples for {} ranks", size, ranks));
  }
  Order order;
  if (options.shuffle) {
    Array own = options.seed ? xp::array(static_cast<std::int64_t>(*options.seed), cpu())
                             : xp::random::randint(0, std::int64_t{1} << 62, {}, int64, cpu());
    auto seed = communicator.bcast(own, 0).item<std::int64_t>();
    order.resize(static_cast<std::size_t>(size));
    random_order(static_cast<std::uint64_t>(seed), 0, size, order.data());
  }
  std::int64_t begin = size * rank / ranks;
  std::int64_t end =
      options.force_equal_length ? begin + (size + ranks - 1) / ranks : size * (rank + 1) / ranks;
  return SubDataset(dataset, begin, end, order);
}

}  // namespace rensa::datasets
