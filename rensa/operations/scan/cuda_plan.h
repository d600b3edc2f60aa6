// How a scan is spread over a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rensa/operations/scan/scan.h"

namespace rensa::cuda {

enum class ScanWay : unsigned char { device, block, warp, line };

struct ScanPlan {
  std::int64_t outer, n, inner;
  ScanWay way;
  std::int64_t pieces = 1, piece;  // of a line, and the elements of one
  explicit ScanPlan(const operations::Scan& op);
};

int multiprocessors(Device device);

std::size_t scan_bytes(const operations::Scan& op, const ScanPlan& plan);
/// Scan of one kind each (cuda_sum.cu, cuda_product.cu).
void run_sum_scan(const operations::Scan& op, const ScanPlan& plan, const LaunchContext& context);
void run_product_scan(const operations::Scan& op, const ScanPlan& plan,
                      const LaunchContext& context);

}  // namespace rensa::cuda
