// The functions of rensa/functions/sequence_loss.h.
#include "rensa/functions/sequence_loss.h"

#include "rensa/array/creation.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

/// Of six steps of three samples.
Variables with_lengths(const Variables& x, std::vector<std::int64_t> steps,
                       std::vector<std::int64_t> labels, const char* reduce) {
  Device device = x[0].device();
  return {F::connectionist_temporal_classification(x[0], x[1], 0,
                                                   {.input_length = xp::array(steps).to(device),
                                                    .label_length = xp::array(labels).to(device),
                                                    .reduce = reduce})};
}

Variables part(const Variables& x, std::size_t begin, std::size_t end) {
  return {x.begin() + static_cast<std::ptrdiff_t>(begin),
          x.begin() + static_cast<std::ptrdiff_t>(end)};
}

Variables argmax(const Variables& x) {
  auto [score, path] = F::argmax_crf1d(x[0], part(x, 1, x.size()));
  Variables result = {score};
  for (const Array& labels : path) result.emplace_back(labels);
  return result;
}

const std::vector<testing::FunctionRow> rows = {
    {"connectionist_temporal_classification",
     RENSA_FUNCTION(F::connectionist_temporal_classification(x[0], x[1], 0)), 1},
    {"connectionist_temporal_classification reduce=no",
     RENSA_FUNCTION(F::connectionist_temporal_classification(x[0], x[1], 0, {.reduce = "no"})), 1},
    {"connectionist_temporal_classification blank_symbol=2",
     RENSA_FUNCTION(F::connectionist_temporal_classification(x[0], x[1], 2)), 1},
    {"connectionist_temporal_classification lengths",
     [](const Variables& x) {
       return with_lengths(x, {6, 4, 3}, {2, 2, 1}, "mean");
     },
     1, false},
    {"connectionist_temporal_classification lengths reduce=no",
     [](const Variables& x) {
       return with_lengths(x, {5, 6, 1}, {1, 0, 1}, "no");
     },
     1, false},
    {"connectionist_temporal_classification repeated",
     RENSA_FUNCTION(F::connectionist_temporal_classification(x[0], x[1], 0, {.reduce = "no"})), 1},
    {"connectionist_temporal_classification one step",
     RENSA_FUNCTION(F::connectionist_temporal_classification(x[0], x[1], 0, {.reduce = "no"})), 1},
    {"crf1d reduce=mean", RENSA_FUNCTION(F::crf1d(x[0], part(x, 1, 4), part(x, 4, 7)))},
    {"crf1d reduce=no", RENSA_FUNCTION(F::crf1d(x[0], part(x, 1, 4), part(x, 4, 7), "no"))},
    {"crf1d one length", RENSA_FUNCTION(F::crf1d(x[0], {x[1], x[2]}, {x[3], x[4]}))},
    {"crf1d one step", RENSA_FUNCTION(F::crf1d(x[0], {x[1]}, {x[2]}))},
    {"argmax_crf1d", argmax},
    {"argmax_crf1d one step", argmax},
};
const testing::FunctionTable table("sequence_loss", rows);

}  // namespace
}  // namespace rensa
