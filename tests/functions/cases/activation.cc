// The functions of rensa/functions/activation.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

const std::vector<testing::FunctionRow> rows = {
    {"relu", RENSA_FUNCTION(F::relu(x[0]))},
    {"sigmoid", RENSA_FUNCTION(F::sigmoid(x[0]))},
    {"tanh", RENSA_FUNCTION(F::tanh(x[0]))},
    {"softplus", RENSA_FUNCTION(F::softplus(x[0]))},
    {"softplus beta=2.5", RENSA_FUNCTION(F::softplus(x[0], 2.5))},
    {"leaky_relu", RENSA_FUNCTION(F::leaky_relu(x[0]))},
    {"leaky_relu slope=0.1", RENSA_FUNCTION(F::leaky_relu(x[0], 0.1))},
    {"elu", RENSA_FUNCTION(F::elu(x[0]))},
    {"elu alpha=1.5", RENSA_FUNCTION(F::elu(x[0], 1.5))},
    {"selu", RENSA_FUNCTION(F::selu(x[0]))},
    {"selu alpha=1.5 scale=2", RENSA_FUNCTION(F::selu(x[0], 1.5, 2))},
    {"hard_sigmoid", RENSA_FUNCTION(F::hard_sigmoid(x[0]))},
    {"clipped_relu", RENSA_FUNCTION(F::clipped_relu(x[0]))},
    {"clipped_relu z=1.5", RENSA_FUNCTION(F::clipped_relu(x[0], 1.5))},
    {"relu6", RENSA_FUNCTION(F::relu6(x[0]))},
    {"softmax", RENSA_FUNCTION(F::softmax(x[0]))},
    {"softmax axis=0", RENSA_FUNCTION(F::softmax(x[0], 0))},
    {"softmax axis=-1", RENSA_FUNCTION(F::softmax(x[0], -1))},
    {"log_softmax", RENSA_FUNCTION(F::log_softmax(x[0]))},
    {"log_softmax axis=-2", RENSA_FUNCTION(F::log_softmax(x[0], -2))},
    {"crelu", RENSA_FUNCTION(F::crelu(x[0]))},
    {"crelu axis=0", RENSA_FUNCTION(F::crelu(x[0], 0))},
    {"crelu axis=-1", RENSA_FUNCTION(F::crelu(x[0], -1))},
    {"maxout", RENSA_FUNCTION(F::maxout(x[0], 2))},
    {"maxout axis=2", RENSA_FUNCTION(F::maxout(x[0], 3, 2))},
    {"prelu", RENSA_FUNCTION(F::prelu(x[0], x[1]))},
    {"prelu of channels", RENSA_FUNCTION(F::prelu(x[0], x[1]))},
    {"prelu one", RENSA_FUNCTION(F::prelu(x[0], x[1]))},
    {"rrelu of r", RENSA_FUNCTION(F::rrelu(x[0], 1. / 8, 1. / 3, {.r = x[1].array()}))},
    {"swish", RENSA_FUNCTION(F::swish(x[0], x[1]))},
    {"swish of channels", RENSA_FUNCTION(F::swish(x[0], x[1]))},
    {"mish", RENSA_FUNCTION(F::mish(x[0]))},
    {"hard_swish", RENSA_FUNCTION(F::hard_swish(x[0]))},
    {"gelu_tanh", RENSA_FUNCTION(F::gelu_tanh(x[0]))},
    {"glu", RENSA_FUNCTION(F::glu(x[0]))},
    {"glu axis=0", RENSA_FUNCTION(F::glu(x[0], 0))},
    {"gelu", RENSA_FUNCTION(F::gelu(x[0]))},
    {"silu", RENSA_FUNCTION(F::silu(x[0]))},
};
const testing::FunctionTable table("activation", rows);

}  // namespace
}  // namespace rensa
