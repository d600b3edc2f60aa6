// Binary search on a GPU: a thread a value.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/sort_keys.h"
#include "rensa/device/sort_operations.h"

namespace rensa {

namespace cuda {

namespace {

struct SearchArgs {
  const char* sorted;
  const char* values;
  const long long* sorter;
  long long* positions;
  std::int64_t n, count;
  ElementType type;
  bool right, either_way;
};

template <class V> __device__ __forceinline__ V element(const SearchArgs& args, std::int64_t i) {
  if (args.sorter) {
    i = args.sorter[i];
    i = i < 0 ? 0 : i >= args.n ? args.n - 1 : i;
  }
  return load_any<V>(args.sorted + (i << args.type.log2_size), args.type);
}

template <class V>
__global__ void __launch_bounds__(kBlock) search(const __grid_constant__ SearchArgs args) {
  bool falls = args.either_way && args.n > 0 &&
               sorts_before(element<V>(args, args.n - 1), element<V>(args, 0));
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
       i < args.count; i += step) {
    V value = load_any<V>(args.values + (i << args.type.log2_size), args.type);
    std::int64_t low = 0, high = args.n;
    while (low < high) {
      std::int64_t middle = low + (high - low) / 2;
      V other = element<V>(args, falls ? args.n - 1 - middle : middle);
      bool before = args.right ? !sorts_before(value, other) : sorts_before(other, value);
      if (before) low = middle + 1;
      else high = middle;
    }
    args.positions[i] = falls ? args.n - low : low;
  }
}

}  // namespace

}  // namespace cuda

void SearchSorted::run_cuda(const cuda::LaunchContext& context) {
  using cuda::ElementType;
  ComputeType type = compute_type(sorted.view.dtype);
  cuda::SearchArgs args = {};
  args.sorted = sorted.view.data;
  args.values = values.view.data;
  if (sorter.present()) args.sorter = sorter.view.as<long long>();
  args.positions = positions.view.as<long long>();
  args.n = sorted.view.size();
  args.count = positions.view.size();
  args.type = ElementType(sorted.view.dtype, type, false);
  args.right = right;
  args.either_way = either_way;
  if (args.count == 0) return;
  std::int64_t blocks =
      std::min(cuda::ceil_div(args.count, cuda::kBlock), std::int64_t{64} * cuda::kMultiprocessors);
  auto launch_as = [&](auto v) {
    cuda::launch_kernel(name(), context, cuda::search<decltype(v)>, blocks, cuda::kBlock, args);
  };
  switch (type) {
    case ComputeType::i64: return launch_as(0ll);
    case ComputeType::u64: return launch_as(0ull);
    case ComputeType::f32: return launch_as(0.0f);
    case ComputeType::f64: return launch_as(0.0);
    case ComputeType::c64: return launch_as(complex_t<float>(0));
    case ComputeType::c128: return launch_as(complex_t<double>(0));
  }
}

}  // namespace rensa
