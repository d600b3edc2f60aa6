// Histograms on a GPU. Few bins are counted by each block in its shared memory and added to the
// result at its end; many are counted where they are. Counts do not depend on the order; sums of
// weights are rounded in whatever order the atomic additions come.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/histogram_bins.h"
#include "rensa/operations/histogram/histogram.h"

namespace rensa::cuda {

namespace {

constexpr std::int64_t kSharedBins = 1024;
constexpr std::int64_t kPerThread = 16;

struct HistogramArgs {
  const char* in;
  ElementType type;
  const double* edges;  // null: elements are bins
  const void* weights;  // null: 1 each
  void* counts;
  std::int64_t n, bins;
  bool uniform;
};

__device__ __forceinline__ void add_to(unsigned long long* to, unsigned long long x) {
  atomicAdd(to, x);
}
__device__ __forceinline__ void add_to(double* to, double x) { atomicAdd(to, x); }
__device__ __forceinline__ void add_to(complex_t<double>* to, complex_t<double> x) {
  atomicAdd(&to->re, x.re);
  atomicAdd(&to->im, x.im);
}
__device__ __forceinline__ void add_to(unsigned* to, unsigned x) { atomicAdd(to, x); }

// What a block counts in: it has fewer than 2^32 elements.
template <class W> struct SharedOf { using type = W; };
template <> struct SharedOf<unsigned long long> { using type = unsigned; };

template <class W, bool kShared>
__global__ void __launch_bounds__(kBlock) count_bins(const __grid_constant__ HistogramArgs args) {
  wait_for_previous();
  using S = typename SharedOf<W>::type;
  __shared__ double shared_edges[kShared ? kSharedBins + 1 : 1];
  __shared__ alignas(16) char shared_bytes[kShared ? kSharedBins * sizeof(S) : 1];
  S* shared = reinterpret_cast<S*>(shared_bytes);
  W* counts = static_cast<W*>(args.counts);
  const W* weights = static_cast<const W*>(args.weights);
  HistogramBins bin_of = {args.edges, args.bins, args.uniform};
  if constexpr (kShared) {
    for (int k = threadIdx.x; k < args.bins; k += kBlock) shared[k] = S(0);
    if (args.edges) {
      for (int k = threadIdx.x; k <= args.bins; k += kBlock) shared_edges[k] = args.edges[k];
      bin_of.edges = shared_edges;
    }
    __syncthreads();
  }
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x; i < args.n;
       i += step) {
    const char* p = args.in + (i << args.type.log2_size);
    long long bin =
        args.edges ? bin_of(load_any<double>(p, args.type)) : load_integer(p, args.type.dtype);
    if (bin < 0 || bin >= args.bins) continue;
    W weight = weights ? weights[i] : W(1);
    if constexpr (kShared) add_to(shared + bin, static_cast<S>(weight));
    else add_to(counts + bin, weight);
  }
  if constexpr (kShared) {
    __syncthreads();
    for (int k = threadIdx.x; k < args.bins; k += kBlock) add_to(counts + k, W(shared[k]));
  }
}

template <class W>
void launch_histogram(const operations::Histogram& op, const LaunchContext& context,
                      const HistogramArgs& args) {
  auto stream = static_cast<cudaStream_t>(context.handle);
  RENSA_CUDA_CHECK(
      op.name(),
      cudaMemsetAsync(args.counts, 0, static_cast<std::size_t>(args.bins) * sizeof(W), stream));
  if (args.n == 0) return;
  bool shared = args.bins <= kSharedBins;
  std::int64_t blocks =
      std::min(ceil_div(args.n, kBlock * kPerThread), std::int64_t{8} * kMultiprocessors);
  launch_kernel(op.name(), context, shared ? count_bins<W, true> : count_bins<W, false>, blocks,
                kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Histogram::run_cuda(const cuda::LaunchContext& context) {
  if (counts.view.size() == 0) return;
  cuda::HistogramArgs args = {};
  args.in = in.view.data;
  args.type = cuda::ElementType(in.view.dtype, ComputeType::f64, false);
  if (edges.present()) args.edges = edges.view.as<double>();
  if (weights.present()) args.weights = weights.view.data;
  args.counts = counts.view.data;
  args.n = in.view.size();
  args.bins = counts.view.size();
  args.uniform = uniform;
  switch (counts.view.dtype) {
    case Dtype::complex128: return cuda::launch_histogram<complex_t<double>>(*this, context, args);
    case Dtype::float64: return cuda::launch_histogram<double>(*this, context, args);
    default: return cuda::launch_histogram<unsigned long long>(*this, context, args);
  }
}

}  // namespace rensa::operations
