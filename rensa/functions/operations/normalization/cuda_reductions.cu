// Mean and variance, and the two sums of backward, on a GPU: reductions that store more than one
// result.
#include "rensa/core/error.h"
#include "rensa/functions/operations/normalization/cuda_channel_numbers.cuh"
#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/reduce/cuda_kernels.cuh"
#include "rensa/operations/reduce/reduce.h"

namespace rensa::cuda {

namespace {

using operations::Moments;
using operations::NormalizationSums;

// --- mean and variance ---

// `in` is x, `out` the mean.
struct MomentsArgs : ReduceArgs {
  char* inv_std;
  char* running[2];  // mean and variance; null where there are none
  Dtype running_dtype[2];
  double eps, decay, adjust;
};
using MomentsKernel = void (*)(MomentsArgs);

template <class Loader> struct MomentsLoader : Loader { using Args = MomentsArgs; };

template <class Loader>
struct MomentsOf : Reduced<DeviationsReducer<typename Loader::Value>, MomentsLoader<Loader>> {
  using Parent = Reduced<DeviationsReducer<typename Loader::Value>, MomentsLoader<Loader>>;
  using V = typename Loader::Value;

  static __device__ __forceinline__ void store(const MomentsArgs& args,
                                               const typename Parent::Place& place,
                                               std::int64_t column, std::int64_t,
                                               typename Parent::Acc acc) {
    std::int64_t number = (place.offset[0] + column * args.out_stride) / sizeof(V);
    V var = acc.squares / V(args.count);
    reinterpret_cast<V*>(args.out)[number] = acc.mean;
    reinterpret_cast<V*>(args.inv_std)[number] = V(1) / m::sqrt(var + V(args.eps));
    update(args, 0, number, acc.mean);
    update(args, 1, number, var * V(args.adjust));
  }
  static __device__ __forceinline__ void update(const MomentsArgs& args, int k, std::int64_t number,
                                                V found) {
    if (!args.running[k]) return;
    ElementType type;
    type.dtype = args.running_dtype[k];
    type.log2_size = type.dtype == Dtype::float64 ? 3 : type.dtype == Dtype::float32 ? 2 : 1;
    char* p = args.running[k] + (number << type.log2_size);
    V decay = V(args.decay);
    store_any<V>(p, type.dtype, load_any<V>(p, type) * decay + found * (V(1) - decay));
  }
};

// --- two sums ---

// `in` is x, `second` gy, `out` the sums of gy.
struct SumsArgs : ReducePairArgs {
  char* sum_gyx;
  const char *mean, *inv_std;  // mean: null for 0
  std::int64_t sharing;        // outputs that share statistics
  ChannelNumbers gamma, beta;  // of what relu was applied to
  const char *addend, *y;      // of a gy that is made on the way; addend: null for none
  char* gz;
};
using SumsKernel = void (*)(SumsArgs);

// Both inputs of a vector.
template <class T> struct SumsVector {
  using Value = ComputeOf<T>;
  static constexpr int kWidth = 16 / sizeof(T), kRows = 4;
  struct Data {
    Pack<T, kWidth> x, gy;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const SumsArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    return {load_vector<T, kFull>(args.in + offset, left, args.vector),
            load_vector<T, kFull>(args.second + offset, left, args.vector)};
  }
  static __device__ __forceinline__ void finish(const SumsArgs&, Data&, std::int64_t, bool,
                                                std::int64_t) {}
  template <class D>
  static __device__ __forceinline__ Value x(const SumsArgs&, const D& data, int j) {
    return convert<Value>(data.x.value[j]);
  }
  template <class D>
  static __device__ __forceinline__ Value gy(const SumsArgs&, const D& data, int j) {
    return convert<Value>(data.gy.value[j]);
  }
  // As if it had been stored.
  static __device__ __forceinline__ Value rounded(const SumsArgs&, Value value) {
    return convert<Value>(convert<T>(value));
  }
};

// With relu's gradient, and perhaps an addition before it, which gy is the result of.
template <class T> struct SumsMade : SumsVector<T> {
  using Value = ComputeOf<T>;
  static constexpr int kWidth = 16 / sizeof(T), kRows = 2;  // of four inputs
  struct Data {
    Pack<T, kWidth> x, gy, addend, y;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const SumsArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    Data data;
    data.x = load_vector<T, kFull>(args.in + offset, left, args.vector);
    data.gy = load_vector<T, kFull>(args.second + offset, left, args.vector);
    if (args.addend) data.addend = load_vector<T, kFull>(args.addend + offset, left, args.vector);
    data.y = load_vector<T, kFull>(args.y + offset, left, args.vector);
    return data;
  }
  // Turns gy into gz.
  static __device__ __forceinline__ void finish(const SumsArgs& args, Data& data,
                                                std::int64_t offset, bool full, std::int64_t left) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      T sum = data.gy.value[j];
      if (args.addend) {
        sum = convert<T>(convert<Value>(sum) + convert<Value>(data.addend.value[j]));
      }
      bool counts = Value(0) < convert<Value>(data.y.value[j]);
      data.gy.value[j] = convert<T>(m::select(counts, convert<Value>(sum), Value(0)));
    }
    store_pack<T, kWidth>(reinterpret_cast<T*>(args.gz + offset), data.gy, left,
                          full || args.vector);
  }
};

// Both, one element of any dtype at a time.
template <class V> struct SumsAny {
  using Value = V;
  static constexpr int kWidth = 1, kRows = 4;
  struct Data {
    Raw<V> x, gy;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const SumsArgs& args, std::int64_t offset,
                                              std::int64_t) {
    return {load_raw<V>(args.in + offset, args.type.log2_size),
            load_raw<V>(args.second + offset, args.type.log2_size)};
  }
  static __device__ __forceinline__ void finish(const SumsArgs&, Data&, std::int64_t, bool,
                                                std::int64_t) {}
  static __device__ __forceinline__ V x(const SumsArgs& args, const Data& data, int) {
    return convert_raw<V>(data.x, args.type);
  }
  static __device__ __forceinline__ V gy(const SumsArgs& args, const Data& data, int) {
    return convert_raw<V>(data.gy, args.type);
  }
  static __device__ __forceinline__ V rounded(const SumsArgs& args, V value) {
    if (args.type.dtype == Dtype::bfloat16) return convert<V>(convert<bfloat16_t>(value));
    if (args.type.dtype == Dtype::float16) return convert<V>(convert<half_t>(value));
    return value;
  }
};

// What is known of the outputs of a vector before their elements.
template <class V, int W, bool kMasked> struct SumsLines { V mean[W]; };
template <class V, int W> struct SumsLines<V, W, true> { V mean[W], scale[W], beta[W]; };

// What reduce_blocks.h reduces. kMasked: gy counts where relu's input was positive.
template <class Loader, bool kByRow, bool kMasked = false> struct SumsOf {
  using V = typename Loader::Value;
  using Args = SumsArgs;
  using Index = std::int64_t;
  static constexpr int kWidth = Loader::kWidth, kValues = kWidth, kRows = Loader::kRows;
  static constexpr bool kBlockwise = false;
  using Lines = SumsLines<V, kWidth, kMasked>;
  struct Acc {
    V gy, gyx;
  };
  struct Place {
    std::int64_t offset[2];
  };  // of the output, of its elements
  struct Base {
    std::int64_t offset;
    Lines lines;
  };
  struct Data {
    typename Loader::Data data;
    Lines lines;
  };

  static __device__ __forceinline__ Acc identity() { return {V(0), V(0)}; }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) {
    return {a.gy + b.gy, a.gyx + b.gyx};
  }
  static __device__ __forceinline__ std::int64_t number(const Args& args, const Place& place,
                                                        Index column) {
    return (place.offset[0] + column * args.out_stride) / sizeof(V);
  }
  static __device__ __forceinline__ V mean_at(const Args& args, std::int64_t i) {
    return args.mean ? reinterpret_cast<const V*>(args.mean)[i] : V(0);
  }
  static __device__ __forceinline__ V inv_std_at(const Args& args, std::int64_t i) {
    return reinterpret_cast<const V*>(args.inv_std)[i];
  }

  static __device__ __forceinline__ Place place(const Args& args, Index index) {
    Place place;
    args.kept.offsets(static_cast<unsigned>(index), place.offset);
    return place;
  }
  static __device__ __forceinline__ Base base(const Args& args, const Place& place, Index column) {
    Base base = {};
    base.offset = place.offset[1] + column * args.in_stride;
    if constexpr (!kByRow) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        Index mine = min(column + j, static_cast<Index>(args.width) - 1);
        Index s = number(args, place, mine) / args.sharing;
        base.lines.mean[j] = mean_at(args, s);
        if constexpr (kMasked) {
          base.lines.scale[j] = inv_std_at(args, s) * number_of<V>(args.gamma, s, V(1));
          base.lines.beta[j] = number_of<V>(args.beta, s, V(0));
        }
      }
    }
    return base;
  }
  static __device__ __forceinline__ bool loads_whole(const Args& args) { return args.vector; }
  static __device__ __forceinline__ Base vector(const Args& args, const Base& base, Index k) {
    Base vector = base;
    vector.offset += reduced_offset(args, k);
    return vector;
  }
  template <bool kFull>
  static __device__ __forceinline__ Data load(const Args& args, const Base& vector, Index left) {
    Data data;
    data.data = Loader::template load<kFull>(args, vector.offset, left);
    data.lines = vector.lines;
    return data;
  }
  static __device__ __forceinline__ void finish(const Args& args, const Base& vector, Data& data,
                                                bool full, Index left) {
    Loader::finish(args, data.data, vector.offset, full, left);
  }
  static __device__ __forceinline__ Acc take(const Args& args, Acc acc, const Data& data, int j,
                                             Index k, Index) {
    static_assert(kValues == kWidth);
    V x = Loader::x(args, data.data, j), gy = Loader::gy(args, data.data, j);
    V far;
    if constexpr (kByRow) far = (x - mean_at(args, k)) * inv_std_at(args, k);
    else far = x - data.lines.mean[j];
    if constexpr (kMasked) {
      V h = Loader::rounded(args, data.lines.scale[j] * far + data.lines.beta[j]);
      gy = m::select(V(0) < h, gy, V(0));
    }
    return {acc.gy + gy, acc.gyx + gy * far};
  }
  static __device__ __forceinline__ void store(const Args& args, const Place& place, Index column,
                                               Index, Acc acc) {
    std::int64_t i = number(args, place, column);
    reinterpret_cast<V*>(args.out)[i] = acc.gy;
    V scale = V(1);
    if constexpr (!kByRow) scale = inv_std_at(args, i / args.sharing);
    reinterpret_cast<V*>(args.sum_gyx)[i] = acc.gyx * scale;
  }
};

// --- kernels ---

template <class R>
__global__ void __launch_bounds__(kBlock)
    normalization_rows(const __grid_constant__ typename R::Args args) {
  reduce_rows_of<R>(args);
}
template <class R>
__global__ void __launch_bounds__(kBlock)
    normalization_columns(const __grid_constant__ typename R::Args args) {
  reduce_columns_of<R>(args);
}
// Of many inputs, whose registers are kept few enough for two blocks on a multiprocessor.
template <class R>
__global__ void __launch_bounds__(kBlock, 2)
    normalization_wide_columns(const __grid_constant__ typename R::Args args) {
  reduce_columns_of<R>(args);
}

template <class R> auto kernel_of(const ReducePlan& plan) {
  return plan.by_columns ? normalization_columns<R> : normalization_rows<R>;
}

MomentsKernel moments_kernel(const ReducePlan& plan, Dtype statistics) {
  switch (plan.type) {
    case VectorType::f32: return kernel_of<MomentsOf<VectorLoader<float>>>(plan);
    case VectorType::f16: return kernel_of<MomentsOf<VectorLoader<half_t>>>(plan);
    case VectorType::bf16: return kernel_of<MomentsOf<VectorLoader<bfloat16_t>>>(plan);
    case VectorType::f64: return kernel_of<MomentsOf<VectorLoader<double>>>(plan);
    default: break;
  }
  if (statistics == float64) return kernel_of<MomentsOf<AnyLoader<double>>>(plan);
  return kernel_of<MomentsOf<AnyLoader<float>>>(plan);
}

template <bool kByRow, bool kMasked>
SumsKernel sums_kernel(const ReducePlan& plan, Dtype statistics) {
  switch (plan.type) {
    case VectorType::f32: return kernel_of<SumsOf<SumsVector<float>, kByRow, kMasked>>(plan);
    case VectorType::f16: return kernel_of<SumsOf<SumsVector<half_t>, kByRow, kMasked>>(plan);
    case VectorType::bf16: return kernel_of<SumsOf<SumsVector<bfloat16_t>, kByRow, kMasked>>(plan);
    case VectorType::f64: return kernel_of<SumsOf<SumsVector<double>, kByRow, kMasked>>(plan);
    default: break;
  }
  if constexpr (kByRow) {  // whole rows: whoever launches it has made x contiguous
    throw NotImplementedError("normalization sums by rows: x is not contiguous");
  } else {
    if (statistics == float64) return kernel_of<SumsOf<SumsAny<double>, kByRow, kMasked>>(plan);
    return kernel_of<SumsOf<SumsAny<float>, kByRow, kMasked>>(plan);
  }
}

// Null where gy is made before.
SumsKernel made_sums_kernel(const ReducePlan& plan) {
  if (!plan.by_columns) return nullptr;
  switch (plan.type) {
    case VectorType::f32: return normalization_wide_columns<SumsOf<SumsMade<float>, false>>;
    case VectorType::f16: return normalization_wide_columns<SumsOf<SumsMade<half_t>, false>>;
    case VectorType::bf16: return normalization_wide_columns<SumsOf<SumsMade<bfloat16_t>, false>>;
    case VectorType::f64: return normalization_wide_columns<SumsOf<SumsMade<double>, false>>;
    default: return nullptr;
  }
}

SumsKernel sums_kernel(const NormalizationSums& op, const ReducePlan& plan) {
  Dtype statistics = op.sum_gy.view.dtype;
  if (op.y.present()) return made_sums_kernel(plan);
  if (op.by_row) return sums_kernel<true, false>(plan, statistics);
  return op.relu ? sums_kernel<false, true>(plan, statistics)
                 : sums_kernel<false, false>(plan, statistics);
}

// out = ufunc(a, b), of arrays that fill their memory alike.
void run_elementwise(const char* name, Ufunc ufunc, const Operand& a, const Operand& b,
                     const Operand& out, const LaunchContext& context) {
  operations::Elementwise op(name, ufunc);
  op.compute = out.view.dtype;
  op.num_inputs = 2;
  op.in[0].array = a;
  op.in[1].array = b;
  op.out = out;
  for (Operand* operand : {&op.in[0].array, &op.in[1].array, &op.out}) {
    operand->view.shape = Shape{operand->view.size()};
    operand->view.strides = Shape{itemsize(operand->view.dtype)};
  }
  op.run_cuda(context);
}

// A reduction that is spread as this one is, with as much room for partial results.
operations::Reduce reduction_of(const char* name, const Operand& in, const Operand& out,
                                unsigned axes) {
  operations::Reduce reduce(name, reduction::deviations);
  reduce.axes = axes;
  reduce.compute = out.view.dtype;
  reduce.in = in;
  reduce.out = out;
  return reduce;
}

// A launch has at most kMaxCount outputs and blocks, and so many elements where they are taken one
// by one.
void check_extent(const char* operation, const ReducePlan& plan) {
  std::int64_t units =
      plan.by_columns ? plan.blocks.grid : plan.blocks.outputs * plan.blocks.slices;
  if (units <= kMaxCount && (plan.reduced.ndim() == 1 || plan.count <= kMaxCount)) return;
  throw NotImplementedError(std::string(operation) + ": " + plan.kept_in.describe() +
                            " is too large for one kernel");
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t Moments::workspace_bytes() const {
  if (x.view.size() == 0) return 0;
  return cuda::plan_reduce(cuda::reduction_of(name(), x, mean, axes)).workspace_bytes;
}

void Moments::run_cuda(const cuda::LaunchContext& context) {
  if (x.view.size() == 0) return;
  Reduce reduce = cuda::reduction_of(name(), x, mean, axes);
  cuda::ReducePlan plan = cuda::plan_reduce(reduce);
  cuda::check_extent(name(), plan);
  cuda::MomentsArgs args = {};
  static_cast<cuda::ReduceArgs&>(args) =
      cuda::reduce_args(plan, context, compute_type(reduce.compute), false);
  args.inv_std = inv_std.view.data;
  const Operand* running[] = {&running_mean, &running_var};
  for (int k = 0; k < 2; ++k) {
    if (!running[k]->present()) continue;
    args.running[k] = running[k]->view.data;
    args.running_dtype[k] = running[k]->view.dtype;
  }
  args.eps = eps;
  args.decay = decay;
  args.adjust = adjust;
  cuda::launch_kernel(name(), context, cuda::moments_kernel(plan, mean.view.dtype), args.grid,
                      cuda::kBlock, args);
}

std::size_t NormalizationSums::workspace_bytes() const {
  if (sum_gy.view.size() == 0 || x.view.size() == 0) return 0;
  return cuda::plan_reduce(cuda::reduction_of(name(), x, sum_gy, axes)).workspace_bytes;
}

void NormalizationSums::run_cuda(const cuda::LaunchContext& context) {
  if (sum_gy.view.size() == 0) return;
  Reduce reduce = cuda::reduction_of(name(), x, sum_gy, axes);
  cuda::ReducePlan plan = cuda::plan_reduce(reduce);
  cuda::check_extent(name(), plan);
  cuda::SumsKernel kernel = cuda::sums_kernel(*this, plan);
  if (!kernel) {  // gy first
    if (addend.present()) cuda::run_elementwise(name(), ufunc::add, gy, addend, gz, context);
    const Operand& sum = addend.present() ? gz : gy;
    cuda::run_elementwise(name(), ufunc::relu_grad, sum, y, gz, context);
    NormalizationSums rest = *this;
    rest.gy = gz;
    rest.addend = rest.y = rest.gz = Operand();
    return rest.run_cuda(context);
  }
  cuda::SumsArgs args = {};
  static_cast<cuda::ReduceArgs&>(args) =
      cuda::reduce_args(plan, context, compute_type(reduce.compute), false);
  auto data_of = [&](const Operand& operand) {
    if (!operand.present()) return static_cast<char*>(nullptr);
    args.vector &= cuda::is_aligned(operand.view.data, 16);
    return operand.view.data;
  };
  args.second = data_of(gy);
  args.addend = data_of(addend);
  args.y = data_of(y);
  args.gz = data_of(gz);
  args.sum_gyx = sum_gyx.view.data;
  args.mean = mean.present() ? mean.view.data : nullptr;
  args.inv_std = inv_std.view.data;
  args.sharing = group;
  args.gamma = cuda::numbers_of(gamma, sum_gy.view.dtype);
  args.beta = cuda::numbers_of(beta, sum_gy.view.dtype);
  cuda::launch_kernel(name(), context, kernel, args.grid, cuda::kBlock, args);
}

}  // namespace rensa::operations
