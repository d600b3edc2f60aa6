// Planning a recorded list: what has to run after what, and where the step's own memory lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "rensa/graph/recording.h"

namespace rensa {

struct Plan {
  /// For each operation, the earlier ones it must follow directly; those behind them are implied.
  std::vector<std::vector<int>> dependencies;
  /// The lane of each operation, from 0: those of one lane follow one another.
  std::vector<std::size_t> lanes;
  /// On each device one block for all memory of the step's own and all scratch; two of them share a
  /// place only where every use of the one has to come before the other anyway.
  std::map<Device, StoragePtr> arenas;
  std::vector<char*> workspaces;  // one per operation, null where it wants none
  std::vector<std::size_t> workspace_bytes;

  /// For each operation the length of the longest chain through it, of operations that wait for one
  /// another.
  std::vector<std::int64_t> chains() const;
  /// The length of the longest one.
  std::int64_t longest_chain() const;
};

/// Plans `recording` and points its operations' operands into the arena. With `branches` off every
/// operation follows the one before it; with it on, fewer run side by side than could where the
/// memory for that would be hundreds of megabytes and more than they need one by one. Memory that
/// someone outside of the recording holds stays where it is.
Plan make_plan(Recording& recording, bool branches);

}  // namespace rensa
