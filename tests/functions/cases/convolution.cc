// The functions of rensa/functions/convolution.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

const std::vector<testing::FunctionRow> rows = {
    {"convolution_2d", RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2]))},
    {"convolution_2d nobias", RENSA_FUNCTION(F::convolution_2d(x[0], x[1]))},
    {"convolution_2d stride=2 pad=1",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.stride = 2, .pad = 1}))},
    {"convolution_2d stride=(2, 1) pad=(0, 2)",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.stride = {2, 1}, .pad = {0, 2}}))},
    {"convolution_2d pointwise", RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2]))},
    {"convolution_2d whole image", RENSA_FUNCTION(F::convolution_2d(x[0], x[1]))},
    {"convolution_2d of one", RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2]))},
    {"convolution_2d pad=2 of one pixel",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], {}, {.pad = 2}))},
    {"convolution_2d dilate=2",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.pad = 2, .dilate = 2}))},
    {"convolution_2d dilate=(1, 3) stride=2",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], {}, {.stride = 2, .pad = 1, .dilate = {1, 3}}))},
    {"convolution_2d cover_all",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.stride = {3, 4}, .cover_all = true}))},
    {"convolution_2d groups=2",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.pad = 1, .groups = 2}))},
    {"convolution_2d groups=channels",
     RENSA_FUNCTION(F::convolution_2d(x[0], x[1], x[2], {.stride = 2, .pad = 1, .groups = 4}))},
    {"convolution_2d many", RENSA_FUNCTION(F::convolution_2d(x[0], x[1], {}, {.pad = 1}))},
    {"convolution_1d", RENSA_FUNCTION(F::convolution_1d(x[0], x[1], x[2]))},
    {"convolution_1d stride=2 pad=1 dilate=2 groups=2",
     RENSA_FUNCTION(
         F::convolution_1d(x[0], x[1], {}, {.stride = 2, .pad = 1, .dilate = 2, .groups = 2}))},
    {"convolution_3d", RENSA_FUNCTION(F::convolution_3d(x[0], x[1], x[2]))},
    {"convolution_3d stride=(1, 2, 1) pad=(0, 1, 1)",
     RENSA_FUNCTION(F::convolution_3d(x[0], x[1], {}, {.stride = {1, 2, 1}, .pad = {0, 1, 1}}))},
    {"convolution_nd", RENSA_FUNCTION(F::convolution_nd(x[0], x[1], x[2]))},
    {"convolution_nd cover_all",
     RENSA_FUNCTION(F::convolution_nd(x[0], x[1], {}, {.stride = 2, .cover_all = true}))},
    {"dilated_convolution_2d", RENSA_FUNCTION(F::dilated_convolution_2d(
                                   x[0], x[1], x[2], {.stride = 2, .pad = 2, .dilate = 2}))},
    {"deconvolution_2d", RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1], x[2]))},
    {"deconvolution_2d nobias", RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1]))},
    {"deconvolution_2d stride=2 pad=1",
     RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1], x[2], {.stride = 2, .pad = 1}))},
    {"deconvolution_2d outsize",
     RENSA_FUNCTION(
         F::deconvolution_2d(x[0], x[1], x[2], {.stride = 2, .pad = 1, .outsize = {6, 5}}))},
    {"deconvolution_2d smaller outsize",
     RENSA_FUNCTION(
         F::deconvolution_2d(x[0], x[1], x[2], {.stride = 3, .pad = 1, .outsize = {6, 5}}))},
    {"deconvolution_2d dilate=2",
     RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1], x[2], {.pad = 1, .dilate = 2}))},
    {"deconvolution_2d groups=2",
     RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1], x[2], {.stride = 2, .groups = 2}))},
    {"deconvolution_2d groups=channels",
     RENSA_FUNCTION(F::deconvolution_2d(x[0], x[1], {}, {.groups = 3}))},
    {"deconvolution_1d", RENSA_FUNCTION(F::deconvolution_1d(x[0], x[1], x[2], {.stride = 2}))},
    {"deconvolution_3d",
     RENSA_FUNCTION(F::deconvolution_3d(x[0], x[1], {}, {.stride = 2, .pad = 1}))},
    {"deconvolution_nd", RENSA_FUNCTION(F::deconvolution_nd(x[0], x[1], x[2]))},
    {"depthwise_convolution_2d", RENSA_FUNCTION(F::depthwise_convolution_2d(x[0], x[1], x[2]))},
    {"depthwise_convolution_2d stride=2 pad=1",
     RENSA_FUNCTION(F::depthwise_convolution_2d(x[0], x[1], {}, {.stride = 2, .pad = 1}))},
    {"local_convolution_2d", RENSA_FUNCTION(F::local_convolution_2d(x[0], x[1], x[2]))},
    {"local_convolution_2d stride=(2, 1)",
     RENSA_FUNCTION(F::local_convolution_2d(x[0], x[1], {}, {.stride = {2, 1}}))},
};
const testing::FunctionTable table("convolution", rows);

}  // namespace
}  // namespace rensa
