// Running sums on a GPU.
#include "rensa/operations/scan/cuda_kernels.cuh"

namespace rensa::cuda {

std::size_t scan_bytes(const operations::Scan& op, const ScanPlan& plan) {
  return with_scan_element(
      op.in.view.dtype, [&](auto v) { return scan_bytes<decltype(v)>(op.in.view.device, plan); });
}

void run_sum_scan(const operations::Scan& op, const ScanPlan& plan, const LaunchContext& context) {
  run_scan<RunningSum>(op, plan, context);
}

}  // namespace rensa::cuda
