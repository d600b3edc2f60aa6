// Optimizers of models that several ranks of a group train together.
#pragma once

#include <optional>

#include "rensa/array/communicator.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa {

/// Gives every rank's model the parameters that rank 0's has, those that are initialized; what
/// else lasts of a model stays each rank's own. Throws ValueError on all ranks where the models
/// differ: in their parameters' paths, shapes and dtypes, or in which of them are initialized.
void bcast_data(const Communicator& communicator, Link& model);

struct MultiNodeOptimizerOptions {
  /// What gradients are sent as, bfloat16 or float16 for half the bytes; sums are float32 all the
  /// same. Their own dtype when left out.
  std::optional<Dtype> allreduce_grad_dtype = {};
  /// A parameter without a gradient counts as one whose gradient is zero, where other ranks may
  /// have one. Without it all ranks have to have gradients of the same parameters.
  bool zero_fill = false;
  /// Each rank keeps the optimizer's states, and float32 copies, of a share of the parameters, to
  /// which the means of its gradients go, updates these and gives them to all (ZeRO 1 of
  /// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
  /// with the traffic of ZeRO 2: no more than without). A parameter is one rank's as a whole, the
  /// largest ones are given out first. Hooks before the update see the rank's share alone, norms
  /// are those of all. Files want gather_states() first.
  bool sharded = false;
  /// With `sharded`: gradients, too, are kept by the rank that updates with them alone (ZeRO 2).
  /// Backward exchanges them as they become complete, some megabytes at a time, and gives their
  /// memory back; another rank's read as zeros. For what calls Optimizer::backward or
  /// Optimizer::update(lossfun, ...), as StandardUpdater does, the same parts of a batch on each
  /// rank. Between backward and the update gradients are not to be changed (ValueError) but by
  /// hooks.
  bool sharded_gradients = false;
  /// Gradients are exchanged by another thread while the next step computes its own, and updated
  /// with then: an update has the means of the step before, and the first one does nothing
  /// (ChainerMN's double buffering). Worth it where an exchange takes a good part of a step. Steps
  /// stay eager; files lack the gradients that are on their way. Not with `sharded`, nor with a
  /// dynamic loss scale.
  bool double_buffering = false;
};

/// The same optimizer, each of whose updates begins by replacing the gradients by their means over
/// all ranks: with the same share of a batch on each rank, a step is what it would be for the
/// whole batch on one (Chainer's create_multi_node_optimizer). Called by all ranks, with the same
/// optimizer. Hooks see the means; a dynamic loss scale follows them, so that all ranks leave out
/// the same updates.
///
/// A model that has been set up is given rank 0's parameters now (bcast_data). Parameters that wait
/// for their shapes are given rank 0's, with its gradients, at their first update: the others' are
/// those of other parameters. Gradients go through the communicator in packs of one dtype and
/// device, the last parameters' first: on GPUs (Communicator::on) a captured step exchanges them
/// while backward still works.
///
/// Throws ValueError as bcast_data does, then and at first updates, for an optimizer that is one of
/// these already, and for options that exclude each other; DtypeError for an allreduce_grad_dtype
/// that is not floating. Updates throw CommunicationError where ranks have gradients of other
/// parameters, and NotImplementedError for hooks that make random numbers and for a dynamic loss
/// scale with double buffering.
Optimizer create_multi_node_optimizer(Optimizer optimizer, const Communicator& communicator,
                                      const MultiNodeOptimizerOptions& options = {});

/// The same optimizer, of this rank's stage of a model (links/pipeline.h): what an update does with
/// all parameters is for those of all stages. GradientClipping takes the norm of the whole model,
/// and a dynamic loss scale leaves out the same updates on all ranks. Hooks of single parameters
/// see those of this rank. Called by all ranks, with the same optimizer and hooks; each update
/// waits for that of the others. Throws ValueError for an optimizer that works with other ranks
/// already.
Optimizer create_pipeline_optimizer(Optimizer optimizer, const Communicator& communicator);

/// Gives every rank the states that the others keep, for a file: with sharded states, called by
/// all ranks; the next update gives them up again. Does nothing for another optimizer.
void gather_states(const Optimizer& optimizer);

}  // namespace rensa
