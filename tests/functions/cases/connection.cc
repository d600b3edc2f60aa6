// The functions of rensa/functions/connection.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

const std::vector<testing::FunctionRow> rows = {
    {"linear", RENSA_FUNCTION(F::linear(x[0], x[1], x[2]))},
    {"linear nobias n_batch_axes=2", RENSA_FUNCTION(F::linear(x[0], x[1], {}, 2))},
    {"linear of images", RENSA_FUNCTION(F::linear(x[0], x[1], x[2]))},
    {"embed_id", RENSA_FUNCTION(F::embed_id(x[0], x[1]))},
    {"embed_id ignore_label=2", RENSA_FUNCTION(F::embed_id(x[0], x[1], {.ignore_label = 2}))},
    {"embed_id ignore_label=-1", RENSA_FUNCTION(F::embed_id(x[0], x[1], {.ignore_label = -1}))},
    {"bilinear", RENSA_FUNCTION(F::bilinear(x[0], x[1], x[2]))},
    {"bilinear of images", RENSA_FUNCTION(F::bilinear(x[0], x[1], x[2]))},
    {"bilinear with linear terms", RENSA_FUNCTION(F::bilinear(x[0], x[1], x[2], x[3], x[4], x[5]))},
};
const testing::FunctionTable table("connection", rows);

}  // namespace
}  // namespace rensa
