// FunctionNode: a differentiable function, forward on Arrays and backward on Variables side by
// side. Because backward is made of differentiable functions, higher derivatives come free.
//
//   class Exp final : public FunctionNode {
//    public:
//     Exp() : FunctionNode("exp") {}
//     Arrays forward(const Arrays& x) override {
//       retain_outputs({0});
//       return {xp::exp(x[0])};
//     }
//     Variables backward(const Indexes&, const Variables& gy) override {
//       return {gy[0] * get_retained_outputs()[0]};
//     }
//   };
//   Variable exp(const Variable& x) { return apply<Exp>({x})[0]; }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/autograd/function_attributes.h"
#include "rensa/autograd/variable.h"

namespace rensa {

using Arrays = std::vector<Array>;  // what functions take and give
using Indexes = std::vector<int>;   // places among inputs or outputs

/// An array that a function keeps for its backward: the values of now, not what an operation in
/// place makes of them later.
class KeptArray {
 public:
  explicit KeptArray(Array array);
  /// The array. Throws ValueError, with the `function` that kept `what`, when its memory has been
  /// written to since; an optimizer's update does not count.
  const Array& get(const char* function, const char* what) const;

 private:
  Array array_;
  std::uint32_t version_;
};

class FunctionNode : public std::enable_shared_from_this<FunctionNode> {
 public:
  /// `name` is Chainer's label; it stands in errors and graph dumps.
  explicit FunctionNode(const char* name);
  virtual ~FunctionNode();  // flat: long chains of nodes do not recurse
  FunctionNode(const FunctionNode&) = delete;
  FunctionNode& operator=(const FunctionNode&) = delete;

  /// The outputs of these inputs, in arrays; called by apply(). It may throw.
  virtual Arrays forward(const Arrays& inputs) = 0;
  /// Gradients of the inputs whose indexes are in `targets`, in that order (or of all inputs, with
  /// undefined ones where not asked). `grad_outputs[i]` is undefined where no gradient reaches
  /// output i.
  virtual Variables backward(const Indexes& targets, const Variables& grad_outputs) = 0;

  /// How many products forward adds up, of inputs and outputs like these: what summary() counts.
  /// Matrix products, convolutions, attention and recurrent layers have them.
  virtual std::int64_t multiply_adds(const Arrays& /*inputs*/, const Arrays& /*outputs*/) const {
    return 0;
  }

  /// What the function was made with: with its name all that there is to know of its forward. None
  /// of a function that does not tell, which graphs cannot be exported with.
  virtual std::optional<FunctionAttributes> attributes() const;

  /// Runs forward on the inputs' device and links the outputs to the inputs, unless backprop is
  /// off or no input requires a gradient. A node is applied once. Debug mode checks for NaN; an
  /// Autocast casts the inputs as the table has it for the node's name.
  Variables apply(const Variables& inputs);

  const char* name() const { return name_; }
  int rank() const { return rank_; }  // the longest way from a leaf of the graph
  /// Their places in the graph; none after unchain().
  const std::vector<std::shared_ptr<VariableNode>>& inputs() const { return inputs_; }
  /// Those that are still held.
  const std::vector<std::weak_ptr<VariableNode>>& outputs() const { return outputs_; }
  void unchain();  // lets go of its inputs: what came before can go

 protected:
  // Called in forward; what is not asked for here is not kept.
  void retain_inputs(Indexes indexes) { retained_inputs_ = std::move(indexes); }
  void retain_outputs(Indexes indexes) { retained_outputs_ = std::move(indexes); }
  // Called in backward: variables linked to the graph, in the order they were asked for. Throw
  // ValueError where the array was changed in place since forward.
  Variables get_retained_inputs();
  Variables get_retained_outputs();

 private:
  Variables run(const Variables& inputs);
  void link(const Variables& inputs, Arrays& arrays, const Variables& results);

  const char* name_;
  int rank_ = 0;
  bool applied_ = false;
  std::vector<std::shared_ptr<VariableNode>> inputs_;
  std::vector<std::weak_ptr<VariableNode>> outputs_;
  Indexes retained_inputs_, retained_outputs_;
  std::vector<KeptArray> retained_;  // of the inputs, then of the outputs
};

/// Makes a Node of `arguments` and applies it.
template <class Node, class... Args> Variables apply(const Variables& inputs, Args&&... arguments) {
  return std::make_shared<Node>(std::forward<Args>(arguments)...)->apply(inputs);
}

}  // namespace rensa
