// Elementwise chains of a recorded list, each as one kernel that is compiled at run time.
#pragma once

#include <string>

#include "rensa/graph/recording.h"

namespace rensa {

struct JoinedChains {
  std::int64_t kernels = 0, operations = 0;  // made; what they do instead
  std::string failure;                       // why the others stay apart, where they do
};

/// Joins elementwise operations of one shape of which each reads what another one wrote, as far as
/// nothing between them has to run in between. Values that nobody else reads are no longer written
/// to memory. Rounds as the operations do: on a GPU the results are the same bit for bit; on a CPU
/// the last bits of math functions are those of the vector functions that its compiler chose.
JoinedChains join_chains(Recording& recording);

}  // namespace rensa
