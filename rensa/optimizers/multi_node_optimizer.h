// Optimizers of models that several ranks of a group train together.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa {

/// Gives every rank's model the parameters that rank 0's has, those that are initialized; what
/// else lasts of a model stays each rank's own. Throws ValueError on all ranks where the models
/// differ: in their parameters' paths, shapes and dtypes, or in which of them are initialized.
void bcast_data(const Communicator& communicator, Link& model);

/// The same optimizer, each of whose updates begins by replacing the gradients by their means over
/// all ranks: with the same share of a batch on each rank, a step is what it would be for the
/// whole batch on one (Chainer's create_multi_node_optimizer). Called by all ranks, with the same
/// optimizer. Hooks that are added later see the means, and so do all after an earlier one of this.
///
/// A model that has been set up is given rank 0's parameters now (bcast_data). Parameters that wait
/// for their shapes are given rank 0's at their first update, in which rank 0's gradients count
/// alone: the others' are those of other parameters. Gradients go through the communicator packed,
/// an array for each dtype, by way of the host. Throws ValueError as bcast_data does, then and at
/// first updates.
Optimizer create_multi_node_optimizer(Optimizer optimizer, const Communicator& communicator);

}  // namespace rensa
