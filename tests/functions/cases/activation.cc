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
    {"gelu", RENSA_FUNCTION(F::gelu(x[0]))},
    {"silu", RENSA_FUNCTION(F::silu(x[0]))},
};
const testing::FunctionTable table("activation", rows);

}  // namespace
}  // namespace rensa
