// The optimizers' update rules on a GPU: one launch for all parameters (a few when there are very
// many, or of several dtypes).
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/core/update_functors.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace cuda {

namespace {

constexpr int kUnroll = 2;  // vectors of one thread

struct TargetArgs {
  char* parameter;
  const char* gradient;
  char* state[kMaxStates];
  std::int64_t size;
  unsigned first_block;
  ElementType gradient_type;
  bool vector;         // all arrays may be read and written 16 bytes at a time
  bool same_gradient;  // the gradient has the parameter's dtype
};

// The arguments of a launch of up to kTargets; those of the larger kind fill 4 KB.
template <int kTargets> struct UpdateArgs {
  double value[kMaxHyperparameters];
  const double* device[kMaxHyperparameters];  // where a replay's value lies, or null
  int num_targets;
  int unroll;
  TargetArgs target[kTargets];
};
constexpr int kFewTargets = 16, kManyTargets = 60;
static_assert(sizeof(UpdateArgs<kManyTargets>) <= 4096);

// The target that a block works on: the last one that starts at or before it.
template <int kTargets>
__device__ __forceinline__ int target_of_block(const UpdateArgs<kTargets>& args) {
  int low = 0, high = args.num_targets;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (blockIdx.x >= args.target[middle].first_block) low = middle;
    else high = middle;
  }
  return low;
}

// One vector of a target's arrays.
template <class T, int kStates> struct Elements {
  static constexpr int W = 16 / sizeof(T);
  using V = ComputeOf<T>;
  Pack<T, W> parameter, gradient, state[kStates > 0 ? kStates : 1];
  V other_gradient[W];  // where it is of another dtype

  // kWhole: all is there, lies right and is of one dtype, so that all loads go out at once.
  template <bool kWhole>
  __device__ __forceinline__ void load(const TargetArgs& target, std::int64_t index,
                                       std::int64_t left) {
    auto read = [&](const char* p) {
      const T* elements = reinterpret_cast<const T*>(p) + index;
      if constexpr (kWhole) return *reinterpret_cast<const Pack<T, W>*>(elements);
      else return load_pack<T, W>(elements, left, target.vector, T{});
    };
    parameter = read(target.parameter);
    if (kWhole || target.same_gradient) {
      gradient = read(target.gradient);
    } else {
      for (int j = 0; j < W; ++j) {
        std::int64_t at = (index + j) << target.gradient_type.log2_size;
        other_gradient[j] =
            j < left ? load_any<V>(target.gradient + at, target.gradient_type) : V(0);
      }
    }
#pragma unroll
    for (int k = 0; k < kStates; ++k) state[k] = read(target.state[k]);
  }

  template <class Rule>
  __device__ __forceinline__ void update(const TargetArgs& target, const V* h) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      V p = convert<V>(parameter.value[j]), s[kMaxStates] = {};
      V g = target.same_gradient ? convert<V>(gradient.value[j]) : other_gradient[j];
#pragma unroll
      for (int k = 0; k < kStates; ++k) s[k] = convert<V>(state[k].value[j]);
      Rule::apply(p, g, s[0], s[1], h);
      parameter.value[j] = convert<T>(p);
#pragma unroll
      for (int k = 0; k < kStates; ++k) state[k].value[j] = convert<T>(s[k]);
    }
  }

  __device__ __forceinline__ void store(const TargetArgs& target, std::int64_t index,
                                        std::int64_t left) const {
    auto write = [&](char* p, const Pack<T, W>& pack) {
      store_pack<T, W>(reinterpret_cast<T*>(p) + index, pack, left, target.vector);
    };
    write(target.parameter, parameter);
#pragma unroll
    for (int k = 0; k < kStates; ++k) write(target.state[k], state[k]);
  }
};

template <class Rule, class T, int kTargets>
__global__ void __launch_bounds__(kBlock)
    update_parameters(const __grid_constant__ UpdateArgs<kTargets> args) {
  using V = ComputeOf<T>;
  constexpr int W = 16 / sizeof(T);
  const TargetArgs& target = args.target[target_of_block(args)];
  V h[kMaxHyperparameters];
#pragma unroll
  for (int i = 0; i < kMaxHyperparameters; ++i) {
    h[i] = static_cast<V>(args.device[i] ? *args.device[i] : args.value[i]);
  }
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x - target.first_block) * args.unroll;
  Elements<T, Rule::num_states> elements[kUnroll];
  bool whole = target.vector && target.same_gradient && args.unroll == kUnroll &&
               (first + kUnroll) * kBlock * W <= target.size;
  if (whole) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W;
      elements[u].template load<true>(target, index, W);
    }
  } else {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W, left = target.size - index;
      if (u < args.unroll && left > 0) elements[u].template load<false>(target, index, left);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    std::int64_t index = ((first + u) * kBlock + threadIdx.x) * W, left = target.size - index;
    if (u >= args.unroll || left <= 0) continue;
    elements[u].template update<Rule>(target, h);
    elements[u].store(target, index, left);
  }
}

TargetArgs target_args(const UpdateTarget& target, int num_states) {
  TargetArgs args = {};
  const ArrayView &p = target.parameter.view, &g = target.gradient.view;
  args.parameter = p.data;
  args.gradient = g.data;
  args.size = p.size();
  args.gradient_type = ElementType(g.dtype, compute_type(p.dtype), false);
  args.same_gradient = g.dtype == p.dtype;
  args.vector = is_aligned(p.data, 16) && (!args.same_gradient || is_aligned(g.data, 16));
  for (int k = 0; k < num_states; ++k) {
    args.state[k] = target.states[k].view.data;
    args.vector &= is_aligned(args.state[k], 16);
  }
  return args;
}

template <class Rule, class T, int kTargets>
void launch_some(const UpdateParameters& op, const LaunchContext& context,
                 const TargetArgs* targets, int count) {
  constexpr std::int64_t kChunk = kBlock * 16 / sizeof(T);  // elements of a block, not unrolled
  UpdateArgs<kTargets> args = {};
  for (int i = 0; i < op.num_hyperparameters; ++i) {
    args.value[i] = op.hyperparameters[i].real;
    args.device[i] = static_cast<const double*>(op.hyperparameters[i].device);
  }
  std::int64_t chunks = 0, blocks = 0;
  for (int i = 0; i < count; ++i) chunks += ceil_div(targets[i].size, kChunk);
  args.unroll = chunks > 4 * kMultiprocessors ? kUnroll : 1;
  for (int i = 0; i < count; ++i) {
    args.target[i] = targets[i];
    args.target[i].first_block = static_cast<unsigned>(blocks);
    blocks += ceil_div(targets[i].size, kChunk * args.unroll);
  }
  args.num_targets = count;
  launch_kernel(op.name(), context, update_parameters<Rule, T, kTargets>, blocks, kBlock, args);
}

// Updates the targets whose parameters are of T.
template <class Rule, class T>
void launch_rule(const UpdateParameters& op, const LaunchContext& context) {
  TargetArgs targets[kManyTargets];
  int count = 0;
  auto flush = [&] {
    if (count == 0) return;
    if (count <= kFewTargets) launch_some<Rule, T, kFewTargets>(op, context, targets, count);
    else launch_some<Rule, T, kManyTargets>(op, context, targets, count);
    count = 0;
  };
  for (const UpdateTarget& target : op.targets) {
    if (target.parameter.view.dtype != dtype_of<T> || target.parameter.view.size() == 0) continue;
    targets[count++] = target_args(target, Rule::num_states);
    if (count == kManyTargets) flush();
  }
  flush();
}

void check_targets(const UpdateParameters& op) {
  for (const UpdateTarget& target : op.targets) {
    const ArrayView& p = target.parameter.view;
    bool fits = dtype_kind(p.dtype) == 'f';
    for (int k = 0; k < op.num_states; ++k) fits &= target.states[k].view.dtype == p.dtype;
    if (fits) continue;
    throw DtypeError(std::string(op.name()) + ": the parameter " + p.describe() +
                     " is not of a floating dtype that its states share");
  }
}

}  // namespace

}  // namespace cuda

void UpdateParameters::run_cuda(const cuda::LaunchContext& context) {
  cuda::check_targets(*this);
  switch (rule) {
#define RENSA_UPDATE_RULE(name, states, ...)                     \
  case UpdateRuleId::name:                                       \
    cuda::launch_rule<update::name, float>(*this, context);      \
    cuda::launch_rule<update::name, half_t>(*this, context);     \
    cuda::launch_rule<update::name, bfloat16_t>(*this, context); \
    return cuda::launch_rule<update::name, double>(*this, context);
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
  }
}

}  // namespace rensa
