// Scan on a GPU: how it is spread.
#include "rensa/operations/scan/cuda_plan.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "rensa/backend/cuda/check.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

ScanPlan::ScanPlan(const operations::Scan& op)
    : outer(op.in.view.shape[0]),
      n(op.in.view.shape[1]),
      inner(op.in.view.shape[2]),
      way(ScanWay::line),
      piece(n) {
  constexpr std::int64_t kWarpRow = 512, kLineRow = 8;
  if (inner == 1 && n > kLineRow) {
    bool is_16bit_float = op.in.view.dtype == Dtype::float16 || op.in.view.dtype == Dtype::bfloat16;
    bool is_long = operations::Scan::has_long_rows(op.in.view.shape) && !is_16bit_float;
    if (is_long) way = ScanWay::device;
    else way = n > kWarpRow ? ScanWay::block : ScanWay::warp;
    return;
  }
  // Enough threads to keep the device busy, with pieces that are worth a second look.
  constexpr std::int64_t kThreads = std::int64_t{1024} * kMultiprocessors, kPiece = 32;
  std::int64_t lines = outer * inner;
  if (lines >= kThreads / 2 || n < 2 * kPiece) return;
  piece = std::max(kPiece, ceil_div(n, ceil_div(kThreads, lines)));
  pieces = ceil_div(n, piece);
}

int multiprocessors(Device device) {
  int count = 0;
  RENSA_CUDA_CALL(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device.index));
  return count;
}

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t Scan::workspace_bytes() const {
  if (in.view.size() == 0) return 0;
  cuda::ScanPlan plan(*this);
  return cuda::scan_bytes(*this, plan);
}

void Scan::run_cuda(const cuda::LaunchContext& context) {
  if (in.view.size() == 0) return;
  cuda::ScanPlan plan(*this);
  product ? cuda::run_product_scan(*this, plan, context) : cuda::run_sum_scan(*this, plan, context);
}

}  // namespace rensa::operations
