// The functions of rensa/functions/roi_pooling.h.
#include "rensa/functions/roi_pooling.h"

#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

// Differences of -infinity are no derivatives.
constexpr int kNone = 0;

const std::vector<testing::FunctionRow> rows = {
    {"roi_average_pooling_2d",
     RENSA_FUNCTION(F::roi_average_pooling_2d(x[0], x[1], x[2], {2, 3}, 0.5))},
    {"roi_average_pooling_2d outsize=4",
     RENSA_FUNCTION(F::roi_average_pooling_2d(x[0], x[1], x[2], 4, 0.25))},
    {"roi_max_pooling_2d", RENSA_FUNCTION(F::roi_max_pooling_2d(x[0], x[1], x[2], {2, 3}, 0.5))},
    {"roi_max_pooling_2d of bins outside",
     RENSA_FUNCTION(F::roi_max_pooling_2d(x[0], x[1], x[2], {2, 3}, 0.5)), kNone},
    {"roi_average_align_2d",
     RENSA_FUNCTION(F::roi_average_align_2d(x[0], x[1], x[2], {2, 3}, 0.5))},
    {"roi_average_align_2d sampling_ratio=3,2",
     RENSA_FUNCTION(F::roi_average_align_2d(x[0], x[1], x[2], 2, 0.5, {3, 2}))},
    {"roi_max_align_2d", RENSA_FUNCTION(F::roi_max_align_2d(x[0], x[1], x[2], {2, 3}, 0.5))},
    {"roi_max_align_2d sampling_ratio=2",
     RENSA_FUNCTION(F::roi_max_align_2d(x[0], x[1], x[2], 2, 0.25, 2))},
    {"roi_pooling_2d", RENSA_FUNCTION(F::roi_pooling_2d(x[0], x[1], 2, 3, 0.5))},
};
const testing::FunctionTable table("roi_pooling", rows);

}  // namespace
}  // namespace rensa
