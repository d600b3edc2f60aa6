// Collectives and messages as functions: what ranks of a group exchange in the middle of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// Called by all ranks, as the calls of Communicator are, and so is their part of backward: every
// rank has to call it, for graphs of the same functions. Each has gradients of gradients. They
// throw what Communicator's throw.
//
// Where a rank gets nothing but its part of backward, there is a delegate: a variable without
// elements, float32 of shape (0,) on the CPU, from which backward starts. Where one is taken, any
// variable may be given, of what this rank has done before; its part of backward comes after. A
// leaf that is a delegate, Variable(xp::zeros({0})), is for gradients of gradients: from its
// grad_var() this rank's part of that backward starts.

/// The sum or the mean over all ranks, on all of them. The gradient is the same of theirs.
[[nodiscard]] Variable allreduce(const Communicator& communicator, const Variable& x,
                                 ReduceOp op = ReduceOp::sum);
/// `root`'s x on all ranks. All give one, of the same shape and dtype; that of the others does not
/// matter, and its gradient is zero. root's is the sum of all.
[[nodiscard]] Variable bcast(const Communicator& communicator, const Variable& x, int root = 0);
/// The x of each rank, by rank, on `root`; on the others a delegate. Shapes are each rank's own.
/// root hands the gradients back, zeros where none came.
[[nodiscard]] Variables gather(const Communicator& communicator, const Variable& x, int root = 0);
/// The x of each rank, by rank, on all of them; shapes are each rank's own. The gradient of x is
/// the sum over the ranks of those of what they got of it.
[[nodiscard]] Variables allgather(const Communicator& communicator, const Variable& x);
/// xs[rank] of those that `root` gives, one for each rank; on the CPU where root is another. The
/// others give none, or a delegate. root gets the gradients of all. Throws ShapeError on root for
/// another number of xs, on the others for more than one.
[[nodiscard]] Variable scatter(const Communicator& communicator, const Variables& xs, int root = 0);
/// What each rank gives this one, by rank: each gives xs[rank] to that rank. The gradients go back
/// the same way.
[[nodiscard]] Variables alltoall(const Communicator& communicator, const Variables& xs);

/// Communicator::alltoallv() of an x in one dimension, which recorded steps have in them. The
/// gradients go back the same way.
[[nodiscard]] Variable alltoallv(const Communicator& communicator, const Variable& x,
                                 const std::vector<std::int64_t>& sent,
                                 const std::vector<std::int64_t>& received);

/// x to another rank, which calls recv() for it at that time: a delegate. Its backward waits for
/// the gradient, which that rank's recv sends. Throws ValueError where the gradient of something
/// else comes: what two ranks send each other has to come in the same order on both.
[[nodiscard]] Variable send(const Communicator& communicator, const Variable& x, int destination);
/// What that rank sends by send(), on the CPU; backward sends it the gradient. Throws as send(),
/// and ValueError for what comes from Communicator::send.
[[nodiscard]] Variable recv(const Communicator& communicator, int source,
                            const Variable& delegate = {});
/// x as it is, whose backward also goes to `delegate`, once x's gradient is there: for what x is
/// used for comes after what the delegate is of.
[[nodiscard]] Variable pseudo_connect(const Variable& delegate, const Variable& x);
/// The same of several.
[[nodiscard]] Variables pseudo_connect(const Variable& delegate, const Variables& xs);

// Parts of one computation, whose result and loss are alike on all ranks: Shoeybi et al.,
// "Megatron-LM: Training multi-billion parameter language models using model parallelism".
// Gradients are of that one loss, where those of the collectives above are of the sum of all ranks'
// losses.

/// x as it is, which all ranks have alike, on its way into each rank's part (their f). The gradient
/// is the sum of those of all parts.
[[nodiscard]] Variable to_parts(const Communicator& communicator, const Variable& x);
/// The sum over all ranks of what their parts gave, alike on all of them (their g). The gradient
/// is passed as it is.
[[nodiscard]] Variable sum_of_parts(const Communicator& communicator, const Variable& x);
/// This rank's of as many equal parts along `axis` as there are ranks, of an x that all have alike.
/// The gradient is join_parts() of theirs. Throws ShapeError where x's extent does not divide,
/// IndexError for an axis that is not there.
[[nodiscard]] Variable part_of(const Communicator& communicator, const Variable& x, int axis);
/// The x of all ranks one after the other along `axis`, alike on all of them. The gradient is its
/// part of this rank. Throws CommunicationError where the ranks' shapes differ, IndexError as
/// part_of.
[[nodiscard]] Variable join_parts(const Communicator& communicator, const Variable& x, int axis);

}  // namespace functions

namespace F = functions;
}  // namespace rensa
