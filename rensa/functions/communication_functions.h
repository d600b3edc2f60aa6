// Collectives as functions: what ranks of a group exchange in the middle of a network.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// Called by all ranks, as the collectives of Communicator are, and so is their part of backward:
// every rank has to call it, for graphs of the same functions. Each has gradients of gradients.
// They throw what Communicator's throw.

/// The sum or the mean over all ranks, on all of them. The gradient is the same of theirs.
[[nodiscard]] Variable allreduce(const Communicator& communicator, const Variable& x,
                                 ReduceOp op = ReduceOp::sum);
/// `root`'s x on all ranks. All give one, of the same shape and dtype; that of the others does not
/// matter, and its gradient is zero. root's is the sum of all.
[[nodiscard]] Variable bcast(const Communicator& communicator, const Variable& x, int root = 0);
/// The x of each rank, by rank, on all of them; shapes are each rank's own. The gradient of x is
/// the sum over the ranks of those of what they got of it.
[[nodiscard]] Variables allgather(const Communicator& communicator, const Variable& x);
/// What each rank gives this one, by rank: each gives xs[rank] to that rank. The gradients go back
/// the same way.
[[nodiscard]] Variables alltoall(const Communicator& communicator, const Variables& xs);

}  // namespace functions

namespace F = functions;
}  // namespace rensa
