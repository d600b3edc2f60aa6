// Running sums on a GPU.
#include "rensa/backend/cuda/scan.cuh"

namespace rensa::cuda {

namespace {

template <class F> decltype(auto) with_type(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float32: return f(0.0f);
    case Dtype::float64: return f(0.0);
    case Dtype::complex64: return f(complex_t<float>(0));
    case Dtype::complex128: return f(complex_t<double>(0));
    default: return f(0ull);
  }
}

}  // namespace

std::size_t sum_scan_bytes(const Scan& op, const ScanPlan& plan) {
  return with_type(op.in.view.dtype,
                   [&](auto v) { return scan_bytes<decltype(v), Sum>(op.name(), plan); });
}

void run_sum_scan(const Scan& op, const ScanPlan& plan, const LaunchContext& context) {
  with_type(op.in.view.dtype, [&](auto v) { run_scan<decltype(v), Sum>(op, plan, context); });
}

}  // namespace rensa::cuda
