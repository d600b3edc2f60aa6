// Binary search on a GPU: one thread per value. Where many values are sought, every block first
// lays a sample of the sorted elements out in shared memory, as a tree of their sort keys.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/sort_keys.h"
#include "rensa/operations/search_sorted/search_sorted.h"

namespace rensa::cuda {

namespace {

struct SearchArgs {
  const char* sorted;
  const char* values;
  const long long* sorter;
  long long* positions;
  bool* found;  // where this is wanted, not the positions
  std::int64_t n, count;
  ElementType type;
  bool right, either_way, invert;
  int levels = 0;                       // of the tree
  std::int64_t sample = 0, stride = 1;  // elements in it, and the step from one to the next
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
  wait_for_previous();
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
    if (args.found) {
      args.found[i] = (low < args.n && element<V>(args, low) == value) != args.invert;
    } else {
      args.positions[i] = falls ? args.n - low : low;
    }
  }
}

// --- by a tree in shared memory ---

constexpr int kTreeBytes = 32 << 10;
constexpr int kValues = 4;  // that a thread seeks side by side

// Element i of the array that rises.
template <class T>
__device__ __forceinline__ KeyOf<T> key_at(const SearchArgs& args, bool falls, std::int64_t i) {
  return sort_key(reinterpret_cast<const T*>(args.sorted)[falls ? args.n - 1 - i : i], true);
}

// How many elements stand before `value`. Node k of the tree has the nodes 2 k and 2 k + 1 below
// it; what is missing to a full tree is the greatest key.
template <class T>
__device__ __forceinline__ std::int64_t rank_of(const SearchArgs& args, const KeyOf<T>* tree,
                                                bool falls, T value) {
  using Key = KeyOf<T>;
  Key key = sort_key(value, true);
  if (!args.right) {  // less is not greater than the key before
    if (key == 0) return 0;
    key = static_cast<Key>(key - 1);
  }
  unsigned node = 1;
  for (int level = 0; level < args.levels; ++level) node = 2 * node + (tree[node] <= key ? 1 : 0);
  std::int64_t before = node - (1u << args.levels);
  if (before > args.sample) before = args.sample;
  std::int64_t low = before * args.stride;
  std::int64_t high = before < args.sample ? low + args.stride - 1 : args.n;
  while (low < high) {
    std::int64_t middle = low + (high - low) / 2;
    if (key_at<T>(args, falls, middle) <= key) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <class T>
__global__ void __launch_bounds__(kBlock) search_tree(const __grid_constant__ SearchArgs args) {
  wait_for_previous();
  using Key = KeyOf<T>;
  __shared__ Key tree[kTreeBytes / sizeof(Key)];
  bool falls = args.either_way && key_at<T>(args, false, args.n - 1) < key_at<T>(args, false, 0);
  for (unsigned node = threadIdx.x; node < 1u << args.levels; node += kBlock) {
    if (node == 0) continue;
    int level = 31 - __clz(node), below = args.levels - 1 - level;
    std::int64_t at = ((2ll * (node - (1u << level)) + 1) << below) - 1;  // in the sample
    tree[node] = at < args.sample ? key_at<T>(args, falls, (at + 1) * args.stride - 1)
                                  : static_cast<Key>(~Key(0));
  }
  __syncthreads();
  const T* values = reinterpret_cast<const T*>(args.values);
  bool vector = reinterpret_cast<unsigned long long>(values) % (kValues * sizeof(T)) == 0;
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock * kValues;
  for (std::int64_t i = (blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x) * kValues;
       i < args.count; i += step) {
    std::int64_t left = args.count - i;
    Pack<T, kValues> value = load_pack<T, kValues>(values + i, left, vector, T());
    Pack<long long, kValues> position;
    Pack<bool, kValues> found;
#pragma unroll
    for (int v = 0; v < kValues; ++v) {
      T x = value.value[v];
      std::int64_t rank = rank_of(args, tree, falls, x);
      position.value[v] = falls ? args.n - rank : rank;
      if (!args.found) continue;
      bool same = x == x && rank < args.n && key_at<T>(args, falls, rank) == sort_key(x, true);
      found.value[v] = same != args.invert;
    }
    // What new_array gives is aligned.
    if (args.found) store_pack<bool, kValues>(args.found + i, found, left, true);
    else store_pack<long long, kValues>(args.positions + i, position, left, true);
  }
}

// Whether so many values are sought that it pays to build the tree; if so, it is planned.
bool plan_tree(SearchArgs* args, std::int64_t item_bytes) {
  if (args->sorter || args->n == 0 || args->count < 1 << 16) return false;
  std::int64_t most = kTreeBytes / std::max<std::int64_t>(item_bytes, 1);
  while (args->n / args->stride > most) args->stride *= 2;
  args->sample = std::min(args->n / args->stride, most - 1);
  while ((std::int64_t{1} << args->levels) - 1 < args->sample) ++args->levels;
  return true;
}

template <class T>
void launch_tree(const char* operation, const LaunchContext& context, const SearchArgs& args) {
  std::int64_t blocks = std::min(ceil_div(args.count, kBlock * kValues),
                                 std::int64_t{7} * kMultiprocessors);  // as many as find room
  launch_kernel(operation, context, search_tree<T>, blocks, kBlock, args);
}

/// False where the dtype has no such kernel.
bool search_by_tree(const char* operation, const LaunchContext& context, SearchArgs args,
                    Dtype dtype) {
  if (dtype_kind(dtype) == 'c' || !plan_tree(&args, itemsize(dtype))) return false;
  switch (dtype) {
#define RENSA_CASE(d, T) \
  case Dtype::d: launch_tree<T>(operation, context, args); return true;
    RENSA_NUMBER_TYPES(RENSA_CASE)
#undef RENSA_CASE
    default: return false;
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void SearchSorted::run_cuda(const cuda::LaunchContext& context) {
  using cuda::ElementType;
  ComputeType type = compute_type(sorted.view.dtype);
  cuda::SearchArgs args = {};
  args.sorted = sorted.view.data;
  args.values = values.view.data;
  if (sorter.present()) args.sorter = sorter.view.as<long long>();
  if (found.present()) args.found = found.view.as<bool>();
  else args.positions = positions.view.as<long long>();
  args.n = sorted.view.size();
  args.count = values.view.size();
  args.type = ElementType(sorted.view.dtype, type, false);
  args.right = right;
  args.either_way = either_way;
  args.invert = invert;
  if (args.count == 0) return;
  if (cuda::search_by_tree(name(), context, args, sorted.view.dtype)) return;
  std::int64_t blocks =
      std::min(ceil_div(args.count, cuda::kBlock), std::int64_t{64} * cuda::kMultiprocessors);
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

}  // namespace rensa::operations
