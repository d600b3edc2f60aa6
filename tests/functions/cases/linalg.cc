// The functions of rensa/functions/linalg_functions.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

Variables pair_of(const std::pair<Variable, Variable>& y) { return {y.first, y.second}; }

#define RENSA_EINSUM(subscripts)                                                   \
  {                                                                                \
    "einsum " subscripts,                                                          \
        [](const Variables& x) -> Variables { return {F::einsum(subscripts, x)}; } \
  }

const std::vector<testing::FunctionRow> rows = {
    {"matmul", RENSA_FUNCTION(F::matmul(x[0], x[1]))},
    {"matmul transposed", RENSA_FUNCTION(F::matmul(x[0], x[1], true, true))},
    {"batch_matmul", RENSA_FUNCTION(F::batch_matmul(x[0], x[1]))},
    {"batch_matmul of rows", RENSA_FUNCTION(F::batch_matmul(x[0], x[1], true))},
    {"tensordot", RENSA_FUNCTION(F::tensordot(x[0], x[1]))},
    {"tensordot axes=1", RENSA_FUNCTION(F::tensordot(x[0], x[1], 1))},
    {"tensordot axes=([2, 0], [0, 1])",
     RENSA_FUNCTION(F::tensordot(x[0], x[1], Shape{2, 0}, Shape{0, 1}))},
    RENSA_EINSUM("ij,jk->ik"),
    RENSA_EINSUM("ij,jk"),
    RENSA_EINSUM("ij->ji"),
    RENSA_EINSUM("ij->"),
    RENSA_EINSUM("ii->i"),
    RENSA_EINSUM("ii"),
    RENSA_EINSUM("iij->j"),
    RENSA_EINSUM("ij->j"),
    RENSA_EINSUM("i,j->ij"),
    RENSA_EINSUM("bij,bjk->bik"),
    RENSA_EINSUM("ij,jk,kl->il"),
    RENSA_EINSUM("...ij,...jk->...ik"),
    RENSA_EINSUM("...i->..."),
    RENSA_EINSUM("i...,i...->..."),
    RENSA_EINSUM("i,ij,jj->j"),
    // No recording takes cuFFT's transforms.
    {.name = "fft",
     .f = [](const Variables& x) { return pair_of(F::fft(x[0], x[1])); },
     .captured = false},
    {.name = "ifft",
     .f = [](const Variables& x) { return pair_of(F::ifft(x[0], x[1])); },
     .captured = false},
};
const testing::FunctionTable table("linalg", rows);

}  // namespace
}  // namespace rensa
