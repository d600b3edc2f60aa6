// The functions of rensa/functions/evaluation.h.
#include "rensa/functions/evaluation.h"

#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

Variables all_of(const F::ClassificationSummary& s) {
  return {s.precision, s.recall, s.fbeta, s.support};
}
Variables all_of(const std::pair<Variable, Variable>& p) { return {p.first, p.second}; }

#define RENSA_MEASURES(...) [](const Variables& x) { return all_of(__VA_ARGS__); }

const std::vector<testing::FunctionRow> rows = {
    {"accuracy", RENSA_FUNCTION(F::accuracy(x[0], x[1]))},
    {"accuracy ignore_label=-1", RENSA_FUNCTION(F::accuracy(x[0], x[1], -1))},
    {"accuracy of images", RENSA_FUNCTION(F::accuracy(x[0], x[1]))},
    {"accuracy of long axes", RENSA_FUNCTION(F::accuracy(x[0], x[1]))},
    {"binary_accuracy", RENSA_FUNCTION(F::binary_accuracy(x[0], x[1]))},
    {.name = "classification_summary",
     .f = RENSA_MEASURES(F::classification_summary(x[0], x[1])),
     .captured = false},
    {"classification_summary label_num=5",
     RENSA_MEASURES(F::classification_summary(x[0], x[1], 5))},
    {"classification_summary beta=2 ignore_label=1",
     RENSA_MEASURES(F::classification_summary(x[0], x[1], 3, 2, 1))},
    {"classification_summary of images", RENSA_MEASURES(F::classification_summary(x[0], x[1], 3))},
    {"precision", RENSA_MEASURES(F::precision(x[0], x[1], 3))},
    {"recall", RENSA_MEASURES(F::recall(x[0], x[1], 3))},
    {"f1_score", RENSA_MEASURES(F::f1_score(x[0], x[1], 3))},
    {"r2_score", RENSA_FUNCTION(F::r2_score(x[0], x[1]))},
    {"r2_score multioutput=raw_values", RENSA_FUNCTION(F::r2_score(x[0], x[1], "raw_values"))},
};
const testing::FunctionTable table("evaluation", rows);

}  // namespace
}  // namespace rensa
