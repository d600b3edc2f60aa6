// Measures of a model's output, without gradients. Scores y are (n, classes, ...) floating, labels
// t (n, ...) integer, unless said otherwise; where they do not fit, ShapeError, DtypeError and
// DeviceError are thrown. Nothing waits but what says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// The share of labels t at which y's greatest element along axis 1 stands, those that are
/// `ignore_label` left out; 0-d of y's dtype. y may have axes of length 1 behind those of t.
[[nodiscard]] Variable accuracy(const Variable& y, const Variable& t,
                                std::optional<std::int64_t> ignore_label = {});
/// The share of labels t (0, 1, or -1, which is left out) that are 1 where y of t's shape is 0 or
/// more and 0 elsewhere; 0-d of y's dtype.
[[nodiscard]] Variable binary_accuracy(const Variable& y, const Variable& t);

/// Of each class, (label_num,).
struct ClassificationSummary {
  Variable precision;  // of those taken for it, the share that is: NaN of none
  Variable recall;     // of those that are it, the share taken for it: NaN of none
  /// (1 + beta^2) * precision * recall / (beta^2 * precision + recall).
  Variable fbeta;
  Variable support;  // how many there are, int64
};
/// Classes are 0 to label_num - 1; left out, label_num is the greatest label and 1: that waits.
/// Labels that are `ignore_label` are left out. precision, recall and fbeta are of y's dtype.
/// Throws ValueError for a label_num below 0.
[[nodiscard]] ClassificationSummary classification_summary(
    const Variable& y, const Variable& t, std::optional<std::int64_t> label_num = {},
    double beta = 1.0, std::int64_t ignore_label = -1);
// One of its measures, and the support.
[[nodiscard]] std::pair<Variable, Variable> precision(const Variable& y, const Variable& t,
                                                      std::optional<std::int64_t> label_num = {},
                                                      std::int64_t ignore_label = -1);
[[nodiscard]] std::pair<Variable, Variable> recall(const Variable& y, const Variable& t,
                                                   std::optional<std::int64_t> label_num = {},
                                                   std::int64_t ignore_label = -1);
[[nodiscard]] std::pair<Variable, Variable> f1_score(const Variable& y, const Variable& t,
                                                     std::optional<std::int64_t> label_num = {},
                                                     std::int64_t ignore_label = -1);

/// The coefficient of determination along axis 0, 1 - sum((pred - t)^2) / sum((t - mean(t))^2), 0
/// where t does not vary. `multioutput`: its mean ("uniform_average"), or as it is ("raw_values").
/// Throws ValueError for any other word, ShapeError unless both have one shape.
[[nodiscard]] Variable r2_score(const Variable& pred, const Variable& t,
                                std::string_view multioutput = "uniform_average");

}  // namespace functions

namespace F = functions;

}  // namespace rensa
