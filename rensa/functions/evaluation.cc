// Measures of a model's output.
#include "rensa/functions/evaluation.h"

#include "rensa/device/launcher.h"
#include "rensa/functions/classification.h"
#include "rensa/functions/operations/accuracy/accuracy.h"

namespace rensa::functions {

Variable accuracy(const Variable& y, const Variable& t, std::optional<std::int64_t> ignore_label) {
  check_scores_and_labels("accuracy", y.array(), t.array());
  Array scores = y.array().ascontiguous(), labels = t.array().ascontiguous();
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

}  // namespace rensa::functions
