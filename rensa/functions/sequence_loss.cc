// Losses of sequences of labels.
#include "rensa/functions/sequence_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/creation.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/softmax.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/ctc/ctc.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

constexpr const char* kCtc = "connectionist_temporal_classification";

void check_integers(const char* function, const char* what, const Array& a) {
  if (dtype_kind(a.dtype()) == 'i' || dtype_kind(a.dtype()) == 'u') return;
  throw DtypeError(fmt::format("{}: {} {} must be integers", function, what, a.view().describe()));
}

/// The losses (n,) of x (steps, n, classes).
class CtcNode final : public FunctionNode {
 public:
  CtcNode(const Array& t, const Array& steps_of, const Array& labels_of, std::int64_t blank)
      : FunctionNode(kCtc), t_(t), steps_of_(steps_of), labels_of_(labels_of), blank_(blank) {}

  Arrays forward(const Arrays& inputs) override {
    const Array& x = inputs[0];
    Dtype wide = promote_types(x.dtype(), float32);
    y_ = xp::log_softmax(x.astype(wide, false)).ascontiguous();
    std::int64_t steps = x.shape(0), n = x.shape(1);
    alpha_ = xp::empty({n, steps, 2 * t_.shape(1) + 1}, wide, x.device());
    loss_ = xp::empty({n}, wide, x.device());
    operations::Ctc op;
    fill(op);
    launch(op);
    return {loss_.astype(x.dtype(), false)};
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    if (config().enable_backprop) {
      throw NotImplementedError(fmt::format(
          "{}: its gradient has no gradient; call backward without enable_double_backprop", kCtc));
    }
    Array g = gy[0].array().astype(y_.dtype(), false).ascontiguous();
    Array gx = xp::empty(y_.shape(), y_.dtype(), y_.device());
    operations::CtcGrad op;
    fill(op);
    op.gy = g.operand();
    op.gx = gx.operand();
    launch(op);
    return {constant(gx.astype(inputs()[0]->dtype, false))};
  }

 private:
  /// What the operation and its gradient have in common.
  template <class Op> void fill(Op& op) const {
    op.blank = blank_;
    op.y = y_.operand();
    op.t = t_.operand();
    op.steps_of = steps_of_.operand();
    op.labels_of = labels_of_.operand();
    op.alpha = alpha_.operand();
    op.loss = loss_.operand();
  }

  Array t_, steps_of_, labels_of_;  // of the node's own
  std::int64_t blank_;
  Array y_, alpha_, loss_;  // y_ is the log softmax of x
};

/// (n,) int64 of the node's own: `lengths`, or `all` for each sample.
Array own_lengths(const char* what, const Array& lengths, std::int64_t n, std::int64_t all,
                  const Variable& x) {
  if (!lengths.defined()) return xp::full({n}, all, int64, x.device());
  check_same_device(kCtc, x.array(), lengths);
  check_integers(kCtc, what, lengths);
  if (lengths.shape() != Shape{n}) {
    throw ShapeError(fmt::format("{}: {} {} and x {}: a length for each of {} samples", kCtc, what,
                                 lengths.view().describe(), x.array().view().describe(), n));
  }
  return lengths.astype(int64);
}

/// Throws unless there are steps (n_i, classes) of falling n_i and cost is (classes, classes).
void check_field(const char* function, const Variable& cost, const Variables& xs) {
  if (xs.empty()) throw ValueError(fmt::format("{}: there are no steps", function));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    check_same_device(function, cost.array(), xs[i].array());
    bool fits = xs[i].ndim() == 2 && cost.shape() == Shape{xs[i].shape(1), xs[i].shape(1)};
    if (fits && (i == 0 || xs[i].shape(0) <= xs[i - 1].shape(0))) continue;
    throw ShapeError(
        fmt::format("{}: step {} is {} and cost {}: steps are (n, classes), none with more samples "
                    "than the one before, and cost (classes, classes)",
                    function, i, xs[i].shape().str(), cost.shape().str()));
  }
}

Variables behind(const Variable& first, const Variables& rest) {
  Variables all = {first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

/// Values of samples that end one after the other: `put` gives the ones that are left.
class EndingSamples {
 public:
  /// The first `left` rows of `values`; those behind them have ended.
  Variable keep(const Variable& values, std::int64_t left) {
    if (values.shape(0) == left) return values;
    ended_.push_back(values[Slice(left, values.shape(0))]);
    return values[Slice(0, left)];
  }
  /// Those of all samples, in their order, `last` being the ones that lasted.
  Variable all(const Variable& last) && {
    if (ended_.empty()) return last;
    ended_.push_back(last);
    std::reverse(ended_.begin(), ended_.end());
    return concat(ended_, 0);
  }

 private:
  Variables ended_;
};

}  // namespace

Variable connectionist_temporal_classification(const Variable& x, const Variable& t,
                                               std::int64_t blank_symbol,
                                               const CtcOptions& options) {
  bool mean = is_mean(kCtc, options.reduce);
  check_same_device(kCtc, x.array(), t.array());
  check_integers(kCtc, "t", t.array());
  if (x.ndim() != 3 || t.ndim() != 2 || t.shape(0) != x.shape(1)) {
    throw ShapeError(fmt::format("{}: x {} must be (steps, n, classes) and t {} (n, labels)", kCtc,
                                 x.array().view().describe(), t.array().view().describe()));
  }
  if (dtype_kind(x.dtype()) != 'f') {
    throw DtypeError(fmt::format("{}: x {} must be floating", kCtc, x.array().view().describe()));
  }
  if (blank_symbol < 0 || blank_symbol >= x.shape(2)) {
    throw ValueError(fmt::format("{}: a blank_symbol of {} is none of x's {} classes", kCtc,
                                 blank_symbol, x.shape(2)));
  }
  std::int64_t n = x.shape(1);
  Array steps_of = own_lengths("input_length", options.input_length, n, x.shape(0), x);
  Array labels_of = own_lengths("label_length", options.label_length, n, t.shape(1), x);
  Variable losses = apply<CtcNode>({x}, t.array().astype(int64).ascontiguous(), steps_of, labels_of,
                                   blank_symbol)[0];
  return mean ? sum_over(losses, static_cast<double>(n)) : losses;
}

Variable connectionist_temporal_classification(const Variables& x, const Variable& t,
                                               std::int64_t blank_symbol,
                                               const CtcOptions& options) {
  if (x.empty()) throw ValueError(fmt::format("{}: there are no steps", kCtc));
  return connectionist_temporal_classification(stack(x, 0), t, blank_symbol, options);
}

Variable crf1d(const Variable& cost_given, const Variables& xs_given, const Variables& ys,
               std::string_view reduce) {
  LossInputs in("crf1d", behind(cost_given, xs_given));
  const Variable& cost = in.x[0];
  const Variables xs(in.x.begin() + 1, in.x.end());
  bool mean = is_mean("crf1d", reduce);
  check_field("crf1d", cost, xs);
  if (ys.size() != xs.size()) {
    throw ValueError(fmt::format("crf1d: {} steps and labels of {}", xs.size(), ys.size()));
  }
  std::int64_t classes = cost.shape(0);
  EndingSamples alphas, scores;
  Variable alpha = xs[0], score = select_item(xs[0], ys[0]);
  for (std::size_t i = 1; i < xs.size(); ++i) {
    std::int64_t left = xs[i].shape(0);
    Variable before = reshape(alphas.keep(alpha, left), {left, classes, 1});
    alpha = logsumexp(before + cost, 1) + xs[i];
    Array from = ys[i - 1].array()[Slice(0, left)];
    Variable way = get_item(cost, {from, ys[i].array()});
    score = scores.keep(score, left) + select_item(xs[i], ys[i]) + way;
  }
  alpha = std::move(alphas).all(alpha);
  Variable losses = logsumexp(alpha, 1) - std::move(scores).all(score);
  return mean ? sum_over(losses, static_cast<double>(xs[0].shape(0))) : losses;
}

std::pair<Variable, std::vector<Array>> argmax_crf1d(const Variable& cost_given,
                                                     const Variables& xs_given) {
  LossInputs in("crf1d", behind(cost_given, xs_given));
  const Variable& cost = in.x[0];
  const Variables xs(in.x.begin() + 1, in.x.end());
  check_field("argmax_crf1d", cost, xs);
  std::int64_t classes = cost.shape(0);
  EndingSamples alphas;
  Variable alpha = xs[0];
  std::vector<Array> best_before;  // (n_i, classes), of each step but the first
  std::vector<Array> last = {};    // of samples that end at a step, the best label there
  for (std::size_t i = 1; i < xs.size(); ++i) {
    std::int64_t left = xs[i].shape(0);
    last.push_back(xp::argmax(alpha.array()[Slice(left, alpha.shape(0))], 1));
    Variable ways = reshape(alphas.keep(alpha, left), {left, classes, 1}) + cost;
    best_before.push_back(xp::argmax(ways.array(), 1));
    alpha = max(ways, 1) + xs[i];
  }
  std::vector<Array> path = {xp::argmax(alpha.array(), 1)};
  for (std::size_t i = xs.size() - 1; i-- > 0;) {
    Array here = xp::take_along_axis(best_before[i], path.back().reshape({-1, 1}), 1);
    path.push_back(xp::concatenate({here.reshape({-1}), last[i]}, 0));
  }
  std::reverse(path.begin(), path.end());
  return {max(std::move(alphas).all(alpha), 1), path};
}

}  // namespace rensa::functions
