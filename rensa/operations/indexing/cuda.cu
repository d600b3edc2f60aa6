// Gathers and scatters by index arrays on a GPU. Scatters are ordered: the indices are sorted
// (stable) by the place they lead to, so that the occurrences of one place lie side by side and in
// their order. Then the last of them writes, or one thread per column combines them.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "rensa/device/cuda_runtime.h"
#include "rensa/operations/indexing/cuda_list.cuh"

namespace rensa::cuda {

namespace {

using operations::IndexPlan;
using operations::kScatterRun;
using operations::ScatterMode;

// --- the order of a scatter ---

// The indices of a list by the place they lead to: keys ascending, and which index each belongs to.
struct SortedList {
  const void* keys = nullptr;  // unsigned, or unsigned long long where `wide`
  const unsigned* order = nullptr;
  unsigned long long invalid = 0;  // the key of indices out of range, greater than all others
  unsigned count = 0;
  bool wide = false;

#if defined(__CUDACC__)
  __device__ __forceinline__ unsigned long long key(unsigned j) const {
    return wide ? static_cast<const unsigned long long*>(keys)[j]
                : static_cast<const unsigned*>(keys)[j];
  }
  // The first position of [begin, end) whose key is not below (`above`: above) `key`, or end.
  __device__ unsigned bound(unsigned long long key, unsigned begin, unsigned end,
                            bool above) const {
    while (begin < end) {
      unsigned middle = begin + (end - begin) / 2;
      unsigned long long at = this->key(middle);
      if (at < key || (above && at == key)) begin = middle + 1;
      else end = middle;
    }
    return begin;
  }
#endif
};

template <class Key, int K> struct KeyArgs {
  ListArgs<K> list;  // strides made so that the offset into the indexed array is the key
  Key* keys;         // null: only to report what is out of range
  unsigned* order;
  Key invalid;
  unsigned count;
};

template <class Key, int K>
__global__ void __launch_bounds__(kBlock) make_keys(const __grid_constant__ KeyArgs<Key, K> args) {
  unsigned i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= args.count) return;
  std::int64_t listed, key;
  bool valid = args.list.locate(i, true, &listed, &key);
  if (!args.keys) return;
  args.keys[i] = valid ? static_cast<Key>(key) : args.invalid;
  args.order[i] = i;
}

// The number of places that the list can lead to; its strides become those of keys.
std::int64_t number_places(IndexPlan* plan) {
  std::int64_t places = 1;
  for (int k = plan->count - 1; k >= 0; --k) {
    plan->strides[k] = places;
    places *= plan->extents[k];
  }
  for (int axis = plan->along.ndim() - 1; axis >= 0; --axis) {
    if (plan->along.strides[axis] == 0) continue;
    plan->along.strides[axis] = places;
    places *= plan->along.shape[axis];
  }
  return places;
}

constexpr bool is_wide(std::int64_t places) { return places >= 0xffffffffll; }

template <class Key> std::size_t cub_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  Key* keys = nullptr;
  unsigned* order = nullptr;
  RENSA_CUDA_CHECK("scatter", cub::DeviceRadixSort::SortPairs(
                                  nullptr, bytes, const_cast<const Key*>(keys), keys,
                                  const_cast<const unsigned*>(order), order, static_cast<int>(n)));
  return bytes;
}

std::int64_t aligned(std::int64_t bytes) { return ceil_div(bytes, 256) * 256; }

// The workspace of a scatter by n indices.
struct ScatterSpace {
  std::int64_t keys, order;   // bytes of one such array: two of each
  std::int64_t partials = 0;  // bytes
  std::int64_t cub() const { return 2 * keys + 2 * order + partials; }

  ScatterSpace(std::int64_t n, bool wide, std::int64_t columns)
      : keys(aligned(n * (wide ? 8 : 4))), order(aligned(n * 4)) {
    if (n > kScatterRun) partials = aligned((n / kScatterRun + 1) * columns * kPartialBytes);
  }
};

template <class Key>
SortedList sort_list(const char* operation, const LaunchContext& context, const IndexPlan& plan,
                     std::int64_t places, const ScatterSpace& space) {
  std::int64_t n = plan.list.size();
  char* workspace = static_cast<char*>(context.workspace);
  auto* keys = reinterpret_cast<Key*>(workspace);
  auto* sorted = reinterpret_cast<Key*>(workspace + space.keys);
  auto* order = reinterpret_cast<unsigned*>(workspace + 2 * space.keys);
  auto* sorted_order = reinterpret_cast<unsigned*>(workspace + 2 * space.keys + space.order);
  visit_index_count(plan.count, [&](auto k) {
    KeyArgs<Key, k> args = {ListArgs<k>(plan, operation, context), keys, order,
                            static_cast<Key>(places), static_cast<unsigned>(n)};
    launch_kernel(operation, context, make_keys<Key, k>, ceil_div(n, kBlock), kBlock, args);
  });
  std::size_t bytes = context.workspace_bytes - static_cast<std::size_t>(space.cub());
  RENSA_CUDA_CHECK(operation,
                   cub::DeviceRadixSort::SortPairs(
                       workspace + space.cub(), bytes, const_cast<const Key*>(keys), sorted,
                       const_cast<const unsigned*>(order), sorted_order, static_cast<int>(n), 0,
                       static_cast<int>(std::bit_width(static_cast<unsigned long long>(places))),
                       static_cast<cudaStream_t>(context.handle)));
  SortedList result;
  result.keys = sorted;
  result.order = sorted_order;
  result.invalid = static_cast<unsigned long long>(places);
  result.count = static_cast<unsigned>(n);
  result.wide = sizeof(Key) == 8;
  return result;
}

// --- moving rows ---

// Rows move in units of up to 16 bytes.
template <int K> struct MoveArgs {
  ListArgs<K> list;
  char* listed;
  char* indexed;
  Indexer<2> row;  // over the units of a row: 0 listed, 1 indexed
  FastDiv row_units;
  unsigned count;     // units in all
  SortedList sorted;  // of an ordered scatter
  bool by_key;        // a sorted key is the number that its index gives
};

template <class Unit, int K, bool kPut, int kUnroll>
__global__ void __launch_bounds__(kBlock) move_rows(const __grid_constant__ MoveArgs<K> args) {
  unsigned begin = blockIdx.x * (kBlock * kUnroll) + threadIdx.x;
  const Unit* source[kUnroll];
  Unit* target[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    source[u] = nullptr;
    target[u] = nullptr;
    unsigned at = begin + u * kBlock;
    if (at >= args.count) continue;
    unsigned i = args.row_units.divide(at), unit = at - i * args.row_units.divisor;
    std::int64_t listed, indexed, row[2];
    bool valid = true, located = false;
    if (kPut && args.sorted.order) {
      unsigned long long key = args.sorted.key(i);
      if (i + 1 < args.sorted.count && args.sorted.key(i + 1) == key) continue;
      i = args.sorted.order[i];
      if (args.by_key) {  // the index itself lies somewhere far off
        located = true;
        valid = key != args.sorted.invalid;
        listed = args.list.listed_offset(i);
        indexed = static_cast<std::int64_t>(key) * args.list.strides[0];
      }
    }
    if (!located) valid = args.list.locate(i, unit == 0, &listed, &indexed);
    args.row.offsets(unit, row);
    char* in_list = args.listed + listed + row[0];
    char* in_array = args.indexed + indexed + row[1];
    if (valid) source[u] = reinterpret_cast<const Unit*>(kPut ? in_list : in_array);
    if (valid || !kPut) target[u] = reinterpret_cast<Unit*>(kPut ? in_array : in_list);
  }
  Unit value[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) value[u] = source[u] ? *source[u] : Unit{};
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (target[u]) *target[u] = value[u];
  }
}

// The largest unit that pointers and strides allow.
int unit_of(const IndexPlan& plan, const ArrayView& listed, const ArrayView& indexed) {
  int size = static_cast<int>(itemsize(listed.dtype)), last = listed.ndim() - 1;
  if (listed.strides[last] != size || indexed.strides[last] != size) return size;
  auto bits = reinterpret_cast<std::uintptr_t>(listed.data) |
              reinterpret_cast<std::uintptr_t>(indexed.data) |
              static_cast<std::uintptr_t>(listed.shape[last] * size);
  auto add = [&](std::int64_t stride) { bits |= static_cast<std::uintptr_t>(stride); };
  for (int axis = 0; axis < last; ++axis) add(listed.strides[axis] | indexed.strides[axis]);
  for (std::int64_t stride : plan.list.strides) add(stride);
  for (std::int64_t stride : plan.along.strides) add(stride);
  for (int k = 0; k < plan.count; ++k) add(plan.strides[k]);
  int unit = 16;
  while (bits % static_cast<unsigned>(unit) != 0) unit /= 2;
  return unit;
}

// From here on a launch has enough units for several per thread.
constexpr std::int64_t kManyUnits = std::int64_t{8} * kMultiprocessors * 2048;

template <class Unit, int K, bool kPut>
void launch_units(const char* operation, const LaunchContext& context, const MoveArgs<K>& args) {
  if constexpr (!kPut && K == 1) {
    if (args.count >= kManyUnits) {
      return launch_kernel(operation, context, move_rows<Unit, K, kPut, 4>,
                           ceil_div(args.count, 4 * kBlock), kBlock, args);
    }
  }
  launch_kernel(operation, context, move_rows<Unit, K, kPut, 1>, ceil_div(args.count, kBlock),
                kBlock, args);
}

template <bool kPut, int K>
void launch_move(const char* operation, const LaunchContext& context, const IndexPlan& plan,
                 const SortedList& sorted) {
  ArrayView listed = plan.listed, indexed = plan.indexed;
  ArrayView* rows[] = {&listed, &indexed};
  normalize_axes(rows, 2);
  keep_an_axis(rows, 2);
  int size = static_cast<int>(itemsize(listed.dtype)), unit = unit_of(plan, listed, indexed);
  MoveArgs<K> args = {
      ListArgs<K>(plan, operation, context), listed.data, indexed.data, {}, {}, 0, sorted, false};
  // make_keys numbered the places by the index alone, and has reported what is out of range.
  args.by_key = plan.count == 1 && std::all_of(plan.along.strides.begin(), plan.along.strides.end(),
                                               [](std::int64_t s) { return s == 0; });
  std::int64_t units = 1;
  for (int axis = 0; axis < listed.ndim(); ++axis) {
    bool run = axis == listed.ndim() - 1 && unit != size;
    std::int64_t extent = run ? listed.shape[axis] * size / unit : listed.shape[axis];
    args.row.push_back(extent,
                       {run ? unit : listed.strides[axis], run ? unit : indexed.strides[axis]});
    units *= extent;
  }
  args.row_units = FastDiv(units);
  args.count = static_cast<unsigned>(plan.list.size() * units);
  switch (unit) {
    case 1: return launch_units<unsigned char, K, kPut>(operation, context, args);
    case 2: return launch_units<unsigned short, K, kPut>(operation, context, args);
    case 4: return launch_units<unsigned, K, kPut>(operation, context, args);
    case 8: return launch_units<unsigned long long, K, kPut>(operation, context, args);
    default: return launch_units<uint4, K, kPut>(operation, context, args);
  }
}

template <bool kPut>
void move(const char* operation, const LaunchContext& context, const IndexPlan& plan,
          const SortedList& sorted = {}) {
  std::int64_t most = std::max<std::int64_t>(1, kMaxCount / plan.list.size());
  for_each_row_part(plan, most, [&](const IndexPlan& part) {
    visit_index_count(plan.count,
                      [&](auto k) { launch_move<kPut, k>(operation, context, part, sorted); });
  });
}

// --- combining rows ---

constexpr int kColumns = 4;    // of one thread
constexpr int kMaxLanes = 64;  // threads side by side in a row
constexpr unsigned kRun = static_cast<unsigned>(kScatterRun);

struct CombineArgs {
  ListArgs<kMaxNdim> list;
  const char* listed;
  char* indexed;
  Indexer<2> row;  // over the elements of a row: 0 listed, 1 indexed
  ElementType type;
  SortedList sorted;
  unsigned columns, tiles;
  int log2_lanes;
  void* partials;  // of the second and later runs of a place: [its position / kRun][column]
};

// The value as the array's dtype holds it.
template <class V> __device__ __forceinline__ V rounded(V value, Dtype dtype) {
  if constexpr (std::is_same_v<V, float>) {
    if (dtype == Dtype::float16) return static_cast<float>(half_t(value));
    if (dtype == Dtype::bfloat16) return static_cast<float>(bfloat16_t(value));
  }
  return value;
}

// Which columns a thread works on, and at which position of the sorted list.
struct Work {
  unsigned position, column, step;  // columns column, column + step, ...

  __device__ __forceinline__ explicit Work(const CombineArgs& args) {
    unsigned lanes = 1u << args.log2_lanes;
    unsigned block = blockIdx.x / args.tiles, tile = blockIdx.x - block * args.tiles;
    position = block * (kBlock >> args.log2_lanes) + (threadIdx.x >> args.log2_lanes);
    column = tile * lanes * kColumns + (threadIdx.x & (lanes - 1));
    step = lanes;
  }
};

// Whether the position is the kRun-th, or a multiple of that, after its place's first.
__device__ __forceinline__ bool begins_later_run(const SortedList& sorted, unsigned j,
                                                 unsigned long long key) {
  if (j < kRun || sorted.key(j - kRun) != key) return false;
  return (j - sorted.bound(key, 0, j - kRun, false)) % kRun == 0;
}

// One thread per position and kColumns columns. Those at the first occurrence of a place, and at
// every kRun-th one after it, combine the kRun occurrences from theirs on; the others leave. The
// first run goes on from the place's own value, the others go to `partials`.
template <class V, class F>
__global__ void __launch_bounds__(kBlock) combine_runs(const __grid_constant__ CombineArgs args) {
  constexpr int kAhead = 4;  // rows whose loads are in flight together
  const SortedList& sorted = args.sorted;
  Work work(args);
  unsigned j = work.position;
  if (j >= sorted.count) return;
  unsigned long long key = sorted.key(j);
  bool first = j == 0 || sorted.key(j - 1) != key;
  if (key == sorted.invalid || (!first && !begins_later_run(sorted, j, key))) return;
  std::int64_t listed, indexed, row[kColumns][2];
  args.list.locate(sorted.order[j], false, &listed, &indexed);
  V sum[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    unsigned column = work.column + c * work.step;
    if (column >= args.columns) continue;
    args.row.offsets(column, row[c]);
    sum[c] = load_any<V>(
        first ? args.indexed + indexed + row[c][1] : args.listed + listed + row[c][0], args.type);
  }
  unsigned end = j + kRun < sorted.count ? j + kRun : sorted.count;
  for (unsigned at = first ? j : j + 1; at < end; at += kAhead) {
    std::int64_t offset[kAhead];
    int rows = 0;
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
      if (at + r >= end || sorted.key(at + r) != key) continue;
      offset[r] = args.list.listed_offset(sorted.order[at + r]);
      rows = r + 1;
    }
    Raw<V> value[kAhead][kColumns];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (r >= rows || work.column + c * work.step >= args.columns) continue;
        value[r][c] = load_raw<V>(args.listed + offset[r] + row[c][0], args.type.log2_size);
      }
    }
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (r >= rows || work.column + c * work.step >= args.columns) continue;
        V next = convert_raw(value[r][c], args.type);
        sum[c] = rounded(F{}(sum[c], next), args.type.dtype);
      }
    }
    if (rows < kAhead) break;
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    unsigned column = work.column + c * work.step;
    if (column >= args.columns) continue;
    if (first) {
      store_any<V>(args.indexed + indexed + row[c][1], args.type.dtype, sum[c]);
    } else {
      static_cast<V*>(args.partials)[static_cast<std::int64_t>(j / kRun) * args.columns + column] =
          sum[c];
    }
  }
}

// Brings the later runs of a place to its first one. They begin kRun apart, so at most one begins
// in [s * kRun, (s + 1) * kRun), and then the place has position s * kRun as well; the thread of
// the s where the second run begins does them all.
template <class V, class F>
__global__ void __launch_bounds__(kBlock) join_runs(const __grid_constant__ CombineArgs args) {
  const SortedList& sorted = args.sorted;
  Work work(args);
  if (work.position > sorted.count / kRun) return;
  unsigned begin = work.position * kRun;
  if (begin >= sorted.count) return;
  unsigned long long key = sorted.key(begin);
  if (key == sorted.invalid) return;
  unsigned second = sorted.bound(key, 0, begin, false) + kRun;
  if (second < begin || second >= begin + kRun) return;
  if (second >= sorted.count || sorted.key(second) != key) return;
  unsigned end = sorted.bound(key, second, sorted.count, true);
  std::int64_t listed, indexed;
  args.list.locate(sorted.order[second], false, &listed, &indexed);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    unsigned column = work.column + c * work.step;
    if (column >= args.columns) continue;
    std::int64_t row[2];
    args.row.offsets(column, row);
    char* target = args.indexed + indexed + row[1];
    V sum = load_any<V>(target, args.type);
    const V* partials = static_cast<const V*>(args.partials) + column;
    unsigned last = (end - 1 - second) / kRun + second / kRun;
#pragma unroll 8
    for (unsigned run = second / kRun; run <= last; ++run) {
      sum = rounded(F{}(sum, partials[static_cast<std::int64_t>(run) * args.columns]),
                    args.type.dtype);
    }
    store_any<V>(target, args.type.dtype, sum);
  }
}

template <class V, class F>
void launch_combine(const char* operation, const LaunchContext& context, CombineArgs args) {
  std::int64_t lanes = std::int64_t{1} << args.log2_lanes, slots = kBlock / lanes;
  std::int64_t count = args.sorted.count;
  launch_kernel(operation, context, combine_runs<V, F>, ceil_div(count, slots) * args.tiles, kBlock,
                args);
  if (count <= kScatterRun) return;
  launch_kernel(operation, context, join_runs<V, F>,
                ceil_div(count / kScatterRun + 1, slots) * args.tiles, kBlock, args);
}

struct Sum {
  template <class V> __device__ __forceinline__ V operator()(V a, V b) const { return a + b; }
};
struct Greater {
  template <class V> __device__ __forceinline__ V operator()(V a, V b) const {
    return m::maximum(a, b);
  }
};
struct Less {
  template <class V> __device__ __forceinline__ V operator()(V a, V b) const {
    return m::minimum(a, b);
  }
};

template <class V>
void launch_combine(const char* operation, const LaunchContext& context, ScatterMode mode,
                    const CombineArgs& args) {
  if (mode == ScatterMode::add) return launch_combine<V, Sum>(operation, context, args);
  if constexpr (!m::is_complex<V>::value) {
    if (mode == ScatterMode::max) return launch_combine<V, Greater>(operation, context, args);
    return launch_combine<V, Less>(operation, context, args);
  }
}

void combine_part(const char* operation, const LaunchContext& context, ScatterMode mode,
                  const IndexPlan& plan, const SortedList& sorted, void* partials) {
  ArrayView listed = plan.listed, indexed = plan.indexed;
  ArrayView* rows[] = {&indexed, &listed};
  normalize_axes(rows, 2);
  keep_an_axis(rows, 2);
  ComputeType type = compute_type(indexed.dtype);
  CombineArgs args = {ListArgs<kMaxNdim>(plan, operation, context),
                      listed.data,
                      indexed.data,
                      {},
                      ElementType(indexed.dtype, type, false),
                      sorted,
                      static_cast<unsigned>(listed.size()),
                      0,
                      0,
                      partials};
  for (int axis = 0; axis < listed.ndim(); ++axis) {
    args.row.push_back(listed.shape[axis], {listed.strides[axis], indexed.strides[axis]});
  }
  while ((1 << args.log2_lanes) < kMaxLanes && (kColumns << args.log2_lanes) < listed.size()) {
    ++args.log2_lanes;
  }
  args.tiles = static_cast<unsigned>(ceil_div(listed.size(), kColumns << args.log2_lanes));
  switch (type) {
    case ComputeType::i64: return launch_combine<long long>(operation, context, mode, args);
    case ComputeType::u64:
      return launch_combine<unsigned long long>(operation, context, mode, args);
    case ComputeType::f32: return launch_combine<float>(operation, context, mode, args);
    case ComputeType::f64: return launch_combine<double>(operation, context, mode, args);
    case ComputeType::c64: return launch_combine<complex_t<float>>(operation, context, mode, args);
    case ComputeType::c128:
      return launch_combine<complex_t<double>>(operation, context, mode, args);
  }
}

// Columns of one launch over n indices: its blocks have 31 bits, the unit of work too.
std::int64_t most_columns(std::int64_t n) {
  std::int64_t blocks = ceil_div(n, kBlock / kMaxLanes);
  return std::min(kMaxCount, std::max<std::int64_t>(1, kMaxList / blocks) * kMaxLanes * kColumns);
}

// Whether writing in any order will do.
bool is_unordered(const operations::Scatter& op) {
  return op.mode == ScatterMode::assign && (op.distinct || op.by.list_shape.total() == 1);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Gather::run_cuda(const cuda::LaunchContext& context) {
  IndexPlan plan(by, in.view, out.view);
  if (plan.list.size() == 0) return;
  cuda::for_each_list_part(plan, cuda::kMaxList, [&](const IndexPlan& part) {
    if (part.listed.size() > 0) return cuda::move<false>(name(), context, part);
    std::int64_t n = part.list.size();  // nothing to move, but the indices are looked at
    cuda::KeyArgs<unsigned, kMaxNdim> args = {cuda::ListArgs<kMaxNdim>(part, name(), context),
                                              nullptr, nullptr, 0, static_cast<unsigned>(n)};
    cuda::launch_kernel(name(), context, cuda::make_keys<unsigned, kMaxNdim>,
                        ceil_div(n, cuda::kBlock), cuda::kBlock, args);
  });
}

std::size_t Scatter::workspace_bytes() const {
  std::int64_t n = std::min(by.list_shape.total(), cuda::kMaxList);
  if (in.view.size() == 0 || cuda::is_unordered(*this)) return 0;
  cuda::runtime::set_device(out.view.device);
  IndexPlan plan(by, out.view, in.view);
  bool wide = cuda::is_wide(cuda::number_places(&plan));
  cuda::ScatterSpace space(n, wide, std::min(plan.listed.size(), cuda::most_columns(n)));
  return static_cast<std::size_t>(space.cub()) +
         std::max(cuda::cub_bytes<unsigned>(n), wide ? cuda::cub_bytes<unsigned long long>(n) : 0);
}

void Scatter::run_cuda(const cuda::LaunchContext& context) {
  if (in.view.size() == 0) return;
  IndexPlan plan(by, out.view, in.view);
  std::int64_t columns = cuda::most_columns(std::min(plan.list.size(), cuda::kMaxList));
  cuda::for_each_list_part(plan, cuda::kMaxList, [&](const IndexPlan& part) {
    if (cuda::is_unordered(*this)) return cuda::move<true>(name(), context, part);
    IndexPlan numbered = part;
    std::int64_t places = cuda::number_places(&numbered);
    cuda::ScatterSpace space(part.list.size(), cuda::is_wide(places),
                             std::min(plan.listed.size(), columns));
    auto sort =
        cuda::is_wide(places) ? cuda::sort_list<unsigned long long> : cuda::sort_list<unsigned>;
    cuda::SortedList sorted = sort(name(), context, numbered, places, space);
    if (mode == ScatterMode::assign) return cuda::move<true>(name(), context, part, sorted);
    void* partials = static_cast<char*>(context.workspace) + 2 * space.keys + 2 * space.order;
    cuda::for_each_row_part(part, columns, [&](const IndexPlan& rows) {
      cuda::combine_part(name(), context, mode, rows, sorted, partials);
    });
  });
}

}  // namespace rensa::operations
