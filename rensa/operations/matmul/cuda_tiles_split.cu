// Tiles of float32, each number the sum of two of TF32.
#include "rensa/operations/matmul/cuda_boxes.cuh"

namespace rensa::cuda {

void launch_split_tiles(const TileArgs& args, TileForm form, const LaunchContext& context) {
  if (form.rows == 32) launch_boxes<SplitFloat, 32, 32>(args, form.warps, context);
  else if (form.columns == 32) launch_boxes<SplitFloat, 16, 32>(args, form.warps, context);
  else launch_boxes<SplitFloat, 16, 16>(args, form.warps, context);
}

}  // namespace rensa::cuda
