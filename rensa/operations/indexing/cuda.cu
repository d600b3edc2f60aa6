// Gathers and scatters by index arrays on a GPU. Scatters are ordered: the indices are sorted
// (stable) by the place they lead to, few of them in one kernel, so that the occurrences of one
// place lie side by side and in their order. Then the last of them writes, or they are combined
// (cuda_combine.cu).
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "rensa/device/cuda_runtime.h"
#include "rensa/operations/indexing/cuda_along.cuh"
#include "rensa/operations/indexing/cuda_rows.cuh"
#include "rensa/operations/indexing/cuda_scatter.cuh"

namespace rensa::cuda {

namespace {

using operations::IndexPlan;
using operations::kScatterRun;
using operations::ScatterMode;

// --- the order of a scatter ---

template <class Key, int K> struct KeyArgs {
  ListArgs<K> list;  // strides made so that the offset into the indexed array is the key
  Key* keys;         // null: only to report what is out of range
  unsigned* order;
  Key invalid;
  unsigned count;
};

template <class Key, int K>
__global__ void __launch_bounds__(kBlock) make_keys(const __grid_constant__ KeyArgs<Key, K> args) {
  wait_for_previous();
  unsigned i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= args.count) return;
  std::int64_t listed, key;
  bool valid = args.list.locate(i, true, &listed, &key);
  if (!args.keys) return;
  args.keys[i] = valid ? static_cast<Key>(key) : args.invalid;
  args.order[i] = i;
}

constexpr int kFewIndices = 512;

// What make_keys makes of few indices, already sorted: each one's rank is how many stand before it.
template <int K>
__global__ void __launch_bounds__(kBlock)
    sort_few_keys(const __grid_constant__ KeyArgs<unsigned, K> args) {
  __shared__ unsigned long long keys[kFewIndices];  // the numbers of the indices below them
  wait_for_previous();
  for (unsigned i = threadIdx.x; i < args.count; i += kBlock) {
    std::int64_t listed, key;
    bool valid = args.list.locate(i, blockIdx.x == 0, &listed, &key);
    unsigned place = valid ? static_cast<unsigned>(key) : args.invalid;
    keys[i] = static_cast<unsigned long long>(place) << 32 | i;
  }
  __syncthreads();
  unsigned mine = blockIdx.x * kBlock + threadIdx.x, rank = 0;
  if (mine >= args.count) return;
  unsigned long long key = keys[mine];
#pragma unroll 8
  for (unsigned i = 0; i < args.count; ++i) rank += keys[i] < key ? 1 : 0;
  args.keys[rank] = static_cast<unsigned>(key >> 32);
  args.order[rank] = mine;
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
SortedList sorted_list(const Key* keys, const unsigned* order, std::int64_t n,
                       std::int64_t places) {
  SortedList result;
  result.keys = keys;
  result.order = order;
  result.invalid = static_cast<unsigned long long>(places);
  result.count = static_cast<unsigned>(n);
  result.wide = sizeof(Key) == 8;
  return result;
}

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
  return sorted_list(sorted, sorted_order, n, places);
}

bool is_few(std::int64_t n, std::int64_t places) { return n <= kFewIndices && !is_wide(places); }

SortedList sort_few(const char* operation, const LaunchContext& context, const IndexPlan& plan,
                    std::int64_t places, const ScatterSpace& space) {
  std::int64_t n = plan.list.size();
  auto* keys = static_cast<unsigned*>(context.workspace);
  auto* order = reinterpret_cast<unsigned*>(static_cast<char*>(context.workspace) + space.keys);
  visit_index_count(plan.count, [&](auto k) {
    KeyArgs<unsigned, k> args = {ListArgs<k>(plan, operation, context), keys, order,
                                 static_cast<unsigned>(places), static_cast<unsigned>(n)};
    launch_kernel(operation, context, sort_few_keys<k>, static_cast<unsigned>(ceil_div(n, kBlock)),
                  kBlock, args);
  });
  return sorted_list(keys, order, n, places);
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
  wait_for_previous();
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
  args.by_key = numbers_places_by_index(plan);
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

// Columns of one launch over n indices: its blocks have 31 bits, the unit of work too.
std::int64_t most_columns(std::int64_t n) {
  std::int64_t blocks = ceil_div(n, kBlock / kCombineLanes);
  return std::min(kMaxCount,
                  std::max<std::int64_t>(1, kMaxList / blocks) * kCombineLanes * kCombineColumns);
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
    if (cuda::gathers_lines(part)) return cuda::gather_lines(name(), context, part);
    if (cuda::gathers_rows(part)) return cuda::gather_rows(name(), context, part);
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
  if (mode == ScatterMode::add && cuda::adds_lines(plan)) return 0;
  std::int64_t places = cuda::number_places(&plan);
  bool wide = cuda::is_wide(places);
  cuda::ScatterSpace space(n, wide, std::min(plan.listed.size(), cuda::most_columns(n)));
  if (cuda::is_few(n, places)) return static_cast<std::size_t>(space.cub());
  return static_cast<std::size_t>(space.cub()) +
         std::max(cuda::cub_bytes<unsigned>(n), wide ? cuda::cub_bytes<unsigned long long>(n) : 0);
}

void Scatter::run_cuda(const cuda::LaunchContext& context) {
  if (in.view.size() == 0) return;
  IndexPlan plan(by, out.view, in.view);
  std::int64_t columns = cuda::most_columns(std::min(plan.list.size(), cuda::kMaxList));
  bool by_line = mode == ScatterMode::add && cuda::adds_lines(plan);
  cuda::for_each_list_part(plan, cuda::kMaxList, [&](const IndexPlan& part) {
    if (cuda::is_unordered(*this)) return cuda::move<true>(name(), context, part);
    if (by_line) return cuda::add_lines(name(), context, part);
    IndexPlan numbered = part;
    std::int64_t places = cuda::number_places(&numbered);
    cuda::ScatterSpace space(part.list.size(), cuda::is_wide(places),
                             std::min(plan.listed.size(), columns));
    auto sort = cuda::is_few(part.list.size(), places) ? cuda::sort_few
                : cuda::is_wide(places)                ? cuda::sort_list<unsigned long long>
                                                       : cuda::sort_list<unsigned>;
    cuda::SortedList sorted = sort(name(), context, numbered, places, space);
    if (mode == ScatterMode::assign) return cuda::move<true>(name(), context, part, sorted);
    void* partials = static_cast<char*>(context.workspace) + 2 * space.keys + 2 * space.order;
    cuda::for_each_row_part(part, columns, [&](const IndexPlan& rows) {
      cuda::combine_part(name(), context, mode, rows, sorted, partials);
    });
  });
}

}  // namespace rensa::operations
