// L::Pipeline: a model whose stages are on the ranks of a group.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/links/any_link.h"

namespace rensa {
namespace links {

/// Each rank has a stage, a link of one input, through which a batch goes in turn: rank 0's first.
/// The batch is cut into equal parts along axis 0, the micro-batches, so that a stage works on one
/// while others work on those before and behind it (Huang et al., "GPipe: Efficient training of
/// giant neural networks using pipeline parallelism"; ChainerMN's MultiNodeChainList, a chain).
///
///   L::Pipeline model(comm, std::move(own_stage), 4);
///   Variable y = model(comm.rank() == 0 ? x : Variable());
///   Variable loss = model.is_last() ? F::softmax_cross_entropy(y, t) : y;
///   loss.backward();  // on all ranks
///
/// Gradients are those of the whole batch at once; what a stage keeps of each micro-batch stays
/// until backward. Statistics of batches (BatchNormalization's) are each micro-batch's own. A rank
/// has its own stage's parameters, for its optimizer and its files.
class Pipeline : public Chain<Pipeline> {
 public:
  /// Called by all ranks. Throws ValueError on all of them where micro_batches differ, and for less
  /// than one.
  Pipeline(const Communicator& communicator, AnyLink stage, int micro_batches = 1);
  void members(Visitor& v) override { v("stage", stage); }

  /// x on rank 0; other ranks give none. The outputs of the last stage end to end on the last rank;
  /// on the others a delegate (functions/communication_functions.h), from which their part of
  /// backward starts. Between ranks arrays go by way of the host. Throws ShapeError where axis 0 of
  /// x is not cut in equal parts, ValueError where x is given elsewhere, or is not given on rank 0.
  Variable operator()(const Variable& x) const;
  bool is_first() const { return communicator_.rank() == 0; }  // whether this rank gives x
  /// Whether this rank has the outputs.
  bool is_last() const { return communicator_.rank() == communicator_.size() - 1; }

  AnyLink stage;

 private:
  Communicator communicator_;
  int micro_batches_;
};

}  // namespace links

// Made once, in pipeline.cc: what users' files would compile again for each of their own.
extern template class Chain<links::Pipeline>;

namespace L = links;

}  // namespace rensa
