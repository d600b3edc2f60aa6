// Layer and RMS normalization on a GPU. A row that fits is read once and stays in the registers of
// the warp or the block that has it; a longer one is read twice.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/functors.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/operations/reduce/cuda_reducers.cuh"

namespace rensa::cuda {

namespace {

using operations::RowNormalization;
using operations::RowNormalizationGrad;

/// gamma or beta, and how they are read. A vector: those of a row's 16 bytes.
struct ColumnNumbers {
  enum Kind : char {
    absent,    // a number of their own
    values,    // vectors of the type that is computed in
    elements,  // vectors of x's dtype
    any,       // one by one
  };
  const char* data;
  ElementType type;
  Kind kind;
};
struct RowNormalizationArgs {
  const char *x, *gy, *addend;  // addend: of x, or where there is a gy of the gradient; or null
  char *out, *sum, *mean, *inv_std;  // mean: null where it is 0
  ColumnNumbers gamma, beta;
  std::int64_t rows, columns;
  bool vector;
  double eps;
};
using RowNormalizationKernel = void (*)(RowNormalizationArgs);

template <class T> inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
constexpr int kPacks = 4;  // of 16 bytes, that a thread keeps of each operand's row
// As many as a warp's threads keep of a longer row whose x is all that they keep: enough loads
// under way, where those of a block would have one or two each.
constexpr int kMorePacks = 8;

// The kernels of `whole` rows are for aligned vectors without a rest, of gamma and beta too: what
// is left of a row at a vector is all of the vector or nothing. A multiprocessor has kResident of
// their blocks at once, which is enough loads under way to keep its memory busy.
constexpr int kResident = 4;

/// The numbers of the columns from `first` on, `left` of which are there.
template <class T, bool whole, class V, int W>
__device__ __forceinline__ void load_numbers(const ColumnNumbers& numbers, std::int64_t first,
                                             std::int64_t left, V absent, V (&values)[W]) {
  if (numbers.kind == ColumnNumbers::absent) {
#pragma unroll
    for (int j = 0; j < W; ++j) values[j] = absent;
  } else if (numbers.kind == ColumnNumbers::values && (whole || left >= W)) {
    constexpr int P = W * sizeof(V) > 16 ? 16 / sizeof(V) : W;
    const auto* from = reinterpret_cast<const Pack<V, P>*>(numbers.data + first * sizeof(V));
    Pack<V, P> packs[W / P];
#pragma unroll
    for (int k = 0; k < W / P; ++k) packs[k] = from[k];
#pragma unroll
    for (int j = 0; j < W; ++j) values[j] = packs[j / P].value[j % P];
  } else if (numbers.kind == ColumnNumbers::elements && (whole || left >= W)) {
    Vector<T> vector;
    vector.load(reinterpret_cast<const T*>(numbers.data) + first);
#pragma unroll
    for (int j = 0; j < W; ++j) values[j] = vector.value(j);
  } else if constexpr (!whole) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      values[j] = absent;
      if (j < left) {
        values[j] =
            load_any<V>(numbers.data + ((first + j) << numbers.type.log2_size), numbers.type);
      }
    }
  }
}

/// What a thread knows of its row.
template <class T, int group, class Index = int> struct RowOf {
  static constexpr int W = kWidth<T>;
  std::int64_t row, columns;
  bool there;  // every thread of a block meets the others in join_all
  int lane;
  __device__ __forceinline__ explicit RowOf(const RowNormalizationArgs& args)
      : row(blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group),
        columns(args.columns),
        there(row < args.rows),
        lane(threadIdx.x % group) {}
  /// The first column of the thread's k-th pack, and what there is from there on.
  __device__ __forceinline__ Index first(int k) const {
    return (lane + k * group) * static_cast<Index>(W);
  }
  __device__ __forceinline__ Index left(int k) const {
    return there ? static_cast<Index>(columns) - first(k) : 0;
  }
  template <class P> __device__ __forceinline__ P* data(P* bytes) const {
    return bytes + row * columns * static_cast<std::int64_t>(sizeof(T));
  }
};

template <class T, bool whole>
__device__ __forceinline__ Vector<T> load_row(const char* row, std::int64_t first,
                                              std::int64_t left, bool vector) {
  const T* from = reinterpret_cast<const T*>(row) + first;
  Vector<T> x;
  if (whole || (vector && left >= kWidth<T>)) {
    if (left > 0) x.load(from);
  } else {
    x.set(load_pack<T, kWidth<T>>(from, left, false, convert<T>(0.0f)));
  }
  x.keep();
  return x;
}

template <class T, bool whole>
__device__ __forceinline__ void store_row(char* row, const Pack<T, kWidth<T>>& pack,
                                          std::int64_t first, std::int64_t left, bool vector) {
  T* to = reinterpret_cast<T*>(row) + first;
  if constexpr (whole) *reinterpret_cast<Pack<T, kWidth<T>>*>(to) = pack;
  else store_pack<T, kWidth<T>>(to, pack, left, vector);
}

/// a + b, rounded as an array of sums would be.
template <class T>
__device__ __forceinline__ Pack<T, kWidth<T>> rounded_sum(const Vector<T>& a, const Vector<T>& b) {
  Pack<T, kWidth<T>> sum;
#pragma unroll
  for (int j = 0; j < kWidth<T>; ++j) sum.value[j] = convert<T>(a.value(j) + b.value(j));
  return sum;
}

/// Packs of x where it has an addend, kPacks of which are loaded at a time: the sums, which are
/// stored.
template <class T, int group, bool whole, int packs>
__device__ __forceinline__ void add_row(const RowNormalizationArgs& args, const RowOf<T, group>& at,
                                        Vector<T> (&x)[packs]) {
  static_assert(packs % kPacks == 0);
  const char* more = at.data(args.addend);
  char* to = at.data(args.sum);
#pragma unroll
  for (int begin = 0; begin < packs; begin += kPacks) {
    Vector<T> addend[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      addend[k] = load_row<T, whole>(more, at.first(begin + k), at.left(begin + k), args.vector);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (at.left(begin + k) <= 0) break;
      Pack<T, kWidth<T>> sum = rounded_sum(x[begin + k], addend[k]);
      store_row<T, whole>(to, sum, at.first(begin + k), at.left(begin + k), args.vector);
      x[begin + k].set(sum);
      x[begin + k].keep();
    }
  }
}

/// One pack of the result.
template <class T, bool whole, class V>
__device__ __forceinline__ void finish_pack(const RowNormalizationArgs& args, char* out,
                                            const Vector<T>& x, std::int64_t first,
                                            std::int64_t left, V mean, V scale) {
  constexpr int W = kWidth<T>;
  V gamma[W], beta[W];
  load_numbers<T, whole>(args.gamma, first, left, V(1), gamma);
  load_numbers<T, whole>(args.beta, first, left, V(0), beta);
  Pack<T, W> y;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    y.value[j] = convert<T>((x.value(j) - mean) * scale * gamma[j] + beta[j]);
  }
  store_row<T, whole>(out, y, first, left, args.vector);
}

template <class V>
__device__ __forceinline__ void store_statistics(const RowNormalizationArgs& args, std::int64_t row,
                                                 V mean, V scale) {
  if (args.mean) reinterpret_cast<V*>(args.mean)[row] = mean;
  reinterpret_cast<V*>(args.inv_std)[row] = scale;
}

// `group` threads, a warp or a block, to a row of at most group * packs packs.
template <class T, int group, bool whole, int packs>
__global__ void __launch_bounds__(kBlock, whole ? kResident : 1)
    normalize_in_registers(const __grid_constant__ RowNormalizationArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  wait_for_previous();
  RowOf<T, group> at(args);
  const char* in = at.data(args.x);
  Vector<T> x[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    x[k] = load_row<T, whole>(in, at.first(k), at.left(k), args.vector);
  }
  if (args.addend) add_row<T, group, whole>(args, at, x);
  V mean = V(0);
  if (args.mean) {
    V sum = V(0);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      if (at.left(k) <= 0) break;
#pragma unroll
      for (int j = 0; j < W; ++j) sum += x[k].value(j);  // what is not there is 0
    }
    mean = join_all<SumOf<V>>(sum, group) / V(args.columns);
  }
  V squares = V(0);
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    if (at.left(k) <= 0) break;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      V far = x[k].value(j) - mean;
      if (whole || j < at.left(k)) squares += far * far;
    }
  }
  V scale = V(1) / m::sqrt(join_all<SumOf<V>>(squares, group) / V(args.columns) + V(args.eps));
  if (!at.there) return;
  if (at.lane == 0) store_statistics(args, at.row, mean, scale);
  char* out = at.data(args.out);
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    if (at.left(k) <= 0) break;
    finish_pack<T, whole>(args, out, x[k], at.first(k), at.left(k), mean, scale);
  }
}

// A row of any length to a block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    normalize_in_two_passes(const __grid_constant__ RowNormalizationArgs args) {
  using V = ComputeOf<T>;
  using R = DeviationsReducer<V>;
  constexpr int W = kWidth<T>;
  wait_for_previous();
  RowOf<T, kBlock, std::int64_t> at(args);
  const char* in = at.data(args.x);
  typename R::Acc found = R::identity();
  for (int k = 0; at.left(k) > 0; ++k) {
    Vector<T> x = load_row<T, false>(in, at.first(k), at.left(k), args.vector);
    if (args.addend) {
      const char* more = at.data(args.addend);
      Pack<T, W> sum =
          rounded_sum(x, load_row<T, false>(more, at.first(k), at.left(k), args.vector));
      store_row<T, false>(at.data(args.sum), sum, at.first(k), at.left(k), args.vector);
      x.set(sum);
    }
    V values[W];
#pragma unroll
    for (int j = 0; j < W; ++j) values[j] = x.value(j);
    if (!args.mean) {
#pragma unroll
      for (int j = 0; j < W; ++j) found.squares += values[j] * values[j];
    } else if (at.left(k) >= W) {
      found = R::take_all(found, values);
    } else {
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if (j < at.left(k)) found = R::take(found, values[j], 0);
      }
    }
  }
  V mean = V(0), squares = V(0);
  if (args.mean) {
    found = join_all<R>(found, kBlock);
    mean = found.mean, squares = found.squares;
  } else {
    squares = join_all<SumOf<V>>(found.squares, kBlock);
  }
  V scale = V(1) / m::sqrt(squares / V(args.columns) + V(args.eps));
  if (threadIdx.x == 0) store_statistics(args, at.row, mean, scale);
  char* out = at.data(args.out);
  if (args.addend) in = at.data(args.sum);  // what each thread has written itself
  for (int k = 0; at.left(k) > 0; ++k) {
    Vector<T> x = load_row<T, false>(in, at.first(k), at.left(k), args.vector);
    finish_pack<T, false>(args, out, x, at.first(k), at.left(k), mean, scale);
  }
}

// --- the gradient ---

/// g and g * x_hat of a pack.
template <class T, bool whole, class V> struct GradPack {
  static constexpr int W = kWidth<T>;
  V g[W], x_hat[W];
  __device__ __forceinline__ GradPack(const RowNormalizationArgs& args, const Vector<T>& x,
                                      const Vector<T>& gy, std::int64_t first, std::int64_t left,
                                      V mean, V inv_std) {
    load_numbers<T, whole>(args.gamma, first, left, V(1), g);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      g[j] *= gy.value(j);
      x_hat[j] = (x.value(j) - mean) * inv_std;
    }
  }
};

template <class V> struct RowSums {
  V g, along;
  static __device__ __forceinline__ RowSums combine(RowSums a, RowSums b) {
    return {a.g + b.g, a.along + b.along};
  }
};

template <class T, bool whole, class V>
__device__ __forceinline__ void add_pack(const GradPack<T, whole, V>& pack, std::int64_t left,
                                         RowSums<V>& sums) {
#pragma unroll
  for (int j = 0; j < kWidth<T>; ++j) {
    if (whole || j < left) {
      sums.g += pack.g[j];
      sums.along += pack.g[j] * pack.x_hat[j];
    }
  }
}

template <class T, bool whole, class V>
__device__ __forceinline__ void store_grad(const RowNormalizationArgs& args, char* out,
                                           const char* addend, const GradPack<T, whole, V>& pack,
                                           std::int64_t first, std::int64_t left, V inv_std,
                                           RowSums<V> sums) {
  constexpr int W = kWidth<T>;
  V share = args.mean ? sums.g / V(args.columns) : V(0), along = sums.along / V(args.columns);
  Pack<T, W> gx;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    gx.value[j] = convert<T>(inv_std * (pack.g[j] - (share + pack.x_hat[j] * along)));
  }
  if (args.addend) {
    Vector<T> rounded;
    rounded.set(gx);
    gx = rounded_sum(rounded, load_row<T, whole>(addend, first, left, args.vector));
  }
  store_row<T, whole>(out, gx, first, left, args.vector);
}

template <class T, int group, bool whole>
__global__ void __launch_bounds__(kBlock, whole ? kResident : 1)
    gradient_in_registers(const __grid_constant__ RowNormalizationArgs args) {
  using V = ComputeOf<T>;
  wait_for_previous();
  RowOf<T, group> at(args);
  const char *in = at.data(args.x), *given = at.data(args.gy);
  Vector<T> x[kPacks], gy[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    x[k] = load_row<T, whole>(in, at.first(k), at.left(k), args.vector);
    gy[k] = load_row<T, whole>(given, at.first(k), at.left(k), args.vector);
  }
  V mean = V(0), inv_std = V(0);
  if (at.there) {
    if (args.mean) mean = reinterpret_cast<const V*>(args.mean)[at.row];
    inv_std = reinterpret_cast<const V*>(args.inv_std)[at.row];
  }
  RowSums<V> sums = {V(0), V(0)};
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (at.left(k) <= 0) break;
    GradPack<T, whole, V> pack(args, x[k], gy[k], at.first(k), at.left(k), mean, inv_std);
    add_pack(pack, at.left(k), sums);
  }
  sums = join_all<RowSums<V>>(sums, group);
  if (!at.there) return;
  char* out = at.data(args.out);
  const char* addend = at.data(args.addend);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (at.left(k) <= 0) break;
    GradPack<T, whole, V> pack(args, x[k], gy[k], at.first(k), at.left(k), mean, inv_std);
    store_grad(args, out, addend, pack, at.first(k), at.left(k), inv_std, sums);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    gradient_in_two_passes(const __grid_constant__ RowNormalizationArgs args) {
  using V = ComputeOf<T>;
  wait_for_previous();
  RowOf<T, kBlock, std::int64_t> at(args);
  const char *in = at.data(args.x), *given = at.data(args.gy);
  V mean = args.mean ? reinterpret_cast<const V*>(args.mean)[at.row] : V(0);
  V inv_std = reinterpret_cast<const V*>(args.inv_std)[at.row];
  auto pack_at = [&](int k) {
    return GradPack<T, false, V>(args, load_row<T, false>(in, at.first(k), at.left(k), args.vector),
                                 load_row<T, false>(given, at.first(k), at.left(k), args.vector),
                                 at.first(k), at.left(k), mean, inv_std);
  };
  RowSums<V> sums = {V(0), V(0)};
  for (int k = 0; at.left(k) > 0; ++k) add_pack(pack_at(k), at.left(k), sums);
  sums = join_all<RowSums<V>>(sums, kBlock);
  char* out = at.data(args.out);
  const char* addend = at.data(args.addend);
  for (int k = 0; at.left(k) > 0; ++k) {
    store_grad(args, out, addend, pack_at(k), at.first(k), at.left(k), inv_std, sums);
  }
}

// --- launches ---

template <class T, int group, int packs = kPacks>
RowNormalizationKernel forward_in_registers(bool whole) {
  return whole ? normalize_in_registers<T, group, true, packs>
               : normalize_in_registers<T, group, false, packs>;
}
template <class T, int group> RowNormalizationKernel gradient_kernel(bool whole) {
  return whole ? gradient_in_registers<T, group, true> : gradient_in_registers<T, group, false>;
}

template <class T>
RowNormalizationKernel kernel_of(bool gradient, std::int64_t columns, bool whole, int& group) {
  constexpr std::int64_t kPack = kWidth<T>;
  bool few = columns <= 32 * kPacks * kPack, fits = columns <= kBlock * kPacks * kPack;
  bool by_warp = few || (!gradient && columns <= 32 * kMorePacks * kPack);
  group = by_warp ? 32 : kBlock;
  if (gradient) {
    if (few) return gradient_kernel<T, 32>(whole);
    return fits ? gradient_kernel<T, kBlock>(whole) : gradient_in_two_passes<T>;
  }
  if (few) return forward_in_registers<T, 32>(whole);
  if (by_warp) return forward_in_registers<T, 32, kMorePacks>(whole);
  return fits ? forward_in_registers<T, kBlock>(whole) : normalize_in_two_passes<T>;
}

RowNormalizationKernel kernel_of(Dtype dtype, bool gradient, const RowNormalizationArgs& args,
                                 int& group) {
  bool whole =
      args.vector && args.gamma.kind != ColumnNumbers::any && args.beta.kind != ColumnNumbers::any;
  switch (dtype) {
    case Dtype::float16: return kernel_of<half_t>(gradient, args.columns, whole, group);
    case Dtype::bfloat16: return kernel_of<bfloat16_t>(gradient, args.columns, whole, group);
    case Dtype::float32: return kernel_of<float>(gradient, args.columns, whole, group);
    default: return kernel_of<double>(gradient, args.columns, whole, group);
  }
}

ColumnNumbers numbers_of(const Operand& operand, Dtype dtype, Dtype compute) {
  ColumnNumbers numbers = {};
  if (!operand.present()) return numbers;
  Dtype own = operand.view.dtype;
  numbers.data = operand.view.data;
  numbers.type = ElementType(own, compute_type(compute), false);
  numbers.kind = !is_aligned(numbers.data, 16) ? ColumnNumbers::any
                 : own == compute              ? ColumnNumbers::values
                 : own == dtype                ? ColumnNumbers::elements
                                               : ColumnNumbers::any;
  return numbers;
}

char* data_of(const Operand& operand, std::int64_t bytes) {
  return operand.present() ? operand.view.data + bytes : nullptr;
}

/// The operands of either kind, those that it has not absent.
struct RowNormOperands {
  const Operand &x, &gy, &addend, &out, &sum, &mean, &inv_std, &gamma, &beta;
};

/// A launch has at most kMaxCount blocks.
void run_row_norm(const char* name, const LaunchContext& context, const RowNormOperands& of,
                  double eps) {
  Dtype dtype = of.x.view.dtype, statistics = of.inv_std.view.dtype;
  std::int64_t rows = of.x.view.shape[0], columns = of.x.view.shape[1];
  for (std::int64_t first = 0; first < rows; first += kMaxCount) {
    std::int64_t bytes = first * columns * itemsize(dtype), of_row = first * itemsize(statistics);
    RowNormalizationArgs args = {};
    args.x = data_of(of.x, bytes);
    args.gy = data_of(of.gy, bytes);
    args.addend = data_of(of.addend, bytes);
    args.out = data_of(of.out, bytes);
    args.sum = data_of(of.sum, bytes);
    args.mean = data_of(of.mean, of_row);
    args.inv_std = data_of(of.inv_std, of_row);
    args.gamma = numbers_of(of.gamma, dtype, statistics);
    args.beta = numbers_of(of.beta, dtype, statistics);
    args.rows = std::min(kMaxCount, rows - first);
    args.columns = columns;
    args.vector = columns * itemsize(dtype) % 16 == 0;
    const char* arrays[] = {args.x, args.gy, args.addend, args.out, args.sum};
    for (const char* data : arrays) args.vector = args.vector && is_aligned(data, 16);
    args.eps = eps;
    int group = kBlock;
    RowNormalizationKernel kernel = kernel_of(dtype, of.gy.present(), args, group);
    launch_kernel(name, context, kernel, static_cast<unsigned>(ceil_div(args.rows, kBlock / group)),
                  kBlock, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void RowNormalization::run_cuda(const cuda::LaunchContext& context) {
  if (x.view.size() == 0) return;
  const Operand none;
  cuda::run_row_norm(name(), context, {x, none, addend, y, sum, mean, inv_std, gamma, beta}, eps);
}

void RowNormalizationGrad::run_cuda(const cuda::LaunchContext& context) {
  if (x.view.size() == 0) return;
  const Operand none;
  cuda::run_row_norm(name(), context, {x, gy, addend, gx, none, mean, inv_std, gamma, none}, 0);
}

}  // namespace rensa::operations
