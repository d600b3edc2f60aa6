// The functions of rensa/functions/normalization.h.
#include "rensa/functions/normalization.h"

#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

Variables running(const Variables& x, double decay) {
  Array mean = x[3].array().copy(), var = x[4].array().copy();
  Variable y = F::batch_normalization(x[0], x[1], x[2],
                                      {.running_mean = mean, .running_var = var, .decay = decay});
  return {y, constant(mean), constant(var)};
}

const std::vector<testing::FunctionRow> rows = {
    // of batches
    {"batch_normalization", RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2]))},
    {"batch_normalization of images", RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2]))},
    {"batch_normalization of long rows", RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2]))},
    {"batch_normalization eps=0.1 axis=0",
     RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2], {.eps = 0.1, .axis = 0}))},
    {"batch_normalization of each place", RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2]))},
    {"batch_normalization axis=0,2",
     RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2], {.axis = {0, 2}}))},
    {"batch_normalization axis=1",
     RENSA_FUNCTION(F::batch_normalization(x[0], x[1], x[2], {.axis = 1}))},
    {"batch_normalization running", [](const Variables& x) { return running(x, 0.9); }},
    {"batch_normalization running decay=0.3", [](const Variables& x) { return running(x, 0.3); }},
    {"fixed_batch_normalization",
     RENSA_FUNCTION(F::fixed_batch_normalization(x[0], x[1], x[2], x[3], x[4]))},
    {"fixed_batch_normalization of images eps=0.1",
     RENSA_FUNCTION(F::fixed_batch_normalization(x[0], x[1], x[2], x[3], x[4], 0.1))},
    {"fixed_batch_normalization axis=0,2",
     RENSA_FUNCTION(F::fixed_batch_normalization(x[0], x[1], x[2], x[3], x[4], 2e-5, {0, 2}))},
};
const testing::FunctionTable table("normalization", rows);

}  // namespace
}  // namespace rensa
