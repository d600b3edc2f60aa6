// Large tiles of float32, each number the sum of two of TF32.
#include "rensa/operations/matmul/cuda_split_panels.cuh"

namespace rensa::cuda {

bool has_split_panels(Device device) {
  auto kernel = split_panel_kernel<64, true, true>;
  return are_compiled_for<90>(device, reinterpret_cast<const void*>(kernel));
}

void launch_split_panels(const TileArgs& args, TileForm form, const LaunchContext& context) {
  if (form.rows == 128) launch_split_panels<128>(args, context);
  else launch_split_panels<64>(args, context);
}

}  // namespace rensa::cuda
