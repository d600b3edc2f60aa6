// Functions that few networks use.
#include "rensa/functions/functions.h"
#include "rensa/functions/sparse_matmul.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

Variables parts(const F::DiscriminativeLoss& loss) {
  return {loss.variance, loss.distance, loss.regularization};
}

F::CooMatrix coo(const Variables& x) { return {x[0], x[1].array(), x[2].array(), 4, 5}; }

// Eigenvalues wait for the host.
constexpr bool kEager = false;

const std::vector<testing::FunctionRow> rows = {
    {"shift", RENSA_FUNCTION(F::shift(x[0]))},
    {"shift ksize=3,1 dilate=2", RENSA_FUNCTION(F::shift(x[0], {3, 1}, {.dilate = 2}))},
    {"shift ksize=1,5 dilate=-1", RENSA_FUNCTION(F::shift(x[0], {1, 5}, {.dilate = -1}))},
    {"as_strided", RENSA_FUNCTION(F::as_strided(x[0], {3, 4}, {2, 1}, 1))},
    {"as_strided of equal places",
     RENSA_FUNCTION(F::as_strided(x[0], {2, 3, 2}, {0, -1, 3}, 4))},
    {"as_strided of all", RENSA_FUNCTION(F::as_strided(x[0], {4, 3}, {1, 4}))},
    {"deformable_convolution_2d_sampler",
     RENSA_FUNCTION(F::deformable_convolution_2d_sampler(x[0], x[1], x[2], x[3]))},
    {"deformable_convolution_2d_sampler stride=2,1 pad=1,2",
     RENSA_FUNCTION(F::deformable_convolution_2d_sampler(x[0], x[1], x[2], {},
                                                         {.stride = {2, 1}, .pad = {1, 2}}))},
    {"discriminative_margin_based_clustering_loss",
     [](const Variables& x) {
       return parts(F::discriminative_margin_based_clustering_loss(x[0], x[1], 0.25, 0.75, 2));
     }},
    {"discriminative_margin_based_clustering_loss norm=2",
     [](const Variables& x) {
       return parts(F::discriminative_margin_based_clustering_loss(
           x[0], x[1], 0.125, 1, 3, {.norm = 2, .alpha = 0.5, .beta = 2, .gamma = 0.25}));
     }},
    {"black_out", RENSA_FUNCTION(F::black_out(x[0], x[1], x[2], x[3]))},
    {"black_out reduce=no", RENSA_FUNCTION(F::black_out(x[0], x[1], x[2], x[3], "no"))},
    {"decorrelated_batch_normalization",
     RENSA_FUNCTION(F::decorrelated_batch_normalization(x[0], {.groups = 2})), 1, kEager},
    {"decorrelated_batch_normalization eps=0.01",
     RENSA_FUNCTION(F::decorrelated_batch_normalization(x[0], {.groups = 3, .eps = 0.01})), 1,
     kEager},
    {"fixed_decorrelated_batch_normalization",
     RENSA_FUNCTION(F::fixed_decorrelated_batch_normalization(x[0], x[1], x[2], 2))},
    {"sparse_matmul", RENSA_FUNCTION(F::sparse_matmul(coo(x), x[3]))},
    {"sparse_matmul transa transb",
     RENSA_FUNCTION(F::sparse_matmul(coo(x), x[3], true, true))},
    {"sparse_matmul of a dense one first", RENSA_FUNCTION(F::sparse_matmul(x[3], coo(x)))},
    {"sparse_matmul of a dense one first transa transb",
     RENSA_FUNCTION(F::sparse_matmul(x[3], coo(x), true, true))},
    {"sparse_matmul of a batch", RENSA_FUNCTION(F::sparse_matmul(coo(x), x[3]))},
};
const testing::FunctionTable table("rare", rows);

}  // namespace
}  // namespace rensa
