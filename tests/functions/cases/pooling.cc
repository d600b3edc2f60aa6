// The functions of rensa/functions/pooling.h.
#include "rensa/functions/pooling.h"

#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

// Differences of -infinity, which the greatest of padding alone is, are no derivatives.
constexpr int kNone = 0;

const std::vector<testing::FunctionRow> rows = {
    {"max_pooling_2d", RENSA_FUNCTION(F::max_pooling_2d(x[0], 2))},
    {"max_pooling_2d of overlapping windows", RENSA_FUNCTION(F::max_pooling_2d(x[0], 3, 2, 1))},
    {"max_pooling_2d ksize=3,2 stride=1,3 pad=2,1",
     RENSA_FUNCTION(F::max_pooling_2d(x[0], {3, 2}, {1, 3}, {2, 1}))},
    {"max_pooling_2d of windows apart", RENSA_FUNCTION(F::max_pooling_2d(x[0], 2, 3)), kNone},
    {"average_pooling_2d", RENSA_FUNCTION(F::average_pooling_2d(x[0], 2))},
    {"average_pooling_2d of overlapping windows",
     RENSA_FUNCTION(F::average_pooling_2d(x[0], 3, 2, 1))},
    {"average_pooling_2d ksize=3,2 stride=1,3 pad=2,1",
     RENSA_FUNCTION(F::average_pooling_2d(x[0], {3, 2}, {1, 3}, {2, 1}))},
    {"average_pooling_2d of windows apart", RENSA_FUNCTION(F::average_pooling_2d(x[0], 2, 3))},
    {"max_pooling_2d cover_all=False", RENSA_FUNCTION(F::max_pooling_2d(x[0], 3, 2, 0, false))},
    {"max_pooling_2d return_indices",
     [](const Variables& x) -> Variables {
       Array indices;
       Variable y = F::max_pooling_2d(x[0], 3, 2, 1, true, &indices);
       return {y, constant(indices)};
     }},
    {"max_pooling_1d", RENSA_FUNCTION(F::max_pooling_1d(x[0], 3, 2, 1))},
    {"average_pooling_1d", RENSA_FUNCTION(F::average_pooling_1d(x[0], 3, 2, 1))},
    {"max_pooling_3d", RENSA_FUNCTION(F::max_pooling_3d(x[0], 3, 2, 1))},
    {"average_pooling_3d", RENSA_FUNCTION(F::average_pooling_3d(x[0], 3, 2, 1))},
    {"max_pooling_nd",
     RENSA_FUNCTION(F::max_pooling_nd(x[0], {2, 3, 1, 2}, {1, 2, 2, 1}, {1, 1, 0, 0})), kNone},
    {"average_pooling_nd",
     RENSA_FUNCTION(F::average_pooling_nd(x[0], {2, 3, 1, 2}, {1, 2, 2, 1}, {1, 1, 0, 0}))},
    {"average_pooling_nd pad_value=None",
     RENSA_FUNCTION(F::average_pooling_nd(x[0], 3, 2, 1, std::nullopt))},
    {"adaptive_average_pooling_2d", RENSA_FUNCTION(F::adaptive_average_pooling_2d(x[0], {3, 4}))},
    {"adaptive_average_pooling_2d size=1", RENSA_FUNCTION(F::adaptive_average_pooling_2d(x[0], 1))},
    {"adaptive_average_pooling_2d of more",
     RENSA_FUNCTION(F::adaptive_average_pooling_2d(x[0], {7, 2}))},
    {"adaptive_max_pooling_2d", RENSA_FUNCTION(F::adaptive_max_pooling_2d(x[0], {3, 4}))},
    {"adaptive_max_pooling_2d of more", RENSA_FUNCTION(F::adaptive_max_pooling_2d(x[0], {7, 2}))},
    {"unpooling_1d", RENSA_FUNCTION(F::unpooling_1d(x[0], 3, 2, 1))},
    {"unpooling_2d", RENSA_FUNCTION(F::unpooling_2d(x[0], 2))},
    {"unpooling_2d of overlapping windows",
     RENSA_FUNCTION(F::unpooling_2d(x[0], 3, 2, 1, {}, false))},
    {"unpooling_2d outsize=6,7", RENSA_FUNCTION(F::unpooling_2d(x[0], 2, 2, 0, {6, 7}))},
    {"unpooling_3d", RENSA_FUNCTION(F::unpooling_3d(x[0], 2, 1))},
    {"unpooling_nd", RENSA_FUNCTION(F::unpooling_nd(x[0], {2, 1, 2, 1}, {2, 1, 1, 1}))},
    {"upsampling_2d", RENSA_FUNCTION(F::upsampling_2d(x[0], x[1].array(), 2))},
    {"upsampling_2d outsize=6,8",
     RENSA_FUNCTION(F::upsampling_2d(x[0], x[1].array(), 3, 2, 1, {6, 8}))},
    {"spatial_pyramid_pooling_2d", RENSA_FUNCTION(F::spatial_pyramid_pooling_2d(x[0], 3)), kNone},
};
const testing::FunctionTable table("pooling", rows);

}  // namespace
}  // namespace rensa
