// Tiles of float32, multiplied as they are or rounded to TF32.
#include "rensa/operations/matmul/cuda_box_panels.cuh"
#include "rensa/operations/matmul/cuda_fma_panels.cuh"
#include "rensa/operations/matmul/cuda_tiles.cuh"

namespace rensa::cuda {

bool has_tiles(Device device) {
  auto kernel = tile_kernel<float, 16, 16, true, true, true, true>;
  return are_compiled_for<80>(device, reinterpret_cast<const void*>(kernel));
}

bool has_boxes(Device device) {
  auto kernel = box_kernel<float, 16, 16, true>;
  return are_compiled_for<90>(device, reinterpret_cast<const void*>(kernel));
}

void launch_float_tiles(const TileArgs& args, TileForm form, const LaunchContext& context) {
  if (form.tensor_cores) return launch_tensor_tiles<Tf32>(args, form, context);
  if (form == kBoxPanel) launch_box_panels(args, context);
  else if (form == kFmaPanel) launch_fma_panels(args, context);
  else if (form.rows == 8) launch_tile_size<float, 8, 16>(args, form.warps, context);
  else launch_common_size<float>(args, form, context);
}

}  // namespace rensa::cuda
