// Measures of a model's output.
#include "rensa/functions/evaluation.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/classification.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/binary_accuracy/binary_accuracy.h"

namespace rensa::functions {

namespace {

/// y without its last axes where these are 1 long and t has none for them.
Array fitted_scores(const Array& y, const Array& t) {
  Shape shape = y.shape();
  while (shape.ndim() > 2 && shape.ndim() > t.ndim() + 1 && shape[-1] == 1) {
    shape.erase(shape.ndim() - 1);
  }
  return y.reshape(shape);
}

}  // namespace

Variable accuracy(const Variable& y, const Variable& t, std::optional<std::int64_t> ignore_label) {
  Array fitted = fitted_scores(y.array(), t.array());
  check_scores_and_labels("accuracy", fitted, t.array());
  std::int64_t classes = fitted.shape(1);
  Array scores = fitted.ndim() == 2 ? fitted : xp::moveaxis(fitted, 1, -1);
  scores = scores.ascontiguous().reshape({t.size(), classes});
  Array labels = t.array().ascontiguous().reshape({-1});
  Array result = xp::empty({}, scores.dtype(), scores.device());
  operations::Accuracy op;
  op.has_ignore_label = ignore_label.has_value();
  op.ignore_label = ignore_label.value_or(0);
  op.y = scores.operand();
  op.t = labels.operand();
  op.accuracy = result.operand();
  launch(op);
  return constant(result);
}

Variable binary_accuracy(const Variable& y, const Variable& t) {
  check_one_shape("binary_accuracy", "y", y, "t", t);
  char kind = dtype_kind(t.dtype());
  if (dtype_kind(y.dtype()) != 'f' || (kind != 'i' && kind != 'u')) {
    throw DtypeError(fmt::format("binary_accuracy: y {} must be floating and t {} integer",
                                 y.array().view().describe(), t.array().view().describe()));
  }
  if (y.size() == 0) return constant(xp::zeros({}, y.dtype(), y.device()));
  Array labels = t.array();
  if (labels.dtype() == uint64) labels = xp::minimum(labels, 2);  // none becomes -1
  if (labels.dtype() != int32) labels = labels.astype(int64, false);
  Array scores = y.array().ascontiguous();
  labels = labels.ascontiguous();
  Array result = xp::empty({}, y.dtype(), y.device());
  operations::BinaryAccuracy op;
  op.y = scores.operand();
  op.t = labels.operand();
  op.accuracy = result.operand();
  launch(op);
  return constant(result);
}

ClassificationSummary classification_summary(const Variable& y, const Variable& t,
                                             std::optional<std::int64_t> label_num, double beta,
                                             std::int64_t ignore_label) {
  Array fitted = fitted_scores(y.array(), t.array());
  check_scores_and_labels("classification_summary", fitted, t.array());
  if (label_num && *label_num < 0) {
    throw ValueError(fmt::format("classification_summary: a label_num of {}", *label_num));
  }
  Array truth = t.array().reshape({-1});
  std::int64_t classes = label_num           ? *label_num
                         : truth.size() == 0 ? 0
                                             : xp::max(truth).item<std::int64_t>() + 1;
  Array taken = xp::argmax(fitted, 1).reshape({-1});
  Array counted = (truth != ignore_label).reshape({-1, 1});
  auto rows = [&](const Array& t) {
    return one_hot(constant(t), classes, bool_).array() & counted;
  };
  Array is = rows(truth), guessed = rows(taken);
  Dtype wide = promote_types(y.dtype(), float32);
  Array support = xp::sum(is, 0);
  Array right = xp::sum(is & guessed, 0).astype(wide);
  Array precision = right / xp::sum(guessed, 0).astype(wide), recall = right / support.astype(wide);
  Array fbeta = precision * recall * (1 + beta * beta) / (precision * (beta * beta) + recall);
  auto result = [&](const Array& a) { return constant(a.astype(y.dtype(), false)); };
  return {result(precision), result(recall), result(fbeta), constant(support)};
}

std::pair<Variable, Variable> precision(const Variable& y, const Variable& t,
                                        std::optional<std::int64_t> label_num,
                                        std::int64_t ignore_label) {
  auto s = classification_summary(y, t, label_num, 1, ignore_label);
  return {s.precision, s.support};
}

std::pair<Variable, Variable> recall(const Variable& y, const Variable& t,
                                     std::optional<std::int64_t> label_num,
                                     std::int64_t ignore_label) {
  auto s = classification_summary(y, t, label_num, 1, ignore_label);
  return {s.recall, s.support};
}

std::pair<Variable, Variable> f1_score(const Variable& y, const Variable& t,
                                       std::optional<std::int64_t> label_num,
                                       std::int64_t ignore_label) {
  auto s = classification_summary(y, t, label_num, 1, ignore_label);
  return {s.fbeta, s.support};
}

Variable r2_score(const Variable& pred, const Variable& t, std::string_view multioutput) {
  check_one_shape("r2_score", "pred", pred, "t", t);
  if (multioutput != "uniform_average" && multioutput != "raw_values") {
    throw ValueError(
        fmt::format("r2_score: multioutput \"{}\", which is none of "
                    "\"uniform_average\", \"raw_values\"",
                    multioutput));
  }
  Dtype wide = promote_types(pred.dtype(), float32);
  unsigned axis = Axes(0).mask("r2_score", pred.ndim());
  auto sum = [&](Reduction reduction, const Array& of) -> Array {
    return rensa::detail::reduce_axes(reduction, of, axis, wide)[0];
  };
  Array difference = pred.array().astype(wide, false) - t.array().astype(wide, false);
  Array residual = sum(reduction::sum_of_squares, difference);
  Array total = sum(reduction::deviations, t.array());
  Array zero = xp::zeros({}, wide, pred.device()), flat = total == 0;
  Array score = xp::where(flat, zero, 1 - residual / xp::where(flat, zero + 1, total));
  if (multioutput == "uniform_average") score = xp::mean(score);
  return constant(score.astype(pred.dtype(), false));
}

}  // namespace rensa::functions
