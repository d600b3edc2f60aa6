// Large tiles of float32 on Hopper, in TF32 and each number the sum of two of TF32.
#include "rensa/operations/matmul/cuda_warpgroup_panels.cuh"

namespace rensa::cuda {

bool has_warpgroup_panels(Device device) {
  auto kernel = warpgroup_panel_kernel<BroughtTf32, 128, true, true>;
  return are_compiled_for<90>(device, reinterpret_cast<const void*>(kernel));
}

void launch_warpgroup_panels(UseTf32 tf32, const TileArgs& args, TileForm form,
                             const LaunchContext& context) {
  if (tf32) launch_warpgroup_panels<BroughtTf32, 128>(args, context);
  else if (form.rows == 128) launch_warpgroup_panels<SplitFloat, 128>(args, context);
  else launch_warpgroup_panels<SplitFloat, 64>(args, context);
}

}  // namespace rensa::cuda
