// Tiles of float16 and bfloat16.
#include "rensa/operations/matmul/cuda_tiles.cuh"

namespace rensa::cuda {

void launch_half_tiles(Dtype dtype, const TileArgs& args, TileForm form,
                       const LaunchContext& context) {
  if (dtype == Dtype::float16) launch_tensor_tiles<half_t>(args, form, context);
  else launch_tensor_tiles<bfloat16_t>(args, form, context);
}

}  // namespace rensa::cuda
