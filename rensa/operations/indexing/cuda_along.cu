// Gathers and sums on a GPU where each index moves one element along a line: its offset within the
// line is all that a thread works out.
#include "rensa/operations/indexing/cuda_along.cuh"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

using operations::IndexPlan;
using operations::kScatterRun;

// The lines of a plan: all axes of the list but the last.
struct Lines {
  Indexer<3> line;  // 0 indices, 1 listed, 2 indexed
  const char* indices;
  char* listed;
  char* indexed;
  std::int64_t step;  // of the indexed array, from one element of the line to the next
  std::int64_t extent, stride;
  IndexMode mode;
  unsigned length;
  ErrorSink errors;

  Lines(const char* operation, const LaunchContext& context, const IndexPlan& plan)
      : indices(plan.indices[0].data),
        listed(plan.listed.data),
        indexed(plan.indexed.data),
        step(plan.along.strides[-1]),
        extent(plan.extents[0]),
        stride(plan.strides[0]),
        mode(plan.mode),
        length(static_cast<unsigned>(plan.list.shape[-1])),
        errors(operation, context) {
    for (int axis = 0; axis < plan.list.ndim() - 1; ++axis) {
      line.push_back(plan.list.shape[axis], {plan.indices[0].strides[axis], plan.list.strides[axis],
                                             plan.along.strides[axis]});
    }
    if (line.ndim == 0) line.push_back(1, {0, 0, 0});
  }

  // The place that an index means; -1 where it is out of range, which is reported.
  __device__ __forceinline__ std::int64_t place(long long given) const {
    std::int64_t number = place_of(given, extent, mode);
    if (number < 0) errors.report(ReportedError::index, given, extent);
    return number;
  }
};

// --- gathers ---

struct GatherArgs {
  Lines lines;
  FastDiv vectors;  // of a line
  unsigned count;   // vectors in all
  bool vector;      // they are aligned
};

template <class Unit, class Index, int W, int kUnroll>
__global__ void __launch_bounds__(kBlock) gather_vectors(const __grid_constant__ GatherArgs args) {
  wait_for_previous();
  const Lines& lines = args.lines;
  unsigned first = blockIdx.x * (kBlock * kUnroll) + threadIdx.x;
  Pack<Index, W> index[kUnroll];
  const char* from[kUnroll];
  Unit* to[kUnroll];
  int left[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    unsigned at = first + u * kBlock;
    left[u] = 0;
    if (at >= args.count) continue;
    unsigned line = args.vectors.divide(at), begin = (at - line * args.vectors.divisor) * W;
    std::int64_t offset[3];
    lines.line.offsets(line, offset);
    left[u] = lines.length - begin < W ? static_cast<int>(lines.length - begin) : W;
    index[u] =
        load_pack<Index, W>(reinterpret_cast<const Index*>(lines.indices + offset[0]) + begin,
                            left[u], args.vector, Index(0));
    to[u] = reinterpret_cast<Unit*>(lines.listed + offset[1]) + begin;
    from[u] = lines.indexed + offset[2] + begin * lines.step;
  }
  Pack<Unit, W> value[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      value[u].value[j] = 0;
      if (j >= left[u]) continue;
      std::int64_t place = lines.place(index[u].value[j]);
      if (place < 0) continue;
      value[u].value[j] =
          *reinterpret_cast<const Unit*>(from[u] + j * lines.step + place * lines.stride);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) store_pack<Unit, W>(to[u], value[u], left[u], args.vector);
}

template <class Unit, class Index>
void launch_gather(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  // Of two loads of indices where the units are small: a store is to have 8 bytes at least.
  constexpr int kIndices = 16 / static_cast<int>(std::max(sizeof(Unit), sizeof(Index)));
  constexpr int W = kIndices * static_cast<int>(sizeof(Unit)) < 8 ? 2 * kIndices : kIndices;
  constexpr int kUnroll = 4 * kIndices / W;
  constexpr std::int64_t kMany = std::int64_t{8} * kMultiprocessors * 2048;
  std::int64_t n = plan.list.shape[-1], vectors = ceil_div(n, W);
  GatherArgs args = {Lines(operation, context, plan), FastDiv(vectors), 0, false};
  args.count = static_cast<unsigned>(plan.list.size() / n * vectors);
  ArrayView listed = plan.list;
  listed.data = plan.listed.data;
  args.vector = vectors_are_aligned(plan.indices[0], true, W * sizeof(Index)) &&
                vectors_are_aligned(listed, true, W * sizeof(Unit));
  bool many = args.count >= kMany;
  launch_kernel(operation, context,
                many ? gather_vectors<Unit, Index, W, kUnroll> : gather_vectors<Unit, Index, W, 1>,
                ceil_div(args.count, kBlock * (many ? kUnroll : 1)), kBlock, args);
}

template <class Index>
void launch_gather(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  switch (itemsize(plan.listed.dtype)) {
    case 1: return launch_gather<unsigned char, Index>(operation, context, plan);
    case 2: return launch_gather<unsigned short, Index>(operation, context, plan);
    case 4: return launch_gather<unsigned, Index>(operation, context, plan);
    default: return launch_gather<unsigned long long, Index>(operation, context, plan);
  }
}

// --- sums ---

// A block takes one line. Its indices are counted by place, then laid out place by place, in
// whatever order the threads come; each place brings its own into order before it adds.
constexpr std::int64_t kMostOnLine = 2048, kMostPlaces = 4096, kFewestLines = 32;
constexpr unsigned kShort = 32;  // occurrences that one thread puts in order

struct AddArgs {
  Lines lines;
  Dtype index_dtype;
  std::int64_t index_step, listed_step;
  unsigned places;
};

// The sum of a place's occurrences, joined in runs as cuda_combine.cu joins them.
template <class T> struct RunningPlace {
  using V = ComputeOf<T>;
  V sum, partial = V(0);
  unsigned count = 0;

  __device__ __forceinline__ explicit RunningPlace(T begin) : sum(convert<V>(begin)) {}
  __device__ __forceinline__ static V rounded(V value) { return convert<V>(convert<T>(value)); }
  __device__ __forceinline__ void add(T element) {
    constexpr unsigned kRun = static_cast<unsigned>(kScatterRun);
    V value = convert<V>(element);
    if (count < kRun) {
      sum = rounded(sum + value);
    } else if (count % kRun == 0) {
      if (count > kRun) sum = rounded(sum + partial);
      partial = value;
    } else {
      partial = rounded(partial + value);
    }
    ++count;
  }
  __device__ __forceinline__ T total() const {
    return convert<T>(count > static_cast<unsigned>(kScatterRun) ? sum + partial : sum);
  }
};

// Turns counts into where each place begins.
__device__ __forceinline__ void begin_places(unsigned* counts, unsigned places) {
  __shared__ unsigned warp_totals[kBlock / 32];
  unsigned each = (places + kBlock - 1) / kBlock, first = threadIdx.x * each;
  unsigned end = first + each < places ? first + each : places, total = 0;
  for (unsigned k = first; k < end; ++k) total += counts[k];
  unsigned upto = total;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    unsigned other = shuffle_up(upto, d);
    if (lane >= d) upto += other;
  }
  if (lane == 31) warp_totals[threadIdx.x / 32] = upto;
  __syncthreads();
  unsigned running = upto - total;
  for (int w = 0; w < static_cast<int>(threadIdx.x / 32); ++w) running += warp_totals[w];
  for (unsigned k = first; k < end; ++k) {
    unsigned count = counts[k];
    counts[k] = running;
    running += count;
  }
}

__device__ __forceinline__ void sort_few(unsigned short* order, unsigned count) {
  for (unsigned i = 1; i < count; ++i) {
    unsigned short moved = order[i];
    unsigned to = i;
    for (; to > 0 && order[to - 1] > moved; --to) order[to] = order[to - 1];
    order[to] = moved;
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) add_by_block(const __grid_constant__ AddArgs args) {
  wait_for_previous();
  constexpr int kAhead = 4;
  constexpr unsigned short kNone = 0xffff;
  extern __shared__ __align__(16) unsigned char memory[];
  const Lines& lines = args.lines;
  unsigned n = lines.length, places = args.places;
  T* values = reinterpret_cast<T*>(memory);
  unsigned* ends = reinterpret_cast<unsigned*>(memory + (n * sizeof(T) + 15) / 16 * 16);
  auto* keys = reinterpret_cast<unsigned short*>(ends + places);
  unsigned short* order = keys + n;
  std::int64_t offset[3];
  lines.line.offsets(blockIdx.x, offset);
  const char* indices = lines.indices + offset[0];
  const char* listed = lines.listed + offset[1];
  char* indexed = lines.indexed + offset[2];
  for (unsigned k = threadIdx.x; k < places; k += kBlock) ends[k] = 0;
  __syncthreads();
  for (unsigned first = threadIdx.x; first < n; first += kAhead * kBlock) {
    long long given[kAhead];
    T value[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      unsigned i = first + u * kBlock;
      if (i >= n) continue;
      given[u] = load_integer(indices + i * args.index_step, args.index_dtype);
      value[u] = *reinterpret_cast<const T*>(listed + i * args.listed_step);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      unsigned i = first + u * kBlock;
      if (i >= n) continue;
      std::int64_t place = lines.place(given[u]);
      values[i] = value[u];
      keys[i] = place < 0 ? kNone : static_cast<unsigned short>(place);
      if (place >= 0) atomicAdd(ends + place, 1u);
    }
  }
  __syncthreads();
  begin_places(ends, places);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n; i += kBlock) {
    unsigned short key = keys[i];
    if (key != kNone) order[atomicAdd(ends + key, 1u)] = static_cast<unsigned short>(i);
  }
  __syncthreads();
  unsigned lane = threadIdx.x % 32;
  for (unsigned base = threadIdx.x - lane; base < places; base += kBlock) {
    unsigned k = base + lane, begin = 0, count = 0;
    if (k < places) {
      begin = k > 0 ? ends[k - 1] : 0;
      count = ends[k] - begin;
    }
    if (count > 0 && count <= kShort) {
      T* place = reinterpret_cast<T*>(indexed + k * lines.stride);
      RunningPlace<T> running(*place);
      sort_few(order + begin, count);
      for (unsigned i = begin; i < begin + count; ++i) running.add(values[order[i]]);
      *place = running.total();
    }
    // Many are looked for on the line, in order; all lanes of the warp add them up.
    for (unsigned many = __ballot_sync(~0u, count > kShort); many != 0; many &= many - 1) {
      unsigned key = base + __ffs(static_cast<int>(many)) - 1;
      T* place = reinterpret_cast<T*>(indexed + key * lines.stride);
      RunningPlace<T> running(*place);
      for (unsigned at = 0; at < n; at += 32) {
        unsigned here = __ballot_sync(~0u, at + lane < n && keys[at + lane] == key);
        for (; here != 0; here &= here - 1) {
          running.add(values[at + __ffs(static_cast<int>(here)) - 1]);
        }
      }
      if (lane == 0) *place = running.total();
    }
  }
}

template <class T>
void launch_add(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  std::int64_t n = plan.list.shape[-1];
  AddArgs args = {Lines(operation, context, plan), plan.indices[0].dtype,
                  plan.indices[0].strides[-1], plan.list.strides[-1],
                  static_cast<unsigned>(plan.extents[0])};
  std::int64_t bytes = ceil_div(n * sizeof(T), 16) * 16 + plan.extents[0] * 4 + n * 4;
  launch_kernel(operation, context, add_by_block<T>, plan.list.size() / n, kBlock, args,
                static_cast<std::size_t>(bytes));
}

bool has_single_elements(const IndexPlan& plan) {
  return plan.count == 1 && plan.list.ndim() > 0 && plan.listed.size() == 1;
}

}  // namespace

bool gathers_lines(const IndexPlan& plan) {
  if (!has_single_elements(plan)) return false;
  const ArrayView& index = plan.indices[0];
  std::int64_t size = itemsize(plan.listed.dtype), index_size = itemsize(index.dtype);
  return size <= 8 && (index_size == 8 || index.dtype == Dtype::int32) &&
         plan.list.strides[-1] == size && index.strides[-1] == index_size;
}

void gather_lines(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  if (itemsize(plan.indices[0].dtype) == 8) launch_gather<long long>(operation, context, plan);
  else launch_gather<int>(operation, context, plan);
}

bool adds_lines(const IndexPlan& plan) {
  if (!has_single_elements(plan) || dtype_kind(plan.listed.dtype) != 'f') return false;
  int last = plan.list.ndim() - 1;
  std::int64_t n = plan.list.shape[last];
  for (int axis = 0; axis < last; ++axis) {
    if (plan.along.strides[axis] == 0) return false;  // several lines would lead to one
  }
  return plan.along.strides[last] == 0 && n <= kMostOnLine && plan.extents[0] <= kMostPlaces &&
         plan.list.size() / n >= kFewestLines;
}

void add_lines(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  switch (plan.listed.dtype) {
    case Dtype::float16: return launch_add<half_t>(operation, context, plan);
    case Dtype::bfloat16: return launch_add<bfloat16_t>(operation, context, plan);
    case Dtype::float32: return launch_add<float>(operation, context, plan);
    default: return launch_add<double>(operation, context, plan);
  }
}

}  // namespace rensa::cuda
