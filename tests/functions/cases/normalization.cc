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

Variables renormalization(const Variables& x, double rmax, double dmax) {
  Array mean = x[3].array().copy(), var = x[4].array().copy();
  Variable y = F::batch_renormalization(
      x[0], x[1], x[2], rmax, dmax,
      {.running_mean = mean, .running_var = var, .update_statistics = true});
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
    {"batch_renormalization rmax=1 dmax=0",
     [](const Variables& x) { return renormalization(x, 1, 0); }},
    // r and d move with x, and are constants to the gradient.
    {"batch_renormalization rmax=1.2 dmax=0.5",
     [](const Variables& x) { return renormalization(x, 1.2, 0.5); }, 0},
    {"fixed_batch_renormalization",
     RENSA_FUNCTION(F::fixed_batch_renormalization(x[0], x[1], x[2], x[3], x[4]))},
    // of samples
    {"layer_normalization", RENSA_FUNCTION(F::layer_normalization(x[0], x[1], x[2]))},
    {"layer_normalization eps=0.1", RENSA_FUNCTION(F::layer_normalization(x[0], x[1], x[2], 0.1))},
    {"layer_normalization of several axes",
     RENSA_FUNCTION(F::layer_normalization(x[0], x[1], x[2]))},
    {"rms_norm", RENSA_FUNCTION(F::rms_norm(x[0], x[1]))},
    {"rms_norm without gamma", RENSA_FUNCTION(F::rms_norm(x[0], {}, 1e-5))},
    {"rms_norm of several axes", RENSA_FUNCTION(F::rms_norm(x[0], x[1], 1e-5))},
    {"group_normalization", RENSA_FUNCTION(F::group_normalization(x[0], 2, x[1], x[2]))},
    {"group_normalization of images", RENSA_FUNCTION(F::group_normalization(x[0], 3, x[1], x[2]))},
    {"group_normalization of instances",
     RENSA_FUNCTION(F::group_normalization(x[0], 6, x[1], x[2], 0.1))},
    {"group_normalization of one group",
     RENSA_FUNCTION(F::group_normalization(x[0], 1, x[1], x[2]))},
    {"normalize", RENSA_FUNCTION(F::normalize(x[0]))},
    {"normalize eps=0.5 axis=0", RENSA_FUNCTION(F::normalize(x[0], 0.5, 0))},
    {"normalize axis=1,2", RENSA_FUNCTION(F::normalize(x[0], 1e-5, {1, 2}))},
    {"local_response_normalization", RENSA_FUNCTION(F::local_response_normalization(x[0]))},
    {"local_response_normalization n=2 k=1 alpha=0.1 beta=0.5",
     RENSA_FUNCTION(F::local_response_normalization(x[0], 2, 1, 0.1, 0.5))},
};
const testing::FunctionTable table("normalization", rows);

}  // namespace
}  // namespace rensa
