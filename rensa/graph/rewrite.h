// Rewriting a recorded list of operations into a shorter one with the same results, bit for bit.
#pragma once

#include "rensa/graph/join_chains.h"
#include "rensa/graph/recording.h"

namespace rensa {

/// Applies the rewrites, in this order:
///   patterns         graph/patterns.cc has them in a table
///   join_chains      on a GPU elementwise operations that go on with each other's results become
///                    one kernel
/// A storage that only the recording holds is the step's own: nobody else can see it.
JoinedChains rewrite(Recording& recording);

}  // namespace rensa
