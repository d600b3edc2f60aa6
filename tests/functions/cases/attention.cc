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

Variables with(const Variables& x, const F::AttentionOptions& options) {
  return {F::scaled_dot_product_attention(x[0], x[1], x[2], options)};
}

const std::vector<testing::FunctionRow> rows = {
    attention("attention"),
    attention("attention of matrices"),
    attention("attention scale=0.3", {.scale = 0.3}),
    attention("attention scale=-0.4", {.scale = -0.4}),
    attention("attention causal", {.causal = true}),
    attention("attention of grouped heads causal", {.causal = true}),
    attention("attention mask"),
    attention("attention added mask"),
    attention("attention added mask of infinities"),
    {"attention bias", [](const Variables& x) { return with(x, {.bias = x[3]}); }},
    {"attention key_lengths",
     [](const Variables& x) { return with(x, {.key_lengths = x[3].array()}); }},
    {"attention alibi_slopes",
     [](const Variables& x) { return with(x, {.alibi_slopes = x[3].array()}); }},
    {"attention causal mask key_lengths alibi_slopes",
     [](const Variables& x) {
       return with(x, {.mask = x[3].array(),
                       .causal = true,
                       .key_lengths = x[4].array(),
                       .alibi_slopes = x[5].array()});
     }},
};
const testing::FunctionTable table("attention", rows);

}  // namespace
}  // namespace rensa
