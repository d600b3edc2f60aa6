// Attention by the kernels here: which ones an operation takes, the row sums of its gradient and
// the weights that dropout leaves.
#include "rensa/core/error.h"
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/cuda_masks.cuh"

namespace rensa::cuda {

namespace {

int checked_int(const char* operation, std::int64_t n) {
  if (n < std::int64_t{1} << 30) return static_cast<int>(n);
  throw ValueError(std::string(operation) + ": " + std::to_string(n) +
                   " rows or heads; the kernels take fewer than 2^30");
}

HeadRows rows_of(const Operand& operand) {
  HeadRows rows;
  if (!operand.present()) return rows;
  const ArrayView& view = operand.view;
  std::int64_t size = itemsize(view.dtype);
  rows.data = view.data;
  rows.batch = view.strides[0] / size;
  rows.head = view.strides[1] / size;
  rows.row = view.strides[2] / size;
  rows.width = static_cast<int>(view.shape[3]);
  auto whole = [&](int axis) { return view.shape[axis] == 1 || view.strides[axis] % 16 == 0; };
  rows.vector = is_aligned(view.data, 16) && whole(0) && whole(1) && whole(2) &&
                view.shape[3] * size % 16 == 0;
  return rows;
}

AttentionArgs args_of(const char* operation, const operations::AttentionGiven& given,
                      const LaunchContext& context) {
  AttentionArgs args = {};
  const Shape &query = given.query.view.shape, &key = given.key.view.shape;
  args.query = rows_of(given.query);
  args.key = rows_of(given.key);
  args.value = rows_of(given.value);
  args.dtype = given.query.view.dtype;
  if (given.mask.present()) {
    const ArrayView& mask = given.mask.view;
    args.mask = mask.data;
    args.mask_dtype = mask.dtype;
    for (int axis = 0; axis < 4; ++axis) {
      args.mask_strides[axis] = mask.shape[axis] == 1 ? 0 : mask.strides[axis];
    }
  }
  if (given.lengths.present()) {
    args.lengths = reinterpret_cast<const long long*>(given.lengths.view.data);
  }
  if (given.slopes.present()) args.slopes = given.slopes.view.data;
  args.batch = query[0];
  args.heads = checked_int(operation, query[1]);
  args.groups = checked_int(operation, key[1]);
  args.queries = checked_int(operation, query[2]);
  args.keys = checked_int(operation, key[2]);
  args.scale = given.scale;
  args.dropout_ratio = given.dropout_ratio;
  args.causal = given.causal;
  args.tf32 = given.tf32;
  args.seed = given.seed;
  args.offset = given.offset;
  args.error_word = static_cast<ErrorWord*>(context.error_word);
  args.operation = operation;
  return args;
}

/// Rows are numbered as they lie in memory: heads inside of rows, or the other way.
struct RowSumsArgs {
  HeadRows out, gout;
  char* delta;
  long long rows, heads, queries;
  int log2_lanes;  // of the threads that share a row
  bool heads_inside;
};

/// Quick: rows of whole vectors, less than 2^30 of them.
template <class T, bool kQuick> struct RowSums {
  using Div = std::conditional_t<kQuick, FastDiv, PlainDiv>;
  using I = std::conditional_t<kQuick, unsigned, long long>;
  // A thread has parts of as many rows, so that their loads are on their way together.
  static constexpr int kRows = kQuick ? 2 : 1;
  RowSumsArgs of;
  Div by_batch, by_inner;

  explicit RowSums(const RowSumsArgs& args)
      : of(args),
        by_batch(args.heads * args.queries),
        by_inner(args.heads_inside ? args.heads : args.queries) {}

  struct Place {
    I b, h, i;
  };
  __device__ __forceinline__ Place place_of(I row) const {
    I b = static_cast<I>(by_batch.divide(row));
    row -= b * static_cast<I>(by_batch.divisor);
    I outer = static_cast<I>(by_inner.divide(row));
    I inner = row - outer * static_cast<I>(by_inner.divisor);
    return of.heads_inside ? Place{b, inner, outer} : Place{b, outer, inner};
  }
};

/// delta = the sums over the last axis of out * gout, each added in an order that the width and the
/// dtype tell.
template <class T, bool kQuick>
__global__ void __launch_bounds__(kBlock)
    attention_row_sums(const __grid_constant__ RowSums<T, kQuick> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  using I = typename RowSums<T, kQuick>::I;
  constexpr int W = Vector<T>::W, kRows = RowSums<T, kQuick>::kRows;
  const RowSumsArgs& of = args.of;
  int lanes = 1 << of.log2_lanes, lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  int groups = kBlock >> of.log2_lanes;
  I first = blockIdx.x * static_cast<I>(kRows * groups) + (threadIdx.x >> of.log2_lanes);
  I last = static_cast<I>(of.rows - 1);
  const T *out[kRows], *gout[kRows];
  V sums[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    I row = first + static_cast<I>(r * groups);
    auto place = args.place_of(row < last ? row : last);  // the last one more often
    int h = static_cast<int>(place.h), i = static_cast<int>(place.i);
    out[r] = row_of<const T>(of.out, place.b, h, i);
    gout[r] = row_of<const T>(of.gout, place.b, h, i);
  }
  for (int c = lane * W; c < of.out.width; c += lanes * W) {
    Vector<T> x[kRows], y[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kQuick) {
        x[r].load(out[r] + c), y[r].load(gout[r] + c);
      } else {
        x[r].set(load_pack<T, W>(out[r] + c, of.out.width - c, of.out.vector, T(0.0f)));
        y[r].set(load_pack<T, W>(gout[r] + c, of.out.width - c, of.gout.vector, T(0.0f)));
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) x[r].keep(), y[r].keep();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int j = 0; j < W; ++j) sums[r] = fma(x[r].value(j), y[r].value(j), sums[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    for (int step = lanes / 2; step > 0; step /= 2) sums[r] += shuffle_xor(sums[r], step);
    I row = first + static_cast<I>(r * groups);
    if (lane != 0 || row > last) continue;
    auto place = args.place_of(row);
    long long to = (place.b * of.heads + place.h) * of.queries + place.i;
    reinterpret_cast<V*>(of.delta)[to] = sums[r];
  }
}

template <class T, bool kQuick>
void launch_row_sums_of(const LaunchContext& context, const AttentionArgs& args,
                        const RowSumsArgs& sums) {
  std::int64_t of_block = RowSums<T, kQuick>::kRows * (kBlock >> sums.log2_lanes);
  launch_kernel(args.operation, context, attention_row_sums<T, kQuick>,
                ceil_div(sums.rows, of_block), kBlock, RowSums<T, kQuick>(sums));
}

void launch_row_sums(const LaunchContext& context, const AttentionArgs& args) {
  RowSumsArgs sums = {args.out, args.gout, args.delta};
  sums.heads = args.heads;
  sums.queries = args.queries;
  sums.rows = args.batch * sums.heads * sums.queries;
  sums.heads_inside = args.out.head < args.out.row;
  if (sums.rows == 0) return;
  auto with = [&]<class T>() {
    int vectors = static_cast<int>(ceil_div(args.out.width, Vector<T>::W));
    while (sums.log2_lanes < 5 && 1 << sums.log2_lanes < vectors) ++sums.log2_lanes;
    bool quick = args.out.vector && args.gout.vector && sums.rows < std::int64_t{1} << 30;
    if (quick) launch_row_sums_of<T, true>(context, args, sums);
    else launch_row_sums_of<T, false>(context, args, sums);
  };
  switch (args.dtype) {
    case Dtype::float16: return with.template operator()<half_t>();
    case Dtype::bfloat16: return with.template operator()<bfloat16_t>();
    case Dtype::float32: return with.template operator()<float>();
    default: return with.template operator()<double>();
  }
}

struct DropoutArgs {
  char* out;
  std::int64_t size, queries, keys;
  double ratio;
  HostScalar seed, offset;
};

template <class V>
__global__ void __launch_bounds__(kBlock)
    attention_dropout(const __grid_constant__ DropoutArgs args) {
  wait_for_previous();
  std::int64_t place = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (place >= args.size) return;
  AttentionDropoutWords words(static_cast<unsigned long long>(integer_of(args.seed)),
                              static_cast<unsigned long long>(integer_of(args.offset)),
                              args.queries, args.keys, args.ratio);
  std::int64_t row = place / args.keys;
  bool kept = words.keeps(row / args.queries, row % args.queries, place % args.keys);
  reinterpret_cast<V*>(args.out)[place] = kept ? 1 / (V(1) - static_cast<V>(args.ratio)) : V(0);
}

}  // namespace

void run_attention(const operations::Attention& op, const LaunchContext& context) {
  AttentionArgs args = args_of(op.name(), op.given, context);
  args.out = rows_of(op.out);
  args.lse = op.lse.view.data;
  auto launch = !has_tensor_core_attention(context, args) ? launch_exact_attention
                : args.dtype == float32                   ? launch_float_attention
                                                          : launch_half_attention;
  launch(context, args);
}

void run_attention_grad(const operations::AttentionGrad& op, const LaunchContext& context) {
  AttentionArgs args = args_of(op.name(), op.given, context);
  args.out = rows_of(op.out);
  args.gout = rows_of(op.gout);
  args.gquery = rows_of(op.gquery);
  args.gkey = rows_of(op.gkey);
  args.gvalue = rows_of(op.gvalue);
  args.lse = op.lse.view.data;
  args.delta = static_cast<char*>(context.workspace);
  launch_row_sums(context, args);
  auto launch = !has_tensor_core_attention(context, args) ? launch_exact_attention_grad
                : args.dtype == float32                   ? launch_float_attention_grad
                                                          : launch_half_attention_grad;
  launch(context, args);
}

}  // namespace rensa::cuda

namespace rensa::operations {

void AttentionDropout::run_cuda(const cuda::LaunchContext& context) {
  const Shape& shape = out.view.shape;
  cuda::DropoutArgs args = {out.view.data, out.view.size(), shape[2], shape[3], ratio,
                            seed,          offset};
  auto kernel =
      out.view.dtype == float64 ? cuda::attention_dropout<double> : cuda::attention_dropout<float>;
  cuda::launch_kernel(name(), context, kernel, ceil_div(args.size, cuda::kBlock), cuda::kBlock,
                      args);
}

}  // namespace rensa::operations
