// The kernels of core/pointwise/recurrent.def.
#include "rensa/backend/cuda/pointwise.cuh"

namespace rensa::cuda {

#define RENSA_POINTWISE_SUBJECT "rensa/core/pointwise/recurrent.def"
void add_pointwise_recurrent(PointwiseTable& table) {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements) \
  add_pointwise<pw::name, DtypeRule::rule>(table, pointwise::Index::name);
#include "rensa/core/pointwise.def"
#undef RENSA_POINTWISE
}

}  // namespace rensa::cuda
