// Running products on a GPU.
#include "rensa/operations/scan/cuda_kernels.cuh"

namespace rensa::cuda {

void run_product_scan(const operations::Scan& op, const ScanPlan& plan,
                      const LaunchContext& context) {
  run_scan<RunningProduct>(op, plan, context);
}

}  // namespace rensa::cuda
