// Losses of classification.
#include <fmt/format.h>

#include <optional>

#include "rensa/array/creation.h"
#include "rensa/array/indexing.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/classification.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/loss.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/nll_loss/nll_loss.h"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

namespace rensa::functions {

namespace {

/// The mean loss of rows (n, classes) with labels (n,) in one kernel, its gradient in another.
class LabelledLossNode : public FunctionNode {
 public:
  Variables backward(const Indexes&, const Variables& gy) final {
    if (config().enable_backprop) return {differentiable_gradient(gy[0]), {}};
    return {constant(gradient(gy[0].array().ascontiguous())), {}};
  }

 protected:
  LabelledLossNode(const char* name, std::int64_t ignore_label)
      : FunctionNode(name), ignore_label_(ignore_label) {}

  /// For gy, 0-d, that of the rows.
  virtual Array gradient(const Array& gy) = 0;
  /// The same made of functions that know their gradients.
  virtual Variable differentiable_gradient(const Variable& gy) = 0;

  void keep_labels(const Array& t) { t_.emplace(t); }
  const Array& labels() const { return t_->get(name(), "labels"); }

  std::int64_t ignore_label_;
  Array count_;  // of the rows counted, or 1 where the loss is not divided by them

 private:
  std::optional<KeptArray> t_;
};

class SoftmaxCrossEntropyNode final : public LabelledLossNode {
 public:
  explicit SoftmaxCrossEntropyNode(bool normalize, std::int64_t ignore_label)
      : LabelledLossNode("softmax_cross_entropy", ignore_label), normalize_(normalize) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0});
    Array x = inputs[0].ascontiguous();
    Array t = inputs[1].ascontiguous();
    keep_labels(t);
    Dtype wide = promote_types(x.dtype(), float32);
    shift_ = xp::empty({x.shape(0), 2}, wide, x.device());
    count_ = xp::empty({}, float32, x.device());
    Array loss = xp::empty({}, x.dtype(), x.device());
    operations::SoftmaxCrossEntropy op;
    op.normalize = normalize_;
    op.ignore_label = ignore_label_;
    op.x = x.operand();
    op.t = t.operand();
    op.shift = shift_.operand();
    op.loss = loss.operand();
    op.count = count_.operand();
    launch(op);
    return {loss};
  }

 private:
  Array gradient(const Array& gy) override {
    Array x = get_retained_inputs()[0].array().ascontiguous();
    Array gx = xp::empty(x.shape(), x.dtype(), x.device());
    operations::SoftmaxCrossEntropyGrad op;
    op.normalize = normalize_;
    op.ignore_label = ignore_label_;
    op.x = x.operand();
    op.t = labels().operand();
    if (x.device().is_cpu() || !op.is_few_short_rows(op.x.view)) {
      op.shift = shift_.operand();
      op.count = count_.operand();
    }
    op.gy = gy.operand();
    op.gx = gx.operand();
    launch(op);
    return gx;
  }

  // (softmax(x) - onehot(t)) * gy / count.
  Variable differentiable_gradient(const Variable& gy) override {
    Variable x = get_retained_inputs()[0];
    Array labels = this->labels().reshape({-1, 1});
    Array one_hot = labels == xp::arange(x.shape(1), int64, x.device());
    Array counted = labels != ignore_label_;
    Array weight = counted.astype(promote_types(x.dtype(), float32)) / count_;
    Variable difference = exp(log_softmax(x)) - constant(one_hot.astype(x.dtype()));
    return difference * constant(weight.astype(x.dtype())) * gy;
  }

  bool normalize_;
  Array shift_;  // what x less it is the log softmax of x
};

/// The mean of -x[i, t[i]].
class NllLossNode final : public LabelledLossNode {
 public:
  explicit NllLossNode(std::int64_t ignore_label) : LabelledLossNode("nll_loss", ignore_label) {}

  Arrays forward(const Arrays& inputs) override {
    Array x = inputs[0].ascontiguous(), t = inputs[1].ascontiguous();
    keep_labels(t);
    shape_ = x.shape();
    count_ = xp::empty({}, promote_types(x.dtype(), float32), x.device());
    Array loss = xp::empty({}, x.dtype(), x.device());
    operations::NllLoss op;
    op.ignore_label = ignore_label_;
    op.x = x.operand();
    op.t = t.operand();
    op.loss = loss.operand();
    op.count = count_.operand();
    launch(op);
    return {loss};
  }

 private:
  Array gradient(const Array& gy) override {
    Array gx = xp::empty(shape_, gy.dtype(), gy.device());
    operations::NllLossGrad op;
    op.ignore_label = ignore_label_;
    op.t = labels().operand();
    op.count = count_.operand();
    op.gy = gy.operand();
    op.gx = gx.operand();
    launch(op);
    return gx;
  }

  Variable differentiable_gradient(const Variable& gy) override {
    Array labels = this->labels().reshape({-1, 1});
    Array taken = (labels == xp::arange(shape_[1], int64, gy.device())) & (labels != ignore_label_);
    Array weight = taken.astype(count_.dtype()) / count_;
    return constant(-weight.astype(gy.dtype(), false)) * gy;
  }

  Shape shape_;
};

/// x (n, classes, ...) as rows (m, classes), those of t (n, ...) flattened.
Variable class_rows(const Variable& x) {
  if (x.ndim() == 2) return x;
  Shape axes{0};
  for (int i = 2; i < x.ndim(); ++i) axes.push_back(i);
  axes.push_back(1);
  std::int64_t classes = x.shape(1);
  return reshape(transpose(x, axes), {classes == 0 ? 0 : x.size() / classes, classes});
}

/// class_weight in x's dtype, checked.
Array checked_weight(const char* function, const Variable& x, const Array& weight) {
  check_same_device(function, x.array(), weight);
  if (weight.shape() != Shape{x.shape(1)}) {
    throw ShapeError(fmt::format("{}: class_weight {} and x {}: a weight for each class", function,
                                 weight.view().describe(), x.array().view().describe()));
  }
  return weight.astype(x.dtype(), false);
}

/// Losses of single labels: what is taken of the rows and what each counts.
struct LabelledRows {
  Array counted;  // bool: not ignored
  Array weight;   // of the label's class, of x's dtype; undefined where all weigh 1
  Variable taken;

  LabelledRows(const char* function, const Variable& rows, const Array& t,
               std::int64_t ignore_label, const std::optional<Array>& class_weight) {
    Array labels = t.reshape({-1});
    counted = labels != ignore_label;
    Array places = label_places(labels, rows.shape(1), ignore_label);
    if (class_weight) {
      weight = xp::take(checked_weight(function, rows, *class_weight), places);
    }
    taken = select_item(rows, constant(places));
  }

  /// The negative of `values`, weighed where there are weights, 0 where labels are ignored.
  Variable losses(Variable values) const {
    if (weight.defined()) values = values * constant(weight);
    return where(counted, -values, constant(xp::zeros({}, values.dtype(), values.device())));
  }
  /// The labels counted, at least 1.
  Array count() const { return xp::maximum(counted.sum(), 1); }
};

/// -sum(t * log softmax(x)) of each row.
Variable soft_target_losses(const Variable& x, const Variable& t,
                            const SoftmaxCrossEntropyOptions& options) {
  bool divergence = options.soft_target_loss == "kl-divergence";
  if (!divergence && options.soft_target_loss != "cross-entropy") {
    throw ValueError(
        fmt::format("softmax_cross_entropy: soft_target_loss \"{}\", which is none of "
                    "\"cross-entropy\", \"kl-divergence\"",
                    options.soft_target_loss));
  }
  Variable rows = class_rows(x), targets = class_rows(constant_like(x, t.array()));
  Array p = targets.array();
  Variable entropy = log_softmax(rows, 1);
  if (options.class_weight) {
    p = p * checked_weight("softmax_cross_entropy", x, *options.class_weight);
  }
  Variable losses = -sum(constant(p) * entropy, 1);
  if (!divergence) return losses;
  return losses + constant((p * xp::log(targets.array() + 1e-7)).sum(1));
}

/// As x (n, classes): 1 at each row's label, -1 elsewhere.
Array label_signs(const char* function, const Variable& x, const Variable& labels) {
  Array signs = xp::full(x.shape(), -1, x.dtype(), x.device());
  Array places = labels.array().expand_dims(1);
  rensa::detail::IndexedElements at = rensa::detail::apply_along_axis(function, signs, places, 1);
  at.distinct = true;
  at.mode = IndexMode::strict;
  rensa::detail::scatter(function, operations::ScatterMode::assign, at,
                         xp::ones({}, x.dtype(), x.device()));
  return signs;
}

Shape without_classes(const Variable& x) {
  Shape shape = x.shape();
  shape.erase(1);
  return shape;
}

}  // namespace

Variable softmax_cross_entropy(const Variable& given, const Variable& t,
                               const SoftmaxCrossEntropyOptions& options) {
  constexpr const char* name = "softmax_cross_entropy";
  LossInputs in(name, {given});
  const Variable& x = in.x[0];
  bool mean = is_mean(name, options.reduce);
  double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1)) {
    throw ValueError(fmt::format("{}: a label_smoothing of {}", name, smoothing));
  }
  if (dtype_kind(t.dtype()) == 'f' && x.ndim() > 1 && x.shape() == t.shape()) {
    if (smoothing > 0)
      throw ValueError(fmt::format("{}: label_smoothing is for labels, and t is {}", name,
                                   t.array().view().describe()));
    Variable losses = soft_target_losses(x, t, options);
    if (!mean) return reshape(losses, without_classes(x));
    return sum_over(losses, static_cast<double>(std::max<std::int64_t>(losses.size(), 1)));
  }
  check_scores_and_labels(name, x.array(), t.array());
  Variable rows = class_rows(x);
  auto samples = static_cast<double>(std::max<std::int64_t>(x.shape(0), 1));
  if (mean && !options.class_weight && smoothing == 0 && x.size() > 0) {
    Variable labels = constant(t.array().reshape({-1}));
    Variable loss =
        apply<SoftmaxCrossEntropyNode>({rows, labels}, options.normalize, options.ignore_label)[0];
    if (options.normalize || x.ndim() == 2) return loss;
    return loss * (static_cast<double>(t.size()) / samples);
  }
  Variable log_p = log_softmax(rows, 1);
  LabelledRows labelled(name, log_p, t.array(), options.ignore_label, options.class_weight);
  Variable losses = labelled.losses(labelled.taken);
  if (smoothing > 0) {
    Variable all = log_p;
    if (options.class_weight) {
      all = all * constant(checked_weight(name, x, *options.class_weight));
    }
    all = where(labelled.counted, -sum(all, 1), constant(xp::zeros({}, all.dtype(), all.device())));
    losses = losses * (1 - smoothing) + all * (smoothing / static_cast<double>(x.shape(1)));
  }
  if (!mean) return reshape(losses, t.shape());
  return options.normalize ? sum_over(losses, labelled.count()) : sum_over(losses, samples);
}

Variable nll_loss(const Variable& given, const Variable& t, const NllLossOptions& options) {
  LossInputs in("nll_loss", {given});
  const Variable& x = in.x[0];
  bool mean = is_mean("nll_loss", options.reduce);
  check_scores_and_labels("nll_loss", x.array(), t.array());
  if (mean && !options.class_weight && x.size() > 0) {
    Variable labels = constant(t.array().reshape({-1}));
    return apply<NllLossNode>({class_rows(x), labels}, options.ignore_label)[0];
  }
  LabelledRows labelled("nll_loss", class_rows(x), t.array(), options.ignore_label,
                        options.class_weight);
  Variable losses = labelled.losses(labelled.taken);
  if (!mean) return reshape(losses, t.shape());
  if (!options.class_weight) return sum_over(losses, labelled.counted.sum());  // of no elements
  Array weights = labelled.weight.astype(promote_types(x.dtype(), float32), false);
  return sum_over(losses, (weights * labelled.counted).sum());
}

Variable sigmoid_cross_entropy(const Variable& x, const Variable& t, bool normalize,
                               std::string_view reduce) {
  constexpr const char* name = "sigmoid_cross_entropy";
  check_one_shape(name, "x", x, "t", t);
  bool mean = is_mean(name, reduce);
  char kind = dtype_kind(t.dtype());
  if (kind != 'i' && kind != 'u') {
    throw DtypeError(
        fmt::format("{}: labels {} must be integer", name, t.array().view().describe()));
  }
  Variable labels = constant_like(x, t.array());
  Variable losses = differentiable(rows::sigmoid_cross_entropy, {x, labels})[0];
  if (!mean) return losses;
  if (normalize) return sum_over(losses, xp::maximum((t.array() != -1).sum(), 1));
  return sum_over(losses,
                  x.ndim() == 0 ? 1.0 : static_cast<double>(std::max<std::int64_t>(x.shape(0), 1)));
}

Variable binary_cross_entropy(const Variable& x, const Variable& t, std::string_view reduce) {
  check_one_shape("binary_cross_entropy", "x", x, "t", t);
  Variable targets = constant_like(x, t.array());
  return reduced("binary_cross_entropy",
                 differentiable(rows::binary_cross_entropy, {x, targets})[0], reduce);
}

Variable binary_cross_entropy_with_logits(const Variable& x, const Variable& t,
                                          std::string_view reduce) {
  check_one_shape("binary_cross_entropy_with_logits", "x", x, "t", t);
  Variable targets = constant_like(x, t.array());
  return reduced("binary_cross_entropy_with_logits",
                 differentiable(rows::bernoulli_nll, {targets, x})[0], reduce);
}

Variable hinge(const Variable& given, const Variable& t, std::string_view norm,
               std::string_view reduce) {
  LossInputs in("hinge", {given});
  const Variable& x = in.x[0];
  bool mean = is_mean("hinge", reduce);
  if (norm != "L1" && norm != "L2") {
    throw ValueError(fmt::format("hinge: norm \"{}\", which is none of \"L1\", \"L2\"", norm));
  }
  check_scores_and_labels("hinge", x.array(), t.array());
  if (x.ndim() != 2) {
    throw ShapeError(fmt::format("hinge: x {} must be (n, classes)", x.array().view().describe()));
  }
  Variable losses = differentiable(rows::hinge, {x, constant(label_signs("hinge", x, t))})[0];
  if (norm == "L2") losses = square(losses);
  return mean ? sum_over(losses, static_cast<double>(x.shape(0))) : losses;
}

}  // namespace rensa::functions
