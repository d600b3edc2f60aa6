// Each rank's part of a dataset.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/array/communicator.h"
#include "rensa/data/sub_dataset.h"

namespace rensa::datasets {

struct ScatterOptions {
  bool shuffle = false;                    // the parts are of a random order, the same on all ranks
  std::optional<std::uint64_t> seed = {};  // of that order; rank 0 draws one when left out
  /// All parts have the same number of examples: where they do not come out even, some examples
  /// are in two parts. Without it the first parts have one more.
  bool force_equal_length = true;
};

/// This rank's part of a dataset that every rank has opened for itself (Chainer's sends it from
/// one rank: files on a shared disk need no sending). Called by all ranks. Throws ValueError on
/// all of them where the datasets have different lengths, or where there are fewer examples than
/// ranks.
SubDataset scatter_dataset(const Dataset& dataset, const Communicator& communicator,
                           const ScatterOptions& options = {});

}  // namespace rensa::datasets
