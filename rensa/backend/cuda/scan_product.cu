// Running products on a GPU.
#include "rensa/backend/cuda/scan.cuh"

namespace rensa::cuda {

void run_product_scan(const Scan& op, const ScanPlan& plan, const LaunchContext& context) {
  run_scan<RunningProduct>(op, plan, context);
}

}  // namespace rensa::cuda
