// Rows of a scatter that lead to one place, combined on a GPU: in runs of a fixed length, each by
// one thread per column or vector, and the runs of a place behind one another.
#include "rensa/operations/indexing/cuda_scatter.cuh"

namespace rensa::cuda {

namespace {

using operations::IndexPlan;
using operations::kScatterRun;
using operations::ScatterMode;

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
    column = tile * lanes * kCombineColumns + (threadIdx.x & (lanes - 1));
    step = lanes;
  }
};

// Whether the position is the kRun-th, or a multiple of that, after its place's first.
__device__ __forceinline__ bool begins_later_run(const SortedList& sorted, unsigned j,
                                                 unsigned long long key) {
  if (j < kRun || sorted.key(j - kRun) != key) return false;
  return (j - sorted.bound(key, 0, j - kRun, false)) % kRun == 0;
}

// One thread per position and kCombineColumns columns. Those at the first occurrence of a place,
// and at every kRun-th one after it, combine the kRun occurrences from theirs on; the others leave.
// The first run goes on from the place's own value, the others go to `partials`.
template <class V, class F>
__global__ void __launch_bounds__(kBlock) combine_runs(const __grid_constant__ CombineArgs args) {
  wait_for_previous();
  constexpr int kAhead = 4;  // rows whose loads are in flight together
  const SortedList& sorted = args.sorted;
  Work work(args);
  unsigned j = work.position;
  if (j >= sorted.count) return;
  unsigned long long key = sorted.key(j);
  bool first = j == 0 || sorted.key(j - 1) != key;
  if (key == sorted.invalid || (!first && !begins_later_run(sorted, j, key))) return;
  std::int64_t listed, indexed, row[kCombineColumns][2];
  args.list.locate(sorted.order[j], false, &listed, &indexed);
  V sum[kCombineColumns];
#pragma unroll
  for (int c = 0; c < kCombineColumns; ++c) {
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
    Raw<V> value[kAhead][kCombineColumns];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
#pragma unroll
      for (int c = 0; c < kCombineColumns; ++c) {
        if (r >= rows || work.column + c * work.step >= args.columns) continue;
        value[r][c] = load_raw<V>(args.listed + offset[r] + row[c][0], args.type.log2_size);
      }
    }
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
#pragma unroll
      for (int c = 0; c < kCombineColumns; ++c) {
        if (r >= rows || work.column + c * work.step >= args.columns) continue;
        V next = convert_raw(value[r][c], args.type);
        sum[c] = rounded(F{}(sum[c], next), args.type.dtype);
      }
    }
    if (rows < kAhead) break;
  }
#pragma unroll
  for (int c = 0; c < kCombineColumns; ++c) {
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

// The same of sums of whole rows of vectors of 16 bytes: one thread per position and kVectors
// vectors, `lanes` apart.
template <class T, int K> struct VectorRunsArgs {
  ListArgs<K> list;
  const char* listed;
  char* indexed;
  SortedList sorted;
  unsigned vectors, tiles;  // of a row
  int log2_lanes;
  bool by_key;  // a key is the number that its index gives
  ComputeOf<T>* partials;
};

// Loads the vectors of a row that a thread has; `left` vectors of the row are there.
template <class T, int kVectors>
__device__ __forceinline__ void load_row(Vector<T> (&to)[kVectors], const char* first,
                                         unsigned left, unsigned lanes) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v * lanes < left) to[v].load(reinterpret_cast<const T*>(first + v * lanes * 16));
  }
}

template <class T, int K, int kVectors>
__global__ void __launch_bounds__(kBlock)
    add_vector_runs(const __grid_constant__ VectorRunsArgs<T, K> args) {
  using V = ComputeOf<T>;
  constexpr int kAhead = kVectors > 1 ? 2 : 4, W = Vector<T>::W;
  const SortedList& sorted = args.sorted;
  wait_for_previous();
  unsigned lanes = 1u << args.log2_lanes, block = blockIdx.x / args.tiles;
  unsigned j = block * (kBlock >> args.log2_lanes) + (threadIdx.x >> args.log2_lanes);
  unsigned vector =
      (blockIdx.x - block * args.tiles) * lanes * kVectors + (threadIdx.x & (lanes - 1));
  if (j >= sorted.count || vector >= args.vectors) return;
  unsigned long long key = sorted.key(j);
  bool first = j == 0 || sorted.key(j - 1) != key;
  if (key == sorted.invalid || (!first && !begins_later_run(sorted, j, key))) return;
  std::int64_t listed, indexed, in_row = vector * std::int64_t{16};
  unsigned left = args.vectors - vector;
  if (args.by_key) {  // the index itself lies somewhere far off
    listed = args.list.listed_offset(sorted.order[j]);
    indexed = static_cast<std::int64_t>(key) * args.list.strides[0];
  } else {
    args.list.locate(sorted.order[j], false, &listed, &indexed);
  }
  char* place = args.indexed + indexed + in_row;
  Vector<T> begin[kVectors];
  load_row(begin, first ? place : args.listed + listed + in_row, left, lanes);
  unsigned end = j + kRun < sorted.count ? j + kRun : sorted.count;
  V sum[kVectors][W];
  bool is_begun = false;
  auto start = [&] {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int w = 0; w < W; ++w) sum[v][w] = begin[v].value(w);
    }
    is_begun = true;
  };
  for (unsigned at = first ? j : j + 1; at < end; at += kAhead) {
    Vector<T> row[kAhead][kVectors];
    int rows = 0;
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
      if (at + r >= end || sorted.key(at + r) != key) continue;
      std::int64_t offset = args.list.listed_offset(sorted.order[at + r]);
      load_row(row[r], args.listed + offset + in_row, left, lanes);
      rows = r + 1;
    }
    if (!is_begun) start();
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int w = 0; w < W; ++w) {
#pragma unroll
        for (int r = 0; r < kAhead; ++r) {
          if (r < rows) sum[v][w] = convert<V>(convert<T>(sum[v][w] + row[r][v].value(w)));
        }
      }
    }
    if (rows < kAhead) break;
  }
  if (!is_begun) start();  // the last occurrence begins a run
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v * lanes >= left) continue;
    if (!first) {
      std::int64_t of_run = static_cast<std::int64_t>(j / kRun) * args.vectors;
      V* partials = args.partials + (of_run + vector + v * lanes) * W;
#pragma unroll
      for (int w = 0; w < W; ++w) partials[w] = sum[v][w];
      continue;
    }
    Pack<T, W> out;
#pragma unroll
    for (int w = 0; w < W; ++w) out.value[w] = convert<T>(sum[v][w]);
    *reinterpret_cast<Pack<T, W>*>(place + v * lanes * 16) = out;
  }
}

// Brings the later runs of a place to its first one. They begin kRun apart, so at most one begins
// in [s * kRun, (s + 1) * kRun), and then the place has position s * kRun as well; the thread of
// the s where the second run begins does them all.
template <class V, class F>
__global__ void __launch_bounds__(kBlock) join_runs(const __grid_constant__ CombineArgs args) {
  wait_for_previous();
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
  for (int c = 0; c < kCombineColumns; ++c) {
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
void launch_join(const char* operation, const LaunchContext& context, const CombineArgs& args) {
  std::int64_t count = args.sorted.count, slots = kBlock >> args.log2_lanes;
  if (count <= kScatterRun) return;
  launch_kernel(operation, context, join_runs<V, F>,
                ceil_div(count / kScatterRun + 1, slots) * args.tiles, kBlock, args);
}

template <class V, class F>
void launch_combine(const char* operation, const LaunchContext& context, CombineArgs args) {
  std::int64_t slots = kBlock >> args.log2_lanes;
  launch_kernel(operation, context, combine_runs<V, F>,
                ceil_div(args.sorted.count, slots) * args.tiles, kBlock, args);
  launch_join<V, F>(operation, context, args);
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

// Whether rows are vectors of 16 bytes that follow one another, on both sides.
bool has_vector_rows(const IndexPlan& plan, const ArrayView& listed, const ArrayView& indexed) {
  return listed.ndim() == 1 && unit_of(plan, listed, indexed) == 16;
}

template <class T, int K, int kVectors>
void launch_vector_runs(const char* operation, const LaunchContext& context,
                        VectorRunsArgs<T, K> args) {
  while (args.log2_lanes < 5 && 1u << args.log2_lanes < args.vectors) ++args.log2_lanes;
  args.tiles = static_cast<unsigned>(ceil_div(args.vectors, kVectors << args.log2_lanes));
  std::int64_t blocks = ceil_div(args.sorted.count, kBlock >> args.log2_lanes);
  launch_kernel(operation, context, add_vector_runs<T, K, kVectors>,
                static_cast<unsigned>(blocks * args.tiles), kBlock, args);
}

template <class T>
void add_vectors(const char* operation, const LaunchContext& context, const IndexPlan& plan,
                 const CombineArgs& of) {
  // Of long rows a thread takes several vectors, so that what it looks up first is worth it.
  constexpr unsigned kEach = 4, kLong = kEach * 32;
  constexpr std::int64_t kMany = std::int64_t{4} * kMultiprocessors * 2048;
  visit_index_count(plan.count, [&](auto k) {
    VectorRunsArgs<T, k> args = {ListArgs<k>(plan, operation, context),
                                 of.listed,
                                 of.indexed,
                                 of.sorted,
                                 of.columns / Vector<T>::W,
                                 0,
                                 0,
                                 numbers_places_by_index(plan),
                                 static_cast<ComputeOf<T>*>(of.partials)};
    if constexpr (k == 1) {
      if (args.vectors >= kLong && std::int64_t{args.vectors} * of.sorted.count >= kMany) {
        return launch_vector_runs<T, k, kEach>(operation, context, args);
      }
    }
    launch_vector_runs<T, k, 1>(operation, context, args);
  });
  launch_join<ComputeOf<T>, Sum>(operation, context, of);
}

}  // namespace

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
  while ((1 << args.log2_lanes) < kCombineLanes &&
         (kCombineColumns << args.log2_lanes) < listed.size()) {
    ++args.log2_lanes;
  }
  args.tiles = static_cast<unsigned>(ceil_div(listed.size(), kCombineColumns << args.log2_lanes));
  if (mode == ScatterMode::add && has_vector_rows(plan, listed, indexed)) {
    switch (indexed.dtype) {
      case Dtype::float16: return add_vectors<half_t>(operation, context, plan, args);
      case Dtype::bfloat16: return add_vectors<bfloat16_t>(operation, context, plan, args);
      case Dtype::float32: return add_vectors<float>(operation, context, plan, args);
      default: break;
    }
  }
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

}  // namespace rensa::cuda
