// Pooling on a GPU: a thread has one window, or one element, of some neighbours.
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/functions/operations/pooling/pooling.h"

namespace rensa::cuda {

namespace {

using operations::Pooling;
using operations::PoolingShape;
using operations::PoolingSpread;

/// A WindowAxis that multiplies where it would divide.
struct QuickAxis : WindowAxis {
  FastDiv by_stride, by_in, by_out;
  bool quick = false;  // numerators have 31 bits

  QuickAxis() = default;
  explicit QuickAxis(const WindowAxis& axis)
      : WindowAxis(axis),
        by_stride(std::max(stride, 1)),
        by_in(std::max(in, 1)),  // an axis without elements has windows, too: in its padding
        by_out(std::max(out, 1)) {
    long long most = stride ? static_cast<long long>(in) + pad + stride : (in + 1ll) * (out + 1ll);
    quick = most < 1ll << 31;
  }
  __device__ __forceinline__ static int divide(const FastDiv& by, int n) {
    return static_cast<int>(by.divide(static_cast<unsigned>(n)));
  }
  __device__ __forceinline__ int first(int o) const {
    return stride || !quick ? WindowAxis::first(o) : divide(by_out, o * in);
  }
  __device__ __forceinline__ int begin(int o) const { return max(first(o), 0); }
  __device__ __forceinline__ int end(int o) const {
    return stride || !quick ? WindowAxis::end(o) : divide(by_out, (o + 1) * in + out - 1);
  }
  __device__ __forceinline__ int from(int i) const {
    if (!quick) return WindowAxis::from(i);
    if (!stride) return divide(by_in, i * out);
    return divide(by_stride, max(i + pad - size + stride, 0));
  }
  __device__ __forceinline__ int to(int i) const {
    if (!quick) return WindowAxis::to(i);
    if (!stride) return divide(by_in, (i + 1) * out + in - 1);
    return min(divide(by_stride, i + pad) + 1, out);
  }
};

template <int N> struct PoolingArgs {
  const char* in;
  char *out, *positions;
  QuickAxis axis[N];
  FastDiv vectors, extent[N];  // of a place, of what threads have one of
  std::int64_t count;          // vectors in all
  std::int64_t each;           // elements of one outer index of `in`
  std::int64_t inner;
  PoolingWeight weight;
  bool wide;  // positions are int32
};

__device__ __forceinline__ int position_at(const char* positions, bool wide, std::int64_t i) {
  return wide ? reinterpret_cast<const std::int32_t*>(positions)[i]
              : reinterpret_cast<const std::uint8_t*>(positions)[i];
}

/// Where a thread is: its vector among those of a place, the place, and the outer index.
template <int N> struct PoolingPlace {
  unsigned vector, outer;
  int at[N];
  __device__ __forceinline__ PoolingPlace(const PoolingArgs<N>& args, unsigned index) {
    unsigned rest = args.vectors.divide(index);
    vector = index - rest * args.vectors.divisor;
#pragma unroll
    for (int a = N - 1; a >= 0; --a) {
      unsigned quotient = args.extent[a].divide(rest);
      at[a] = static_cast<int>(rest - quotient * args.extent[a].divisor);
      rest = quotient;
    }
    outer = rest;
  }
};

/// Loads neighbours: all of them with the first, for which it is asked before the others.
template <class T, int W> struct VectorAt {
  const T* data;
  std::int64_t inner;
  mutable Pack<T, W> pack;
  __device__ __forceinline__ ComputeOf<T> operator()(long long offset, int k) const {
    if constexpr (W == 1) {
      return convert<ComputeOf<T>>(data[offset * inner]);
    } else {
      if (k == 0) pack = *reinterpret_cast<const Pack<T, W>*>(data + offset * inner);
      return convert<ComputeOf<T>>(pack.value[k]);
    }
  }
};

/// The positions of neighbours: all of them, and the elements that they are of, are loaded with the
/// first.
template <class T, int W> struct PositionsAt {
  const char* positions;
  const T* data;
  std::int64_t from, inner;
  bool wide;
  mutable int at[W];
  mutable Pack<T, W> pack;

  __device__ __forceinline__ int operator()(long long offset, int k) const {
    if (k == 0) load(from + offset * inner);
    return at[k];
  }
  __device__ __forceinline__ ComputeOf<T> element(int k) const {
    return convert<ComputeOf<T>>(pack.value[k]);
  }
  __device__ __forceinline__ void load_positions(std::int64_t i) const {
    if (wide) load_as<std::int32_t>(i);
    else load_as<std::uint8_t>(i);
  }

 private:
  __device__ __forceinline__ void load(std::int64_t i) const {
    pack = *reinterpret_cast<const Pack<T, W>*>(data + i);
    load_positions(i);
  }
  template <class P> __device__ __forceinline__ void load_as(std::int64_t i) const {
    auto all = *reinterpret_cast<const Pack<P, W>*>(positions + i * sizeof(P));
#pragma unroll
    for (int j = 0; j < W; ++j) at[j] = all.value[j];
  }
};

template <class T, int N, int W, PoolingMode kMode>
__global__ void __launch_bounds__(kBlock) pool(const __grid_constant__ PoolingArgs<N> args) {
  using V = ComputeOf<T>;
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  PoolingPlace<N> place(args, static_cast<unsigned>(index));
  std::int64_t to = index * W;
  VectorAt<T, W> load = {
      reinterpret_cast<const T*>(args.in) + place.outer * args.each + place.vector * W, args.inner};
  V result[W];
  int found[W];
  if constexpr (kMode == PoolingMode::max) {
    greatest_of_window<W>(args.axis, place.at, load, result, found);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (args.wide) reinterpret_cast<std::int32_t*>(args.positions)[to + j] = found[j];
      else reinterpret_cast<std::uint8_t*>(args.positions)[to + j] = found[j];
    }
  } else if constexpr (kMode == PoolingMode::at) {
#pragma unroll
    for (int j = 0; j < W; ++j) found[j] = position_at(args.positions, args.wide, to + j);
    at_of_window<W>(args.axis, place.at, load, found, result);
  } else {
    sum_of_window<W>(args.axis, args.weight, place.at, load, result);
  }
  Pack<T, W> out;
#pragma unroll
  for (int j = 0; j < W; ++j) out.value[j] = convert<T>(result[j]);
  *reinterpret_cast<Pack<T, W>*>(reinterpret_cast<T*>(args.out) + to) = out;
}

// --- windows in steps of two ---

/// What the windows of W neighbours along the last axis have, where nothing is inner: kSize rows of
/// the 2 * W elements below the windows' begins, aligned vectors, and, of windows of 3, the element
/// in front (kPad) or behind. Where there is no element there is `padding`.
template <class T, int kSize, int kPad> struct WindowRows {
  static_assert((kSize == 2 && kPad == 0) || (kSize == 3 && kPad <= 1));
  using V = ComputeOf<T>;
  static constexpr int W = Vector<T>::W;
  Vector<T> vectors[kSize][2];
  T beside[kSize];

  __device__ __forceinline__ WindowRows(const T* in, const QuickAxis& rows,
                                        const QuickAxis& columns, int row_window, int first_window,
                                        T padding) {
    Pack<T, W> none;
    none.fill(padding);
    int first = rows.first(row_window), column = 2 * first_window;
    int alone = kPad ? column - 1 : column + 2 * W;
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
      int row = first + r;
      bool there = row >= 0 && row < rows.in;
      const T* line = in + static_cast<std::int64_t>(row) * columns.in;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        vectors[r][half].set(none);
        int at = column + half * W;
        if (there && at < columns.in) vectors[r][half].load(line + at);
      }
      beside[r] = padding;
      if (kSize == 3 && there && alone >= 0 && alone < columns.in) beside[r] = line[alone];
    }
#pragma unroll
    for (int r = 0; r < kSize; ++r) vectors[r][0].keep(), vectors[r][1].keep();
  }
  /// Element `place` of window k, in row r.
  __device__ __forceinline__ V at(int r, int k, int place) const {
    int i = 2 * k + place - kPad;
    if (i < 0 || i == 2 * W) return convert<V>(beside[r]);
    return vectors[r][i / W].value(i % W);
  }
};

/// As `pool` where nothing is inner: a thread has W neighbours along the last axis, whose windows
/// step by two. Adds, or compares, in the same order.
template <class T, PoolingMode kMode, int kSize, int kPad>
__global__ void __launch_bounds__(kBlock) pool_along(const __grid_constant__ PoolingArgs<2> args) {
  using V = ComputeOf<T>;
  constexpr int W = Vector<T>::W;
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  PoolingPlace<2> place(args, static_cast<unsigned>(index));
  const QuickAxis &rows = args.axis[0], &columns = args.axis[1];
  int first = place.at[1] * W;
  T* out = reinterpret_cast<T*>(args.out);
  const T* in = reinterpret_cast<const T*>(args.in) + place.outer * args.each;
  PositionsAt<T, W> wanted = {args.positions, nullptr, 0, 1, args.wide};
  if constexpr (kMode == PoolingMode::at) wanted.load_positions(index * W);
  constexpr bool kGreatest = kMode == PoolingMode::max;
  T padding = convert<T>(kGreatest ? m::lowest<V>() : V(0));
  WindowRows<T, kSize, kPad> elements(in, rows, columns, place.at[0], first, padding);

  Pack<T, W> results;
  Pack<std::uint8_t, W> found;
  int there = rows.end(place.at[0]) - rows.begin(place.at[0]);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    V result = kGreatest ? m::lowest<V>() : V(0);
    int position = 0;
#pragma unroll
    for (int i = 0; i < kSize * kSize; ++i) {
      V value = elements.at(i / kSize, k, i % kSize);
      if constexpr (kGreatest) {
        bool better = !(value <= result) & (result == result);
        result = better ? value : result;
        position = better ? i : position;
      } else if constexpr (kMode == PoolingMode::at) {
        result = wanted.at[k] == i ? value : result;
      } else {
        result += value;
      }
    }
    if (kMode == PoolingMode::sum && args.weight != PoolingWeight::one) {
      int covered = there * (columns.end(first + k) - columns.begin(first + k));
      result = result / V(args.weight == PoolingWeight::window ? kSize * kSize : covered);
    }
    results.value[k] = convert<T>(result);
    found.value[k] = static_cast<std::uint8_t>(position);
  }
  *reinterpret_cast<Pack<T, W>*>(out + index * W) = results;
  if constexpr (kGreatest) {
    *reinterpret_cast<Pack<std::uint8_t, W>*>(args.positions + index * W) = found;
  }
}

// --- the reverse ---

template <class T, int N, int W, bool kAt>
__global__ void __launch_bounds__(kBlock) spread(const __grid_constant__ PoolingArgs<N> args) {
  using V = ComputeOf<T>;
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  PoolingPlace<N> place(args, static_cast<unsigned>(index));
  std::int64_t from = place.outer * args.each + place.vector * W;
  const T* in = reinterpret_cast<const T*>(args.in);
  V sum[W];
  if constexpr (kAt) {
    PositionsAt<T, W> position = {args.positions, in, from, args.inner, args.wide};
    auto load = [&](long long, int k) { return position.element(k); };
    sum_of_windows<W>(args.axis, args.weight, true, place.at, load, position, sum);
  } else {
    VectorAt<T, W> load = {in + from, args.inner};
    auto none = [](long long, int) { return 0; };
    sum_of_windows<W>(args.axis, args.weight, false, place.at, load, none, sum);
  }
  Pack<T, W> out;
#pragma unroll
  for (int j = 0; j < W; ++j) out.value[j] = convert<T>(sum[j]);
  *reinterpret_cast<Pack<T, W>*>(reinterpret_cast<T*>(args.out) + index * W) = out;
}

/// Calls f(offset, position, covered) as each_window_of does, for the windows along all axes but
/// the last.
template <int A, int N, class F>
__device__ __forceinline__ void each_window_but_last(const QuickAxis (&axis)[N], const int (&i)[N],
                                                     long long offset, int position, int covered,
                                                     const F& f) {
  if constexpr (A + 1 == N) {
    f(offset, position, covered);
  } else {
    const QuickAxis& a = axis[A];
    int to = a.to(i[A]);
    for (int o = a.from(i[A]); o < to; ++o) {
      each_window_but_last<A + 1>(axis, i, offset * a.out + o,
                                  position * a.size + (i[A] - a.first(o)),
                                  covered * (a.end(o) - a.begin(o)), f);
    }
  }
}

/// As `spread` where nothing is inner: a thread has W neighbours along the last axis, which share
/// windows, so that each window is loaded once. Adds in the same order.
template <class T, int N, int W, bool kAt>
__global__ void __launch_bounds__(kBlock, N == 2 ? 5 : 4)
    spread_along(const __grid_constant__ PoolingArgs<N> args) {
  using V = ComputeOf<T>;
  constexpr int kWindows = 2;  // loaded together
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  PoolingPlace<N> place(args, static_cast<unsigned>(index));
  const QuickAxis& last = args.axis[N - 1];
  std::int64_t outer = place.outer * args.each;
  const T* in = reinterpret_cast<const T*>(args.in) + outer;
  int i = place.at[N - 1] * W;
  int from = last.from(i), to = last.to(i + W - 1);
  V window = V(places_of(args.axis));
  V sum[W] = {};
  each_window_but_last<0>(
      args.axis, place.at, 0, 0, 1, [&](long long offset, int position, int covered) {
        for (int o = from; o < to; o += kWindows) {
          V value[kWindows];
          int at[kWindows];
#pragma unroll
          for (int c = 0; c < kWindows; ++c) {
            value[c] = V(0), at[c] = -1;
            if (o + c >= to) continue;
            std::int64_t number = offset * last.out + o + c;
            value[c] = convert<V>(in[number]);
            if constexpr (kAt) at[c] = position_at(args.positions, args.wide, outer + number);
          }
#pragma unroll
          for (int c = 0; c < kWindows; ++c) {
            if (o + c >= to) continue;
            int first = last.first(o + c), end = last.end(o + c);
            if (!kAt && args.weight != PoolingWeight::one) {
              int count = covered * (end - last.begin(o + c));
              value[c] = value[c] / (args.weight == PoolingWeight::window ? window : V(count));
            }
            int of_first = position * last.size - first;
#pragma unroll
            for (int k = 0; k < W; ++k) {
              bool has = i + k >= first && i + k < end;
              if constexpr (kAt) has = has && at[c] == of_first + i + k;
              if (has) sum[k] += value[c];
            }
          }
        }
      });
  Pack<T, W> out;
#pragma unroll
  for (int k = 0; k < W; ++k) out.value[k] = convert<T>(sum[k]);
  *reinterpret_cast<Pack<T, W>*>(reinterpret_cast<T*>(args.out) + index * W) = out;
}

// --- launches ---

template <int N> std::int64_t product(const PoolingShape& s, int WindowAxis::*extent) {
  std::int64_t n = s.inner;
  for (int a = 0; a < N; ++a) n *= s.axis[a].*extent;
  return n;
}

/// Calls launch(arguments) for as many outer indices at a time as indices of 32 bits want. The
/// neighbours that a thread has are `width` inner ones, or, where there is one of these, `width`
/// along the last axis.
template <class T, int N, class Launch>
void in_parts(const char* name, const PoolingShape& s, bool forward, int width, const char* in,
              char* out, const Operand& positions, const Launch& launch) {
  std::int64_t each_in = product<N>(s, forward ? &WindowAxis::in : &WindowAxis::out);
  std::int64_t each_out = product<N>(s, forward ? &WindowAxis::out : &WindowAxis::in);
  if (each_out > kMaxCount) {
    throw NotImplementedError(std::string(name) + ": samples of " + std::to_string(each_out) +
                              " elements are too large for one kernel");
  }
  std::int64_t most = kMaxCount / each_out, places = forward ? each_out : each_in;
  for (std::int64_t first = 0; first < s.outer; first += most) {
    PoolingArgs<N> args = {};
    args.in = in + first * each_in * static_cast<std::int64_t>(sizeof(T));
    args.out = out + first * each_out * static_cast<std::int64_t>(sizeof(T));
    if (positions.present()) {
      args.positions = positions.view.data + first * places * itemsize(positions.view.dtype);
      args.wide = positions.view.dtype == int32;
    }
    for (int a = 0; a < N; ++a) {
      args.axis[a] = QuickAxis(s.axis[a]);
      args.extent[a] = FastDiv(forward ? s.axis[a].out : s.axis[a].in);
    }
    args.vectors = FastDiv(s.inner);
    if (s.inner > 1) args.vectors = FastDiv(s.inner / width);
    else args.extent[N - 1] = FastDiv(args.extent[N - 1].divisor / static_cast<unsigned>(width));
    args.count = std::min(most, s.outer - first) * each_out / width;
    args.each = each_in;
    args.inner = s.inner;
    args.weight = s.weight;
    launch(args);
  }
}

template <class T> int width_of(const PoolingShape& s, const char* in, const char* out) {
  constexpr int W = 16 / sizeof(T);
  bool whole = s.inner % W == 0 && is_aligned(in, 16) && is_aligned(out, 16);
  return whole && s.ndim < operations::kMostWindowAxes ? W : 1;
}

/// The kernel of windows in steps of two that lie as pool_along has them; null if there is none.
template <class T> auto along_kernel(const Pooling& op) -> void (*)(PoolingArgs<2>) {
  constexpr int W = Vector<T>::W;
  const PoolingShape& s = op.shape;
  const WindowAxis &rows = s.axis[0], &columns = s.axis[1];
  bool aligned = is_aligned(op.x.view.data, 16) && is_aligned(op.y.view.data, 16);
  aligned = aligned && columns.in % W == 0 && columns.out % W == 0;
  if (op.positions.present()) {
    auto bytes = W * itemsize(op.positions.view.dtype);
    aligned = aligned && is_aligned(op.positions.view.data, bytes);
  }
  bool steps = rows.stride > 0 && columns.stride == 2 && rows.size == columns.size;
  if (s.inner != 1 || !steps || !aligned || columns.pad > 1) return nullptr;
  bool max = s.mode == PoolingMode::max, at = s.mode == PoolingMode::at;
  if (max && op.positions.view.dtype != uint8) return nullptr;
  if (columns.size == 2 && columns.pad == 0) {
    if (at) return pool_along<T, PoolingMode::at, 2, 0>;
    return max ? pool_along<T, PoolingMode::max, 2, 0> : pool_along<T, PoolingMode::sum, 2, 0>;
  }
  if (columns.size != 3 || at) return nullptr;
  if (columns.pad == 0) {
    return max ? pool_along<T, PoolingMode::max, 3, 0> : pool_along<T, PoolingMode::sum, 3, 0>;
  }
  return max ? pool_along<T, PoolingMode::max, 3, 1> : pool_along<T, PoolingMode::sum, 3, 1>;
}

template <class T, int N> void run(const Pooling& op, const LaunchContext& context) {
  constexpr int W = N < operations::kMostWindowAxes ? 16 / sizeof(T) : 1;
  int width =
      op.shape.mode == PoolingMode::at ? 1 : width_of<T>(op.shape, op.x.view.data, op.y.view.data);
  void (*kernel)(PoolingArgs<N>) = pool<T, N, 1, PoolingMode::at>;
  if (op.shape.mode == PoolingMode::max) {
    kernel = width == W ? pool<T, N, W, PoolingMode::max> : pool<T, N, 1, PoolingMode::max>;
  } else if (op.shape.mode == PoolingMode::sum) {
    kernel = width == W ? pool<T, N, W, PoolingMode::sum> : pool<T, N, 1, PoolingMode::sum>;
  }
  if constexpr (N == 2) {
    if (auto along = along_kernel<T>(op)) kernel = along, width = W;
  }
  in_parts<T, N>(op.name(), op.shape, true, width, op.x.view.data, op.y.view.data, op.positions,
                 [&](const PoolingArgs<N>& args) {
                   launch_kernel(op.name(), context, kernel,
                                 static_cast<unsigned>(ceil_div(args.count, kBlock)), kBlock, args);
                 });
}

template <class T, int N> void run(const PoolingSpread& op, const LaunchContext& context) {
  constexpr int W = N < operations::kMostWindowAxes ? 16 / sizeof(T) : 1;
  bool along = N < operations::kMostWindowAxes && op.shape.inner == 1 &&
               op.shape.axis[N - 1].in % W == 0 && is_aligned(op.gx.view.data, 16);
  int width = along ? W : width_of<T>(op.shape, op.gy.view.data, op.gx.view.data);
  if (op.positions.present() && !along) {
    auto bytes = W * itemsize(op.positions.view.dtype);
    if (!is_aligned(op.positions.view.data, static_cast<int>(bytes))) width = 1;
  }
  bool at = op.shape.mode == PoolingMode::at;
  void (*kernel)(PoolingArgs<N>) = at ? spread<T, N, 1, true> : spread<T, N, 1, false>;
  if constexpr (W > 1) {
    if (along) kernel = at ? spread_along<T, N, W, true> : spread_along<T, N, W, false>;
    else if (width == W) kernel = at ? spread<T, N, W, true> : spread<T, N, W, false>;
  }
  in_parts<T, N>(op.name(), op.shape, false, width, op.gy.view.data, op.gx.view.data, op.positions,
                 [&](const PoolingArgs<N>& args) {
                   launch_kernel(op.name(), context, kernel,
                                 static_cast<unsigned>(ceil_div(args.count, kBlock)), kBlock, args);
                 });
}

template <class T, class Kind> void run_axes(const Kind& op, const LaunchContext& context) {
  switch (op.shape.ndim) {
    case 2: return run<T, 2>(op, context);
    case 3: return run<T, 3>(op, context);
    default: return run<T, operations::kMostWindowAxes>(op, context);
  }
}

template <class Kind> void run_any(const Kind& op, Dtype dtype, const LaunchContext& context) {
  switch (dtype) {
    case Dtype::float16: return run_axes<half_t>(op, context);
    case Dtype::bfloat16: return run_axes<bfloat16_t>(op, context);
    case Dtype::float32: return run_axes<float>(op, context);
    default: return run_axes<double>(op, context);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Pooling::run_cuda(const cuda::LaunchContext& context) {
  if (y.view.size() > 0) cuda::run_any(*this, y.view.dtype, context);
}

void PoolingSpread::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() > 0) cuda::run_any(*this, gx.view.dtype, context);
}

}  // namespace rensa::operations
