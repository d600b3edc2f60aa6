// The functions of rensa/functions/attention.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

testing::FunctionRow attention(const char* name, F::AttentionOptions options = {}) {
  return {name, [=](const Variables& x) {
            F::AttentionOptions all = options;
            if (x.size() > 3) all.mask = x[3].array();
            return Variables{F::scaled_dot_product_attention(x[0], x[1], x[2], all)};
          }};
}

const std::vector<testing::FunctionRow> rows = {
    attention("attention"),
    attention("attention of matrices"),
    attention("attention scale=0.3", {.scale = 0.3}),
    attention("attention causal", {.causal = true}),
    attention("attention of grouped heads causal", {.causal = true}),
    attention("attention mask"),
    attention("attention added mask"),
};
const testing::FunctionTable table("attention", rows);

}  // namespace
}  // namespace rensa
