// Collectives and messages, and their gradients, which are such too.
#include "rensa/functions/communication_functions.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/node_templates.h"

namespace rensa::functions {

namespace {

using Counts = std::vector<std::int64_t>;  // of elements, by rank

struct AllReduce {
  static constexpr const char* name = "allreduce";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, ReduceOp op) {
    return communicator.allreduce(x, op);
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           ReduceOp op) {
    return allreduce(communicator, gy, op);
  }
};

/// The sum over all ranks on `root`, zeros on the others.
struct SumOnRoot {
  static constexpr const char* name = "bcast_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, int root) {
    Array sum = communicator.reduce(x, root);
    return sum.defined() ? sum : xp::zeros_like(x);
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           int root) {
    return bcast(communicator, gy, root);
  }
};

struct Broadcast {
  static constexpr const char* name = "bcast";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, int root) {
    Array y = communicator.bcast(x, root);
    if (y.shape() != x.shape() || y.dtype() != x.dtype()) {
      throw ShapeError(fmt::format("bcast: {} gives {}, and x is {} here; give one like it",
                                   communicator.describe(root), y.view().describe(),
                                   x.view().describe()));
    }
    return y;
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           int root) {
    return unary<SumOnRoot>(gy, communicator, root);
  }
};

/// Arrays that came, for the gradients that go back.
class Came {
 public:
  Came(const Arrays& arrays, Device device) : device_(device) {
    for (const Array& a : arrays) given_.emplace_back(a.shape(), a.dtype());
  }
  /// Ranks wait for each other's gradients: one that did not come is sent as zeros.
  Variables whole(const Variables& gy) const {
    Variables whole;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const auto& [shape, dtype] = given_[i];
      whole.push_back(gy[i].defined() ? gy[i] : constant(xp::zeros(shape, dtype, device_)));
    }
    return whole;
  }

 private:
  std::vector<std::pair<Shape, Dtype>> given_;
  Device device_;
};

class AllToAll final : public FunctionNode {
 public:
  explicit AllToAll(Communicator communicator)
      : FunctionNode("alltoall"), communicator_(std::move(communicator)) {}
  Arrays forward(const Arrays& xs) override {
    Arrays ys = communicator_.alltoall(xs);
    came_.emplace(ys, ys[0].device());
    return ys;
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return alltoall(communicator_, came_->whole(gy));
  }

 private:
  Communicator communicator_;
  std::optional<Came> came_;
};

struct AllToAllV {
  static constexpr const char* name = "alltoallv";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, const Counts& sent,
                       const Counts& received) {
    return communicator.alltoallv(x, sent, received);
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           const Counts& sent, const Counts& received) {
    return alltoallv(communicator, gy, received, sent);
  }
};

Array no_elements() { return xp::zeros({0}, float32, cpu()); }

/// A delegate of all inputs, whose gradients are zeros.
class DelegateOf final : public FunctionNode {
 public:
  DelegateOf() : FunctionNode("delegate_of") {}
  Arrays forward(const Arrays&) override { return {no_elements()}; }
  Variables backward(const Indexes&, const Variables&) override {
    Variables gx;
    for (const auto& x : inputs()) {
      gx.push_back(constant(xp::zeros(x->shape, x->dtype, x->device)));
    }
    return gx;
  }
};

/// `given` as a delegate, or one of nothing: a leaf, of which backward comes by all the same.
Variable delegate_or_leaf(const Variable& given) {
  if (!given.defined() || !given.requires_grad()) return Variable(no_elements());
  bool is_one = given.shape() == Shape{0} && given.dtype() == float32 && given.device().is_cpu();
  return is_one ? given : rensa::apply<DelegateOf>({given})[0];
}

/// What a function holds of its delegate: a leaf that nobody holds gets no gradient.
Variable held(const Variable& delegate) { return delegate.creator() ? Variable() : delegate; }

class PseudoConnect final : public FunctionNode {
 public:
  explicit PseudoConnect(Variable delegate)
      : FunctionNode("pseudo_connect"), held_(std::move(delegate)) {}
  Arrays forward(const Arrays& inputs) override { return Arrays(inputs.begin() + 1, inputs.end()); }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables came, gx(1);
    for (const Variable& g : gy) {
      if (g.defined()) came.push_back(g);
      gx.push_back(g);
    }
    gx[0] = rensa::apply<DelegateOf>(came)[0];
    return gx;
  }

 private:
  Variable held_;
};

/// x, with a gradient that somebody waits for whether x requires one or not.
Variable connected(const Variable& x) {
  return !x.defined() || x.requires_grad() ? x : pseudo_connect({}, x);
}

// The last output of those that follow is a delegate, which backward connects the gradients to:
// who differentiates these comes by the function again, on all ranks and in one order, whether the
// gradients depend on what it gave or not.

class Gather final : public FunctionNode {
 public:
  Gather(Communicator communicator, int root)
      : FunctionNode("gather_to_root"), communicator_(std::move(communicator)), root_(root) {}
  Arrays forward(const Arrays& x) override {
    device_ = x[0].device();
    Arrays ys = communicator_.gather(x[0], root_);
    came_.emplace(ys, device_);
    retain_outputs({static_cast<int>(ys.size())});
    ys.push_back(no_elements());
    return ys;
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable own = get_retained_outputs()[0];
    Variables given = communicator_.rank() == root_ ? came_->whole(gy) : gy;
    return {scatter(communicator_, pseudo_connect(own, given), root_).to(device_)};
  }

 private:
  Communicator communicator_;
  int root_;
  Device device_;
  std::optional<Came> came_;
};

class Scatter final : public FunctionNode {
 public:
  Scatter(Communicator communicator, int root, Variable delegate)
      : FunctionNode("scatter_from_root"),
        communicator_(std::move(communicator)),
        root_(root),
        held_(std::move(delegate)) {}
  Arrays forward(const Arrays& xs) override {
    bool is_root = communicator_.rank() == root_;
    for (const Array& x : xs) devices_.push_back(x.device());
    Array y = communicator_.scatter(is_root ? xs : Arrays(), root_);
    came_.emplace(Arrays{y}, y.device());
    retain_outputs({1});
    return {y, no_elements()};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables own = pseudo_connect(get_retained_outputs()[0], came_->whole(gy));
    Variables gx = gather(communicator_, own[0], root_);
    for (std::size_t i = 0; i < gx.size(); ++i) gx[i] = gx[i].to(devices_[i]);
    return gx;
  }

 private:
  Communicator communicator_;
  int root_;
  std::vector<Device> devices_;  // of the inputs
  std::optional<Came> came_;
  Variable held_;
};

/// Which message of its sender one is, and, where it is a gradient, of which message of its
/// receiver: gradients that two ranks send and await in different orders are found by it.
struct MessageNumbers {
  std::int64_t own = 0, answered = 0;

  void send(const Communicator& communicator, int destination) const {
    communicator.send(xp::array({own, answered}, int64, cpu()), destination);
  }
  static MessageNumbers recv(const Communicator& communicator, int source) {
    Array numbers = communicator.recv(source);
    if (numbers.shape() != Shape{2} || numbers.dtype() != int64) {
      throw ValueError(fmt::format("recv: {} sends {} by Communicator::send; take that one's recv",
                                   communicator.describe(source), numbers.view().describe()));
    }
    return {numbers[0].item<std::int64_t>(), numbers[1].item<std::int64_t>()};
  }
  static std::int64_t next() {
    static std::atomic<std::int64_t> last = 0;
    return ++last;
  }
};

Variable receive(const Communicator& communicator, int source, const Variable& delegate,
                 std::int64_t answered);

class Send final : public FunctionNode {
 public:
  Send(Communicator communicator, int destination, std::int64_t answered)
      : FunctionNode("send"),
        communicator_(std::move(communicator)),
        destination_(destination),
        numbers_{MessageNumbers::next(), answered} {}
  Arrays forward(const Arrays& x) override {
    device_ = x[0].device();
    numbers_.send(communicator_, destination_);
    communicator_.send(x[0], destination_);
    retain_outputs({0});
    return {no_elements()};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable before = pseudo_connect(get_retained_outputs()[0], gy[0]);
    return {receive(communicator_, destination_, before, numbers_.own).to(device_)};
  }

 private:
  Communicator communicator_;
  int destination_;
  MessageNumbers numbers_;
  Device device_;
};

class Receive final : public FunctionNode {
 public:
  Receive(Communicator communicator, int source, std::int64_t answered, Variable delegate)
      : FunctionNode("recv"),
        communicator_(std::move(communicator)),
        source_(source),
        answered_(answered),
        held_(std::move(delegate)) {}
  Arrays forward(const Arrays&) override {
    MessageNumbers numbers = MessageNumbers::recv(communicator_, source_);
    Array y = communicator_.recv(source_);
    if (numbers.answered != answered_) {
      throw ValueError(fmt::format(
          "recv: what came from {} is {}, and {} is awaited: messages between two ranks have one "
          "order in forward, and the reverse in backward, on both; give F::recv the delegate of "
          "what comes before it, or F::pseudo_connect it",
          communicator_.describe(source_), description_of(numbers.answered),
          description_of(answered_)));
    }
    number_ = numbers.own;
    came_.emplace(Arrays{y}, y.device());
    retain_outputs({1});
    return {y, no_elements()};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables own = pseudo_connect(get_retained_outputs()[0], came_->whole(gy));
    return rensa::apply<Send>(own, communicator_, source_, number_);
  }

 private:
  static std::string description_of(std::int64_t answered) {
    return answered == 0 ? "a message of forward"
                         : fmt::format("the gradient of message {} from here", answered);
  }

  Communicator communicator_;
  int source_;
  std::int64_t answered_, number_ = 0;
  std::optional<Came> came_;
  Variable held_;
};

Variable receive(const Communicator& communicator, int source, const Variable& delegate,
                 std::int64_t answered) {
  Variable before = delegate_or_leaf(delegate);
  return rensa::apply<Receive>({before}, communicator, source, answered, held(before))[0];
}

struct ToParts {
  static constexpr const char* name = "to_parts";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator&) { return x; }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator) {
    return sum_of_parts(communicator, gy);
  }
};

struct SumOfParts {
  static constexpr const char* name = "sum_of_parts";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator) {
    return communicator.allreduce(x);
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator) {
    return to_parts(communicator, gy);
  }
};

struct PartOf {
  static constexpr const char* name = "part_of";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, int axis) {
    if (x.shape(axis) % communicator.size() != 0) {
      throw ShapeError(
          fmt::format("part_of: axis {} of {} has {} elements, which {} ranks do not divide", axis,
                      x.view().describe(), x.shape(axis), communicator.size()));
    }
    return xp::split(x, communicator.size(), axis)[static_cast<std::size_t>(communicator.rank())];
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           int axis) {
    return join_parts(communicator, gy, axis);
  }
};

struct JoinParts {
  static constexpr const char* name = "join_parts";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const Communicator& communicator, int axis) {
    Counts counts(static_cast<std::size_t>(communicator.size()), x.size());
    std::string what = fmt::format("parts {}", x.shape().str());
    Shape whole = x.shape();
    whole[axis] *= communicator.size();
    std::int64_t outer = 1;
    for (int a = 0; a < axis; ++a) outer *= x.shape()[a];
    Shape parts{communicator.size(), outer, outer ? x.size() / outer : 0};
    Array joined = communicator.allgatherv(x.ravel(), counts, what).reshape(parts);
    return xp::moveaxis(joined, 0, 1).reshape(whole);
  }
  static Variable backward(const Variable&, const Variable& gy, const Communicator& communicator,
                           int axis) {
    return part_of(communicator, gy, axis);
  }
};

}  // namespace

Variable allreduce(const Communicator& communicator, const Variable& x, ReduceOp op) {
  if (op != ReduceOp::sum && op != ReduceOp::mean) {
    throw NotImplementedError(
        "allreduce: of functions there are the sum and the mean; maxima have no gradient here, "
        "take Communicator::allreduce of the array");
  }
  return unary<AllReduce>(x, communicator, op);
}

Variable bcast(const Communicator& communicator, const Variable& x, int root) {
  return unary<Broadcast>(x, communicator, root);
}

Variables allgather(const Communicator& communicator, const Variable& x) {
  return alltoall(communicator, Variables(static_cast<std::size_t>(communicator.size()), x));
}

Variables alltoall(const Communicator& communicator, const Variables& xs) {
  return apply<AllToAll>(xs, communicator);
}

Variables gather(const Communicator& communicator, const Variable& x, int root) {
  Variables ys = apply<Gather>({connected(x)}, communicator, root);
  if (communicator.rank() == root) ys.pop_back();
  return ys;
}

Variable scatter(const Communicator& communicator, const Variables& xs, int root) {
  if (communicator.rank() == root) {
    Variables given;
    for (const Variable& x : xs) given.push_back(connected(x));
    return apply<Scatter>(given, communicator, root, Variable())[0];
  }
  if (xs.size() > 1) {
    throw ShapeError(
        fmt::format("scatter: {} variables where {} is root; others give one delegate, or none",
                    xs.size(), communicator.describe(root)));
  }
  Variable delegate = delegate_or_leaf(xs.empty() ? Variable() : xs[0]);
  return apply<Scatter>({delegate}, communicator, root, held(delegate))[0];
}

Variable alltoallv(const Communicator& communicator, const Variable& x, const Counts& sent,
                   const Counts& received) {
  return unary<AllToAllV>(x, communicator, sent, received);
}

Variable send(const Communicator& communicator, const Variable& x, int destination) {
  return apply<Send>({connected(x)}, communicator, destination, 0)[0];
}

Variable recv(const Communicator& communicator, int source, const Variable& delegate) {
  return receive(communicator, source, delegate, 0);
}

Variable pseudo_connect(const Variable& delegate, const Variable& x) {
  return pseudo_connect(delegate, Variables{x})[0];
}

Variables pseudo_connect(const Variable& delegate, const Variables& xs) {
  Variable before = delegate_or_leaf(delegate);
  Variables inputs{before};
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  return apply<PseudoConnect>(inputs, held(before));
}

Variable to_parts(const Communicator& communicator, const Variable& x) {
  return unary<ToParts>(x, communicator);
}

Variable sum_of_parts(const Communicator& communicator, const Variable& x) {
  return unary<SumOfParts>(x, communicator);
}

Variable part_of(const Communicator& communicator, const Variable& x, int axis) {
  return unary<PartOf>(x, communicator, normalize_axis("part_of", axis, x.ndim()));
}

Variable join_parts(const Communicator& communicator, const Variable& x, int axis) {
  return unary<JoinParts>(x, communicator, normalize_axis("join_parts", axis, x.ndim()));
}

}  // namespace rensa::functions
