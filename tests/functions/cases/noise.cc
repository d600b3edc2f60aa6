// The functions of rensa/functions/noise.h, with what they would draw given.
#include "rensa/functions/noise.h"

#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

const std::vector<testing::FunctionRow> rows = {
    {"gaussian eps", RENSA_FUNCTION(F::gaussian(x[0], x[1], {.eps = x[2].array()}))},
    {"simplified_dropconnect mask", RENSA_FUNCTION(F::simplified_dropconnect(
                                        x[0], x[1], x[2], {.ratio = 0.25, .mask = x[3].array()}))},
    {"simplified_dropconnect mask of samples",
     RENSA_FUNCTION(
         F::simplified_dropconnect(x[0], x[1], {}, {.ratio = 0.25, .mask = x[2].array() > 0}))},
};
const testing::FunctionTable table("noise", rows);

}  // namespace
}  // namespace rensa
