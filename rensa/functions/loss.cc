// Loss functions: forward and backward.
#include "rensa/functions/loss.h"

#include <optional>

#include "rensa/autograd/function_node.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/classification.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

namespace rensa::functions {

namespace {

class SoftmaxCrossEntropyNode final : public FunctionNode {
 public:
  explicit SoftmaxCrossEntropyNode(const SoftmaxCrossEntropyOptions& options)
      : FunctionNode("softmax_cross_entropy"), options_(options) {}

  Arrays forward(const Arrays& inputs) override {
    check_scores_and_labels(name(), inputs[0], inputs[1]);
    retain_inputs({0});
    Array x = inputs[0].ascontiguous();
    Array t = inputs[1].ascontiguous();
    t_.emplace(t);
    y_ = xp::empty(x.shape(), x.dtype(), x.device());
    count_ = xp::empty({}, float32, x.device());
    Array loss = xp::empty({}, x.dtype(), x.device());
    operations::SoftmaxCrossEntropy op;
    op.normalize = options_.normalize;
    op.ignore_label = options_.ignore_label;
    op.x = x.operand();
    op.t = t.operand();
    op.y = y_.operand();
    op.loss = loss.operand();
    op.count = count_.operand();
    launch(op);
    return {loss};
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    if (config().enable_backprop) return {differentiable_gradient(gy[0]), {}};
    Array gx = xp::empty(y_.shape(), y_.dtype(), y_.device());
    Array g = gy[0].array().ascontiguous();
    operations::SoftmaxCrossEntropyGrad op;
    op.ignore_label = options_.ignore_label;
    op.y = y_.operand();
    op.t = labels().operand();
    op.count = count_.operand();
    op.gy = g.operand();
    op.gx = gx.operand();
    launch(op);
    return {constant(gx), {}};
  }

 private:
  // The same as the operation above, made of functions that know their gradients:
  // (softmax(x) - onehot(t)) * gy / count.
  Variable differentiable_gradient(const Variable& gy) {
    Variable x = get_retained_inputs()[0];
    Array labels = this->labels().reshape({-1, 1});
    Array one_hot = labels == xp::arange(x.shape(1), int64, x.device());
    Array counted = labels != options_.ignore_label;
    Array weight = counted.astype(promote_types(x.dtype(), float32)) / count_;
    Variable difference = exp(log_softmax(x)) - constant(one_hot.astype(x.dtype()));
    return difference * constant(weight.astype(x.dtype())) * gy;
  }

  const Array& labels() const { return t_->get(name(), "labels"); }

  SoftmaxCrossEntropyOptions options_;
  std::optional<KeptArray> t_;
  Array y_, count_;  // y_ is the log softmax of x
};

}  // namespace

Variable softmax_cross_entropy(const Variable& x, const Variable& t,
                               const SoftmaxCrossEntropyOptions& options) {
  return apply<SoftmaxCrossEntropyNode>({x, t}, options)[0];
}

}  // namespace rensa::functions
