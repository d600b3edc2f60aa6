// Optimizers on a GPU: one launch for all parameters (a few when there are very many, or of several
// dtypes).
#include <algorithm>
#include <string>
#include <type_traits>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/core/update_functors.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"

namespace rensa::cuda {

namespace {

using operations::UpdateParameters;
using operations::UpdateTarget;

constexpr int kUnroll = 2;               // vectors of one thread
constexpr std::size_t kArgsSize = 4096;  // of a launch

// One parameter. `gradient_size` is the logarithm of its elements' size.
template <int kStates> struct TargetArgs {
  char *parameter, *gradient, *narrow;
  const double* numbers;
  char* state[kStates > 0 ? kStates : 1];
  std::int64_t size;
  unsigned first_block;
  Dtype gradient_dtype, narrow_dtype;
  unsigned char set;
  bool vector : 1;         // all arrays may be read and written 16 bytes at a time
  bool same_gradient : 1;  // the gradient has the parameter's dtype
  unsigned char gradient_size : 2;
  // Their elements have 16 bits, and as many as a vector of the parameter are one access.
  bool half_gradient : 1, half_narrow : 1;
};

constexpr int kSets = 4;
// The arguments of a launch but the targets.
template <int kNumbers> struct CommonArgs {
  double value[kSets][kNumbers];
  const double* device[kSets][kNumbers];  // where a replay's value lies, or null
  const double* enabled;                  // or null
  int num_targets, unroll, set_size;
};
template <class Rule> using CommonOf = CommonArgs<Rule::num_hyperparameters>;
template <class Rule> using TargetOf = TargetArgs<Rule::num_states>;
template <class Rule, int kTargets> struct UpdateArgs : CommonOf<Rule> {
  TargetOf<Rule> target[kTargets];
};
constexpr int kFewTargets = 16;
template <class Rule>
constexpr int kManyTargets = (kArgsSize - sizeof(CommonOf<Rule>)) / sizeof(TargetOf<Rule>);

// The target that a block works on: the last one that starts at or before it.
template <class Args> __device__ __forceinline__ int target_of_block(const Args& args) {
  int low = 0, high = args.num_targets;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (blockIdx.x >= args.target[middle].first_block) low = middle;
    else high = middle;
  }
  return low;
}

// W elements of float16 or bfloat16, at a multiple of their bytes.
template <int W, class V>
__device__ __forceinline__ void store_halves(char* p, Dtype dtype, const V (&values)[W]) {
  auto store = [&](auto zero) {
    using H = decltype(zero);
    Pack<H, W> pack;
#pragma unroll
    for (int j = 0; j < W; ++j) pack.value[j] = convert<H>(values[j]);
    *reinterpret_cast<Pack<H, W>*>(p) = pack;
  };
  if (dtype == Dtype::bfloat16) store(bfloat16_t{});
  else store(half_t{});
}

// What a load may count on: nothing; whole vectors, all of one dtype or with a gradient of 16 bits.
enum class Access { any, whole, whole_with_halves };

// One vector of a target's arrays.
template <class Rule, class T> struct TargetVector {
  static constexpr int W = 16 / sizeof(T), kStates = Rule::num_states;
  static constexpr bool kToGradient = Rule::changes == UpdateChanges::gradient;
  using V = ComputeOf<T>;
  Pack<T, W> parameter, gradient, state[kStates > 0 ? kStates : 1];
  V other_gradient[W];                    // where it is of another dtype
  Pack<unsigned short, W> half_gradient;  // the same as it was loaded, before widen()

  __device__ static __forceinline__ char* gradient_at(const TargetOf<Rule>& target,
                                                      std::int64_t index) {
    return target.gradient + (index << target.gradient_size);
  }

  // Of whole vectors no load waits for a condition.
  template <Access kAccess>
  __device__ __forceinline__ void load(const TargetOf<Rule>& target, std::int64_t index,
                                       std::int64_t left) {
    constexpr bool kWhole = kAccess != Access::any;
    auto read = [&](const char* p) {
      const T* elements = reinterpret_cast<const T*>(p) + index;
      if constexpr (kWhole) return *reinterpret_cast<const Pack<T, W>*>(elements);
      else return load_pack<T, W>(elements, left, target.vector, T{});
    };
    parameter = read(target.parameter);
    if constexpr (kAccess == Access::whole_with_halves) {
      half_gradient = *reinterpret_cast<const Pack<unsigned short, W>*>(gradient_at(target, index));
    } else if (kWhole || target.same_gradient) {
      gradient = read(target.gradient);
    } else {
      ElementType type;
      type.dtype = target.gradient_dtype;
      type.log2_size = target.gradient_size;
      for (int j = 0; j < W; ++j) {
        other_gradient[j] = j < left ? load_any<V>(gradient_at(target, index + j), type) : V(0);
      }
    }
#pragma unroll
    for (int k = 0; k < kStates; ++k) state[k] = read(target.state[k]);
  }

  // The gradient that was loaded as halves, in what the rule computes with.
  __device__ __forceinline__ void widen(const TargetOf<Rule>& target) {
    auto convert_all = [&](auto zero) {
      using H = decltype(zero);
      Pack<H, W> halves;
      __builtin_memcpy(&halves, &half_gradient, sizeof(halves));
#pragma unroll
      for (int j = 0; j < W; ++j) other_gradient[j] = convert<V>(halves.value[j]);
    };
    if (target.gradient_dtype == Dtype::bfloat16) convert_all(bfloat16_t{});
    else convert_all(half_t{});
  }

  __device__ __forceinline__ void update(const TargetOf<Rule>& target, const Rule& constants) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      Rule one = constants;
      V* states = reinterpret_cast<V*>(&one);
      V p = convert<V>(parameter.value[j]);
      V g = target.same_gradient ? convert<V>(gradient.value[j]) : other_gradient[j];
#pragma unroll
      for (int k = 0; k < kStates; ++k) states[k] = convert<V>(state[k].value[j]);
      one.apply(p, g);
      parameter.value[j] = convert<T>(p);
      if constexpr (kToGradient) {
        gradient.value[j] = convert<T>(g);
        other_gradient[j] = g;
      }
#pragma unroll
      for (int k = 0; k < kStates; ++k) state[k].value[j] = convert<T>(states[k]);
    }
  }

  __device__ __forceinline__ void store(const TargetOf<Rule>& target, std::int64_t index,
                                        std::int64_t left) const {
    auto write = [&](char* p, const Pack<T, W>& pack) {
      store_pack<T, W>(reinterpret_cast<T*>(p) + index, pack, left, target.vector);
    };
    if constexpr (kToGradient) {
      if (target.same_gradient) return write(target.gradient, gradient);
      if (target.half_gradient && left >= W) {
        return store_halves<W>(gradient_at(target, index), target.gradient_dtype, other_gradient);
      }
      for (int j = 0; j < W && j < left; ++j) {
        store_any(gradient_at(target, index + j), target.gradient_dtype, other_gradient[j]);
      }
    } else {
      write(target.parameter, parameter);
#pragma unroll
      for (int k = 0; k < kStates; ++k) write(target.state[k], state[k]);
      if (!target.narrow) return;
      if (target.half_narrow && left >= W) {
        V values[W];
#pragma unroll
        for (int j = 0; j < W; ++j) values[j] = convert<V>(parameter.value[j]);
        return store_halves<W>(target.narrow + index * 2, target.narrow_dtype, values);
      }
      std::int64_t size = target.narrow_dtype == Dtype::float64   ? 8
                          : target.narrow_dtype == Dtype::float32 ? 4
                                                                  : 2;
      for (int j = 0; j < W && j < left; ++j) {
        store_any(target.narrow + (index + j) * size, target.narrow_dtype,
                  convert<V>(parameter.value[j]));
      }
    }
  }
};

template <class Rule, class T, int kTargets>
__global__ void __launch_bounds__(kBlock)
    update_parameters(const __grid_constant__ UpdateArgs<Rule, kTargets> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = 16 / sizeof(T);
  const TargetOf<Rule>& target = args.target[target_of_block(args)];
  // Nothing is made of what is loaded before all is on its way.
  bool enabled = !args.enabled || *args.enabled != 0;
  double numbers[Rule::num_hyperparameters];
#pragma unroll
  for (int i = 0; i < Rule::num_hyperparameters; ++i) {
    const double* device =
        i < args.set_size ? args.device[target.set][i] : target.numbers + (i - args.set_size);
    numbers[i] = device ? *device : args.value[target.set][i];
  }
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x - target.first_block) * args.unroll;
  TargetVector<Rule, T> vectors[kUnroll];
  bool whole =
      target.vector && args.unroll == kUnroll && (first + kUnroll) * kBlock * W <= target.size;
  auto load_whole = [&](auto access) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W;
      vectors[u].template load<decltype(access)::value>(target, index, W);
    }
  };
  if (whole && target.same_gradient) [[likely]] {
    load_whole(std::integral_constant<Access, Access::whole>());
  } else if (whole && target.half_gradient) {
    load_whole(std::integral_constant<Access, Access::whole_with_halves>());
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) vectors[u].widen(target);
  } else {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W, left = target.size - index;
      if (u < args.unroll && left > 0) {
        vectors[u].template load<Access::any>(target, index, left);
      }
    }
  }
  if (!enabled) return;
  Rule rule{};
  V* constants = reinterpret_cast<V*>(&rule) + Rule::num_states;
#pragma unroll
  for (int i = 0; i < Rule::num_hyperparameters; ++i) constants[i] = static_cast<V>(numbers[i]);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W, left = target.size - index;
    if (u >= args.unroll || left <= 0) continue;
    vectors[u].update(target, rule);
    vectors[u].store(target, index, left);
  }
}

int log2_size(Dtype dtype) { return ElementType(dtype, ComputeType::f64, false).log2_size; }

bool is_half(Dtype dtype) { return dtype == Dtype::float16 || dtype == Dtype::bfloat16; }

template <class Rule, class T> TargetOf<Rule> target_args(const UpdateTarget& target) {
  constexpr std::int64_t kHalves = 16 / sizeof(T) * 2;  // bytes of a vector's elements of 16 bits
  TargetOf<Rule> args = {};
  const ArrayView &p = target.parameter.view, &g = target.gradient.view;
  args.parameter = p.data;
  args.gradient = g.data;
  args.size = p.size();
  args.gradient_dtype = g.dtype;
  args.gradient_size = static_cast<unsigned char>(log2_size(g.dtype));
  args.same_gradient = g.dtype == p.dtype;
  bool vector = is_aligned(p.data, 16) && (!args.same_gradient || is_aligned(g.data, 16));
  for (std::size_t k = 0; k < target.states.size(); ++k) {
    args.state[k] = target.states[k].view.data;
    vector = vector && is_aligned(args.state[k], 16);
  }
  args.vector = vector;
  args.half_gradient = !args.same_gradient && is_half(g.dtype) && is_aligned(g.data, kHalves);
  if (target.narrow.present()) {
    args.narrow = target.narrow.view.data;
    args.narrow_dtype = target.narrow.view.dtype;
    args.half_narrow = is_half(args.narrow_dtype) && is_aligned(args.narrow, kHalves);
  }
  if (target.numbers.present()) {
    args.numbers = reinterpret_cast<const double*>(target.numbers.view.data);
  }
  return args;
}

// Targets whose parameters are of T, and their sets, as many as go into one launch.
template <class Rule, class T> class Batch {
 public:
  Batch(const UpdateParameters& op, const LaunchContext& context) : op_(op), context_(context) {
    common_.set_size = op.set_size;
    if (op.enabled.present()) {
      common_.enabled = reinterpret_cast<const double*>(op.enabled.view.data);
    }
  }

  void add(const UpdateTarget& target) {
    int set = op_.set_size == 0 ? 0 : place_of(target.set);
    if (count_ == kManyTargets<Rule> || set == kSets) {
      launch();
      set = op_.set_size == 0 ? 0 : place_of(target.set);
    }
    if (set == num_sets_ && op_.set_size > 0) add_set(target.set);
    targets_[count_] = target_args<Rule, T>(target);
    targets_[count_++].set = static_cast<unsigned char>(set);
  }

  void launch() {
    if (count_ == 0) return;
    if (count_ <= kFewTargets) launch_up_to<kFewTargets>();
    else launch_up_to<kManyTargets<Rule>>();
    count_ = num_sets_ = 0;
  }

 private:
  /// Where the set stands, num_sets_ where it does not yet.
  int place_of(int set) const {
    return static_cast<int>(std::find(sets_, sets_ + num_sets_, set) - sets_);
  }

  void add_set(int set) {
    for (int i = 0; i < op_.set_size; ++i) {
      const HostScalar& number =
          op_.hyperparameters[static_cast<std::size_t>(set * op_.set_size + i)];
      common_.value[num_sets_][i] = number.real;
      common_.device[num_sets_][i] = static_cast<const double*>(number.device);
    }
    sets_[num_sets_++] = set;
  }

  template <int kTargets> void launch_up_to() {
    constexpr std::int64_t kChunk = kBlock * 16 / sizeof(T);  // of a block, not unrolled
    UpdateArgs<Rule, kTargets> args = {};
    static_assert(sizeof(args) <= kArgsSize);
    static_cast<CommonOf<Rule>&>(args) = common_;
    std::int64_t chunks = 0, blocks = 0;
    for (int i = 0; i < count_; ++i) chunks += ceil_div(targets_[i].size, kChunk);
    args.unroll = chunks > 4 * kMultiprocessors ? kUnroll : 1;
    for (int i = 0; i < count_; ++i) {
      args.target[i] = targets_[i];
      args.target[i].first_block = static_cast<unsigned>(blocks);
      blocks += ceil_div(targets_[i].size, kChunk * args.unroll);
    }
    args.num_targets = count_;
    launch_kernel(op_.name(), context_, update_parameters<Rule, T, kTargets>, blocks, kBlock, args);
  }

  const UpdateParameters& op_;
  const LaunchContext& context_;
  CommonOf<Rule> common_ = {};
  TargetOf<Rule> targets_[kManyTargets<Rule>];
  int count_ = 0, num_sets_ = 0, sets_[kSets] = {};
};

// Updates the targets whose parameters are of T.
template <template <class> class Rule, class T>
void launch_rule(const UpdateParameters& op, const LaunchContext& context) {
  auto is_mine = [](const UpdateTarget& target) {
    return target.parameter.view.dtype == dtype_of<T> && target.parameter.view.size() > 0;
  };
  if (std::none_of(op.targets.begin(), op.targets.end(), is_mine)) return;
  Batch<Rule<ComputeOf<T>>, T> batch(op, context);
  for (const UpdateTarget& target : op.targets) {
    if (is_mine(target)) batch.add(target);
  }
  batch.launch();
}

void check_targets(const UpdateParameters& op) {
  for (const UpdateTarget& target : op.targets) {
    const ArrayView& p = target.parameter.view;
    bool fits = dtype_kind(p.dtype) == 'f';
    for (const Operand& state : target.states) fits &= state.view.dtype == p.dtype;
    if (fits) continue;
    throw DtypeError(std::string(op.name()) + ": the parameter " + p.describe() +
                     " is not of a floating dtype that its states share");
  }
}

// --- sums of squares ---

constexpr int kSumElements = 16;  // of one thread

struct SumArgs {
  static constexpr int kArrays = 120;
  struct Source {
    const char* data;
    std::int64_t size;
    unsigned first_block;
    Dtype dtype;
  };
  Source target[kArrays];
  int num_targets;
  double *parts, *sums, *total;  // of the blocks, of these arrays, of all; total null: not yet
  const double* all_sums;
  int num_all;
  unsigned* semaphore;
};
static_assert(sizeof(SumArgs) <= kArgsSize);

template <class T>
__device__ __forceinline__ double sum_of_thread(const SumArgs::Source& source, std::int64_t first) {
  double sum = 0;
#pragma unroll
  for (int j = 0; j < kSumElements; ++j) {
    std::int64_t index = first + static_cast<std::int64_t>(j) * kBlock;
    double value =
        index < source.size ? convert<double>(reinterpret_cast<const T*>(source.data)[index]) : 0.0;
    sum += value * value;
  }
  return sum;
}

__global__ void __launch_bounds__(kBlock) square_parts(const __grid_constant__ SumArgs args) {
  wait_for_previous();
  const SumArgs::Source& source = args.target[target_of_block(args)];
  std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x - source.first_block) * kBlock * kSumElements +
      threadIdx.x;
  double sum = 0;
  switch (source.dtype) {
    case Dtype::float16: sum = sum_of_thread<half_t>(source, first); break;
    case Dtype::bfloat16: sum = sum_of_thread<bfloat16_t>(source, first); break;
    case Dtype::float32: sum = sum_of_thread<float>(source, first); break;
    default: sum = sum_of_thread<double>(source, first); break;
  }
  sum = join_block<SumOf<double>, kBlock>(sum);
  if (threadIdx.x == 0) args.parts[blockIdx.x] = sum;
}

std::int64_t sum_blocks(std::int64_t size) { return ceil_div(size, kBlock * kSumElements); }

// One warp per array; the last block adds all up.
__global__ void __launch_bounds__(kBlock) join_square_parts(const __grid_constant__ SumArgs args) {
  wait_for_previous();
  int array = static_cast<int>(blockIdx.x * (kBlock / 32) + threadIdx.x / 32);
  int lane = static_cast<int>(threadIdx.x % 32);
  if (array < args.num_targets) {
    const SumArgs::Source& source = args.target[array];
    constexpr std::int64_t kElements = static_cast<std::int64_t>(kBlock) * kSumElements;
    std::int64_t count = (source.size + kElements - 1) / kElements;
    double sum = 0;
    for (std::int64_t i = lane; i < count; i += 32) sum += args.parts[source.first_block + i];
    sum = join_lanes<SumOf<double>>(sum);
    if (lane == 0) args.sums[array] = sum;
  }
  if (!args.total) return;
  if (!is_last_block(args.semaphore, gridDim.x) || threadIdx.x >= 32) return;
  double sum = 0;
  for (int i = lane; i < args.num_all; i += 32) sum += __ldcg(args.all_sums + i);
  sum = join_lanes<SumOf<double>>(sum);
  if (lane == 0) *args.total = sum;
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void UpdateParameters::run_cuda(const cuda::LaunchContext& context) {
  cuda::check_targets(*this);
  switch (rule) {
#define RENSA_UPDATE_RULE(name, ...)                             \
  case UpdateRuleId::name:                                       \
    cuda::launch_rule<update::name, float>(*this, context);      \
    cuda::launch_rule<update::name, half_t>(*this, context);     \
    cuda::launch_rule<update::name, bfloat16_t>(*this, context); \
    return cuda::launch_rule<update::name, double>(*this, context);
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
  }
}

std::size_t SquaredSums::workspace_bytes() const {
  std::int64_t blocks = 1;
  for (const Operand& operand : in) blocks += cuda::sum_blocks(operand.view.size());
  return static_cast<std::size_t>(blocks) * sizeof(double);
}

void SquaredSums::run_cuda(const cuda::LaunchContext& context) {
  auto* sums = reinterpret_cast<double*>(out.view.data);
  int count = static_cast<int>(in.size()), begin = 0;
  do {  // once where there is no array
    cuda::SumArgs args = {};
    args.num_targets = std::min(count - begin, cuda::SumArgs::kArrays);
    args.parts = static_cast<double*>(context.workspace);
    args.sums = sums + begin;
    args.all_sums = sums;
    args.num_all = count;
    args.semaphore = context.semaphores;
    std::int64_t blocks = 0;
    for (int i = 0; i < args.num_targets; ++i) {
      const ArrayView& view = in[static_cast<std::size_t>(begin + i)].view;
      args.target[i] = {view.data, view.size(), static_cast<unsigned>(blocks), view.dtype};
      blocks += cuda::sum_blocks(view.size());
    }
    begin += args.num_targets;
    if (begin == count) args.total = sums + count;
    if (blocks > 0) {
      cuda::launch_kernel(name(), context, cuda::square_parts, blocks, cuda::kBlock, args);
    }
    cuda::launch_kernel(name(), context, cuda::join_square_parts,
                        std::max<std::int64_t>(1, ceil_div(args.num_targets, cuda::kBlock / 32)),
                        cuda::kBlock, args);
  } while (begin < count);
}

}  // namespace rensa::operations
