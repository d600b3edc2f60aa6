// Running sums and products on a GPU, for the files that make them. A long row is spread over all
// blocks (cuda_row.cuh); shorter rows are a block's or a warp's; lines across rows are a thread's
// each, cut into pieces where there are few of them.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/scan/cuda_plan.h"
#include "rensa/operations/scan/cuda_row.cuh"

namespace rensa::cuda {

template <class T> struct ScanArgs {
  const T* in;
  T* out;
  ComputeOf<T>* totals;  // of the pieces, piece by piece
  std::int64_t outer, n, inner;
  std::int64_t pieces, piece;  // and the elements of one
  bool vector;                 // rows may be accessed kScanItems elements at a time
};
inline constexpr int kScanItems = 4;  // that a thread of scan_by_block has of a tile

// --- rows ---

template <class T, class F>
__global__ void __launch_bounds__(kBlock) scan_by_warp(const __grid_constant__ ScanArgs<T> args) {
  wait_for_previous();
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / 32) + threadIdx.x / 32;
  if (row >= args.outer) return;
  using V = ComputeOf<T>;
  int lane = threadIdx.x % 32;
  const T* in = args.in + row * args.n;
  T* out = args.out + row * args.n;
  V carry = F::template identity<V>();
  for (std::int64_t begin = 0; begin < args.n; begin += 32) {
    bool inside = begin + lane < args.n;
    V value = inside ? convert<V>(in[begin + lane]) : F::template identity<V>();
    value = F()(carry, scan_lanes<F>(value));
    if (inside) out[begin + lane] = convert<T>(value);
    carry = from_lane(value, 31);
  }
}

template <class T, class F>
__global__ void __launch_bounds__(kBlock) scan_by_block(const __grid_constant__ ScanArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int kItems = kScanItems;
  const T identity = convert<T>(F::template identity<V>());
  __shared__ alignas(16) char warp_bytes[kBlock / 32 * sizeof(V)];
  V* warp_totals = reinterpret_cast<V*>(warp_bytes);
  int lane = threadIdx.x % 32;
  const T* in = args.in + blockIdx.x * args.n;
  T* out = args.out + blockIdx.x * args.n;
  V carry = F::template identity<V>();
  for (std::int64_t begin = 0; begin < args.n; begin += kItems * kBlock) {
    std::int64_t first = begin + threadIdx.x * kItems;
    Pack<T, kItems> pack = load_pack<T, kItems>(in + first, args.n - first, args.vector, identity);
    V value[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      value[k] = convert<V>(pack.value[k]);
      if (k > 0) value[k] = F()(value[k - 1], value[k]);
    }
    V upto = scan_lanes<F>(value[kItems - 1]);
    V before = shuffle_up(upto, 1), before_warp;
    if (lane == 0) before = F::template identity<V>();
    carry = join_warps<F, kBlock>(warp_totals, upto, 31, carry, &before_warp);
    before = F()(before_warp, before);
#pragma unroll
    for (int k = 0; k < kItems; ++k) pack.value[k] = convert<T>(F()(before, value[k]));
    store_pack<T, kItems>(out + first, pack, args.n - first, args.vector);
    __syncthreads();  // before the totals are written again
  }
}

// --- lines ---

// Whether this thread has a piece of a line, and where that begins and ends.
template <class T>
__device__ __forceinline__ bool find_piece(const ScanArgs<T>& args, std::int64_t& at,
                                           std::int64_t& count, std::int64_t& item) {
  item = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  std::int64_t lines = args.outer * args.inner;
  if (item >= lines * args.pieces) return false;
  std::int64_t line = item % lines, first = item / lines * args.piece;
  count = args.n - first < args.piece ? args.n - first : args.piece;
  at = (line / args.inner * args.n + first) * args.inner + line % args.inner;
  return true;
}

template <class T, class F>
__global__ void __launch_bounds__(kBlock) piece_totals(const __grid_constant__ ScanArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t at, count, item;
  if (!find_piece(args, at, count, item)) return;
  V total = F::template identity<V>();
  for (std::int64_t i = 0; i < count; ++i) {
    total = F()(total, convert<V>(args.in[at + i * args.inner]));
  }
  args.totals[item] = total;
}

// Turns each line's totals into what stands before its pieces.
template <class T, class F>
__global__ void __launch_bounds__(kBlock) before_pieces(const __grid_constant__ ScanArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t lines = args.outer * args.inner;
  std::int64_t line = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (line >= lines) return;
  V running = F::template identity<V>();
  for (std::int64_t piece = 0; piece < args.pieces; ++piece) {
    V next = F()(running, args.totals[piece * lines + line]);
    args.totals[piece * lines + line] = running;
    running = next;
  }
}

template <class T, class F>
__global__ void __launch_bounds__(kBlock) scan_pieces(const __grid_constant__ ScanArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t at, count, item;
  if (!find_piece(args, at, count, item)) return;
  V running = args.pieces > 1 ? args.totals[item] : F::template identity<V>();
  for (std::int64_t i = 0; i < count; ++i) {
    running = F()(running, convert<V>(args.in[at + i * args.inner]));
    args.out[at + i * args.inner] = convert<T>(running);
  }
}

// --- the scans ---

template <class T> std::size_t scan_bytes(Device device, const ScanPlan& plan) {
  if (plan.way == ScanWay::device) return scan_row_bytes<ComputeOf<T>>(device);
  if (plan.pieces == 1) return 0;
  return static_cast<std::size_t>(plan.outer * plan.inner * plan.pieces) * sizeof(ComputeOf<T>);
}

template <class T, class F>
static void run_scan(const operations::Scan& op, const ScanPlan& plan,
                     const LaunchContext& context) {
  ScanArgs<T> args = {op.in.view.as<T>(),
                      op.out.view.as<T>(),
                      static_cast<ComputeOf<T>*>(context.workspace),
                      plan.outer,
                      plan.n,
                      plan.inner,
                      plan.pieces,
                      plan.piece,
                      false};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Pack<T, kScanItems>));
  args.vector =
      plan.n % kScanItems == 0 && is_aligned(args.in, kBytes) && is_aligned(args.out, kBytes);
  auto launch = [&](void (*kernel)(ScanArgs<T>), std::int64_t blocks) {
    launch_kernel(op.name(), context, kernel, blocks, kBlock, args);
  };
  switch (plan.way) {
    case ScanWay::device:
      if constexpr (!is_16bit_float<T>) {  // ScanPlan
        for (std::int64_t row = 0; row < plan.outer; ++row) {
          launch_scan_row<T, F>(op.name(), args.in + row * plan.n, args.out + row * plan.n, plan.n,
                                context);
        }
      }
      return;
    case ScanWay::block: return launch(scan_by_block<T, F>, plan.outer);
    case ScanWay::warp: return launch(scan_by_warp<T, F>, ceil_div(plan.outer, kBlock / 32));
    case ScanWay::line: break;
  }
  std::int64_t lines = plan.outer * plan.inner;
  if (plan.pieces > 1) {
    launch(piece_totals<T, F>, ceil_div(lines * plan.pieces, kBlock));
    launch(before_pieces<T, F>, ceil_div(lines, kBlock));
  }
  launch(scan_pieces<T, F>, ceil_div(lines * plan.pieces, kBlock));
}

/// f of an element of `dtype`; integers of all kinds wrap around alike.
template <class F> decltype(auto) with_scan_element(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float16: return f(half_t());
    case Dtype::bfloat16: return f(bfloat16_t());
    case Dtype::float32: return f(0.0f);
    case Dtype::float64: return f(0.0);
    case Dtype::complex64: return f(complex_t<float>(0));
    case Dtype::complex128: return f(complex_t<double>(0));
    default: return f(0ull);
  }
}

template <class F>
static void run_scan(const operations::Scan& op, const ScanPlan& plan,
                     const LaunchContext& context) {
  with_scan_element(op.in.view.dtype, [&](auto v) { run_scan<decltype(v), F>(op, plan, context); });
}

}  // namespace rensa::cuda
