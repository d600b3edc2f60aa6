// Rewriting a recorded list of operations into a shorter one with the same results, bit for bit.
#pragma once

#include "rensa/graph/join_chains.h"
#include "rensa/graph/recording.h"

namespace rensa {

/// Applies the rewrites, in this order:
///   fold_constants   an operation that only fills memory of its own with a number ran already
///   fuse_relu        matmul with bias, then relu: relu as the product's epilogue
///   fuse_relu_grad   relu's gradient, then its sum over the batch (the bias gradient): one pass
///   drop_dead        what writes only memory that nobody reads, in the next run either, is left
///   out join_chains      elementwise operations that go on with each other's results: one kernel
///   (on a
///                    GPU)
///   split_updates    the update of many parameters goes in parts, each when its gradients are
///                    there
/// A storage that only the recording holds is the step's own: nobody else can see it.
JoinedChains rewrite(Recording& recording);

}  // namespace rensa
