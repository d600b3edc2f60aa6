// Collectives and their gradients, which are collectives too.
#include "rensa/functions/communication_functions.h"

#include <fmt/format.h>

#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"

namespace rensa::functions {

namespace {

class AllReduce final : public FunctionNode {
 public:
  AllReduce(Communicator communicator, ReduceOp op)
      : FunctionNode("allreduce"), communicator_(std::move(communicator)), op_(op) {}
  Arrays forward(const Arrays& x) override { return {communicator_.allreduce(x[0], op_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {allreduce(communicator_, gy[0], op_)};
  }

 private:
  Communicator communicator_;
  ReduceOp op_;
};

/// The sum over all ranks on `root`, zeros on the others.
class SumOnRoot final : public FunctionNode {
 public:
  SumOnRoot(Communicator communicator, int root)
      : FunctionNode("reduce"), communicator_(std::move(communicator)), root_(root) {}
  Arrays forward(const Arrays& x) override {
    Array sum = communicator_.reduce(x[0], root_);
    return {sum.defined() ? sum : xp::zeros_like(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {bcast(communicator_, gy[0], root_)};
  }

 private:
  Communicator communicator_;
  int root_;
};

class Broadcast final : public FunctionNode {
 public:
  Broadcast(Communicator communicator, int root)
      : FunctionNode("bcast"), communicator_(std::move(communicator)), root_(root) {}
  Arrays forward(const Arrays& x) override {
    Array y = communicator_.bcast(x[0], root_);
    if (y.shape() != x[0].shape() || y.dtype() != x[0].dtype()) {
      throw ShapeError(fmt::format("bcast: {} gives {}, and x is {} here; give one like it",
                                   communicator_.describe(root_), y.view().describe(),
                                   x[0].view().describe()));
    }
    return {y};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return rensa::apply<SumOnRoot>({gy[0]}, communicator_, root_);
  }

 private:
  Communicator communicator_;
  int root_;
};

class AllToAll final : public FunctionNode {
 public:
  explicit AllToAll(Communicator communicator)
      : FunctionNode("alltoall"), communicator_(std::move(communicator)) {}
  Arrays forward(const Arrays& xs) override {
    Arrays ys = communicator_.alltoall(xs);
    for (const Array& y : ys) given_.emplace_back(y.shape(), y.dtype());
    device_ = ys[0].device();
    return ys;
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    // Ranks wait for each other's gradients: one that did not come is sent as zeros.
    Variables whole = gy;
    for (std::size_t rank = 0; rank < gy.size(); ++rank) {
      const auto& [shape, dtype] = given_[rank];
      if (!gy[rank].defined()) whole[rank] = constant(xp::zeros(shape, dtype, device_));
    }
    return alltoall(communicator_, whole);
  }

 private:
  Communicator communicator_;
  std::vector<std::pair<Shape, Dtype>> given_;  // to this rank, by each
  Device device_;
};

}  // namespace

Variable allreduce(const Communicator& communicator, const Variable& x, ReduceOp op) {
  if (op != ReduceOp::sum && op != ReduceOp::mean) {
    throw NotImplementedError(
        "allreduce: of functions there are the sum and the mean; maxima have no gradient here, "
        "take Communicator::allreduce of the array");
  }
  return apply<AllReduce>({x}, communicator, op)[0];
}

Variable bcast(const Communicator& communicator, const Variable& x, int root) {
  return apply<Broadcast>({x}, communicator, root)[0];
}

Variables allgather(const Communicator& communicator, const Variable& x) {
  return alltoall(communicator, Variables(static_cast<std::size_t>(communicator.size()), x));
}

Variables alltoall(const Communicator& communicator, const Variables& xs) {
  return apply<AllToAll>(xs, communicator);
}

}  // namespace rensa::functions
