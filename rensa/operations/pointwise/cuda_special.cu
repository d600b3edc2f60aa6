// The kernels of operations/pointwise/special.def.
#include "rensa/operations/pointwise/cuda_kernels.cuh"

namespace rensa::cuda {

#define RENSA_POINTWISE_SUBJECT "rensa/operations/pointwise/special.def"
void add_pointwise_special(PointwiseTable& table) {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements) \
  add_pointwise<pw::name, DtypeRule::rule>(table, pointwise::Index::name);
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}

}  // namespace rensa::cuda
