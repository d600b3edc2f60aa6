// Attention on a GPU: which kernels an operation takes, the row sums of its gradient and the
// weights that dropout leaves.
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

/// A warp has a row.
template <class T, class V>
__global__ void __launch_bounds__(kBlock)
    attention_row_sums(const __grid_constant__ AttentionArgs args) {
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / 32) + threadIdx.x / 32;
  if (row >= args.batch * args.heads * args.queries) return;
  long long head = row / args.queries, b = head / args.heads;
  int h = static_cast<int>(head % args.heads), i = static_cast<int>(row % args.queries);
  const T* out = row_of<const T>(args.out, b, h, i);
  const T* gout = row_of<const T>(args.gout, b, h, i);
  V sum = 0;
  for (int c = threadIdx.x % 32; c < args.out.width; c += 32) {
    sum = fma(convert<V>(out[c]), convert<V>(gout[c]), sum);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += shuffle_xor(sum, step);
  if (threadIdx.x % 32 == 0) reinterpret_cast<V*>(args.delta)[row] = sum;
}

void launch_row_sums(const LaunchContext& context, const AttentionArgs& args) {
  auto with = [&]<class T, class V>() {
    std::int64_t rows = args.batch * args.heads * args.queries;
    launch_kernel(args.operation, context, attention_row_sums<T, V>, ceil_div(rows, kBlock / 32),
                  kBlock, args);
  };
  switch (args.dtype) {
    case Dtype::float16: return with.template operator()<half_t, float>();
    case Dtype::bfloat16: return with.template operator()<bfloat16_t, float>();
    case Dtype::float32: return with.template operator()<float, float>();
    default: return with.template operator()<double, double>();
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

}  // namespace rensa::cuda

namespace rensa::operations {

void Attention::run_cuda(const cuda::LaunchContext& context) {
  cuda::AttentionArgs args = cuda::args_of(name(), given, context);
  args.out = cuda::rows_of(out);
  args.lse = lse.view.data;
  auto launch = !cuda::has_tensor_core_attention(context, args) ? cuda::launch_exact_attention
                : args.dtype == float32                         ? cuda::launch_float_attention
                                                                : cuda::launch_half_attention;
  launch(context, args);
}

std::size_t AttentionGrad::workspace_bytes() const {
  return static_cast<std::size_t>(lse.view.nbytes());
}

void AttentionGrad::run_cuda(const cuda::LaunchContext& context) {
  cuda::AttentionArgs args = cuda::args_of(name(), given, context);
  args.out = cuda::rows_of(out);
  args.gout = cuda::rows_of(gout);
  args.gquery = cuda::rows_of(gquery);
  args.gkey = cuda::rows_of(gkey);
  args.gvalue = cuda::rows_of(gvalue);
  args.lse = lse.view.data;
  args.delta = static_cast<char*>(context.workspace);
  cuda::launch_row_sums(context, args);
  auto launch = !cuda::has_tensor_core_attention(context, args) ? cuda::launch_exact_attention_grad
                : args.dtype == float32                         ? cuda::launch_float_attention_grad
                                                                : cuda::launch_half_attention_grad;
  launch(context, args);
}

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
