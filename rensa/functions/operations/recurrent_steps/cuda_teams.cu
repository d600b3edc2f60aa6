// The times of a recurrent layer whose weight is spread over the GPU's shared memory. Diamos et
// al., "Persistent RNNs: Stashing Recurrent Weights On-Chip" (2016), is the idea: a weight is read
// once for all times, and what goes from block to block at a time is the last output.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/functions/operations/recurrent_steps/cells.h"
#include "rensa/functions/operations/recurrent_steps/cuda_teams.h"
#include "rensa/functions/operations/recurrent_steps/teams.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

namespace {

constexpr int kRows = RecurrentTeams::kRows, kUnits = RecurrentTeams::kUnits,
              kThreads = RecurrentTeams::kThreads, kRowsEach = RecurrentTeams::kRowsEach;
constexpr int kWarps = kThreads / 32;

struct TeamArgs {
  RecurrentArgs layer;
  int row_fours;
  bool vectors;             // rows of N floats lie at multiples of 16 bytes
  unsigned* arrivals;       // a counter for each team, zero
  unsigned arrival_stride;  // from a team's counter to the next one's
};

/// Where the blocks of a team meet after each time.
struct Meeting {
  unsigned* arrivals;
  unsigned blocks, times;

  /// What the block has written is seen by those that have awaited this. Behind the last time the
  /// last block leaves the counter zero: nobody waits any more.
  __device__ void arrive() const {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(arrivals, 1u) + 1 == blocks * times) atomicExch(arrivals, 0u);
  }
  __device__ void await(unsigned time) const {
    if (threadIdx.x == 0) {
      while (*const_cast<volatile unsigned*>(arrivals) < blocks * time) {}
      __threadfence();
    }
    __syncthreads();
  }
};

/// One row of n floats behind `row` in memory, zeros behind it, by a warp. What other blocks write
/// while the kernel runs is in no L1 cache.
__device__ __forceinline__ void load_row(const TeamArgs& args, const float* row, float4* to) {
  int n = args.layer.units, lane = threadIdx.x % 32;
  if (args.vectors) {
    for (int k = lane; k < args.row_fours; k += 32) {
      to[k] = row && 4 * k < n ? __ldcg(reinterpret_cast<const float4*>(row) + k) : float4{};
    }
  } else {
    for (int k = lane; k < 4 * args.row_fours; k += 32) {
      reinterpret_cast<float*>(to)[k] = row && k < n ? __ldcg(row + k) : 0.f;
    }
  }
}

/// The block's rows of the weight: of each part its kUnits units.
template <int kParts>
__device__ __forceinline__ void load_weight(const TeamArgs& args, int direction, float4* weight) {
  int n = args.layer.units;
  for (int k = threadIdx.x / 32; k < kParts * kUnits; k += kWarps) {
    int part = direction * kParts + k / kUnits, unit = blockIdx.x * kUnits + k % kUnits;
    const float* row = args.layer.weight + (std::int64_t{part} * n + unit) * n;
    load_row(args, unit < n ? row : nullptr, weight + k * args.row_fours);
  }
}

/// A thread's share of the products of a tile: kRowsEach rows by kColumns, of every kSlices-th four
/// of the sums.
template <int kParts> struct Share {
  static constexpr int kUnitsEach = RecurrentTeams::units_each(kParts);
  static constexpr int kColumns = kParts * kUnitsEach;
  static constexpr int kOfSlice = RecurrentTeams::threads_of_slice(kParts);
  static constexpr int kSlices = RecurrentTeams::slices(kParts);
  static constexpr int kRowStep = kRows / kRowsEach, kUnitStep = kUnits / kUnitsEach;

  int slice = threadIdx.x / kOfSlice;
  int row = threadIdx.x % kRowStep;  // row + i * kRowStep are its rows
  int unit = threadIdx.x % kOfSlice / kRowStep;
  float sums[kRowsEach][kColumns] = {};

  // Column j, as rows of the weight are numbered.
  __device__ __forceinline__ int column(int j) const {
    return kParts == 1 ? unit + j * kUnitStep : j * kUnits + unit;
  }
  __device__ __forceinline__ void add(const float4* h, const float4* weight, int row_fours) {
    for (int k = slice; k < row_fours; k += kSlices) {
      float4 w[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) w[j] = weight[column(j) * row_fours + k];
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i) {
        float4 a = h[(row + i * kRowStep) * row_fours + k];
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          sums[i][j] += a.x * w[j].x;
          sums[i][j] += a.y * w[j].y;
          sums[i][j] += a.z * w[j].z;
          sums[i][j] += a.w * w[j].w;
        }
      }
    }
  }
  /// Leaves them where total() finds them: [slice][part][row][unit].
  __device__ __forceinline__ void store(float* parts) const {
    parts += slice * RecurrentTeams::slice_stride(kParts);
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        int part = column(j) / kUnits, of_part = column(j) % kUnits;
        parts[(part * kRows + row + i * kRowStep) * kUnits + of_part] = sums[i][j];
      }
    }
  }
  /// The sum of a part for the thread's own output.
  static __device__ __forceinline__ float total(const float* parts, int part) {
    float sum = 0;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      sum += parts[s * RecurrentTeams::slice_stride(kParts) + part * kRows * kUnits + threadIdx.x];
    }
    return sum;
  }
};

/// Of a tile the output that is the thread's: behind the products it does what a unit does.
template <class Unit> struct Output {
  static constexpr int kParts = Unit::kParts;
  bool there;
  std::int64_t at;  // among (rows, units)
  float* gates;     // of the first part
  float x[kParts];
  UnitState state;

  /// `before` is the row of the first sequence a time ago, null at the first one.
  __device__ Output(const RecurrentArgs& layer, std::int64_t row, int unit, std::int64_t time,
                    std::int64_t before, bool is_there)
      : there(is_there) {
    int n = layer.units;
    at = (time + row) * n + unit;
    gates = layer.gates + (time + row) * kParts * n + unit;
    state = {};
    if (!there) return;
#pragma unroll
    for (int k = 0; k < kParts; ++k) x[k] = gates[k * n];
    std::int64_t past = (before + row) * n + unit;
    if (before < 0) past = row * n + unit;
    state.h = (before < 0 ? layer.h : layer.y)[past];
    if (layer.c) state.c = (before < 0 ? layer.c : layer.kept)[past];
  }
  __device__ void finish(const RecurrentArgs& layer, const float (&of_last)[kParts]) {
    if (!there) return;
    Unit::step(x, of_last, state);
    layer.y[at] = state.h;
    if (kParts == 1) return;
    layer.kept[at] = state.kept;
#pragma unroll
    for (int k = 0; k < kParts; ++k) gates[k * layer.units] = x[k];
  }
};

template <class Unit>
__global__ void __launch_bounds__(kThreads, 1)
    follow_in_team(const __grid_constant__ TeamArgs args) {
  wait_for_previous();
  constexpr int kParts = Unit::kParts;
  extern __shared__ float4 shared[];
  const RecurrentArgs& layer = args.layer;
  int n = layer.units, directions = layer.directions, warp = threadIdx.x / 32;
  int direction = blockIdx.y % directions, unit = blockIdx.x * kUnits + threadIdx.x % kUnits;
  std::int64_t sequences = layer.rows / directions;
  float4 *weight = shared, *h = shared + kParts * kUnits * args.row_fours;
  auto* parts = reinterpret_cast<float*>(h);  // of sums, once h is multiplied
  Meeting team = {args.arrivals + blockIdx.y * args.arrival_stride, gridDim.x,
                  static_cast<unsigned>(layer.times)};

  load_weight<kParts>(args, direction, weight);
  float bias[kParts] = {};
#pragma unroll
  for (int k = 0; k < kParts; ++k) {
    if (layer.bias && unit < n) bias[k] = layer.bias[(direction * kParts + k) * n + unit];
  }
  std::int64_t time = layer.backward ? (layer.times - 1) * layer.rows : 0, before = -1;
  std::int64_t ahead = layer.backward ? -layer.rows : layer.rows;
  for (unsigned i = 0; i < team.times; ++i, before = time, time += ahead) {
    const float* last = before < 0 ? layer.h : layer.y + before * n;
    bool waits = i > 0;
    for (std::int64_t first = blockIdx.y / directions * kRows; first < sequences;
         first += gridDim.y / directions * kRows) {
      std::int64_t mine = first + threadIdx.x / kUnits;
      Output<Unit> output(layer, mine * directions + direction, unit, time, before,
                          unit < n && mine < sequences);
      if (waits) team.await(i);
      waits = false;
      for (int k = warp; k < kRows; k += kWarps) {
        const float* row = last + ((first + k) * directions + direction) * n;
        load_row(args, first + k < sequences ? row : nullptr, h + k * args.row_fours);
      }
      __syncthreads();
      Share<kParts> share;
      share.add(h, weight, args.row_fours);
      __syncthreads();
      share.store(parts);
      __syncthreads();
      float of_last[kParts];
#pragma unroll
      for (int k = 0; k < kParts; ++k) of_last[k] = Share<kParts>::total(parts, k) + bias[k];
      output.finish(layer, of_last);
      __syncthreads();
    }
    team.arrive();
  }
}

template <operations::RecurrentCell cell>
void follow(const char* name, const LaunchContext& context, const TeamArgs& args,
            const RecurrentTeams& plan) {
  auto kernel = follow_in_team<RecurrentUnit<cell>>;
  allow_shared_memory(name, context.device, reinterpret_cast<const void*>(kernel));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(plan.blocks),
                        static_cast<unsigned>(plan.teams * args.layer.directions));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(plan.shared_bytes);
  config.stream = static_cast<cudaStream_t>(context.handle);
  // All blocks are resident, or some would wait for ones that never start.
  cudaLaunchAttribute resident = {};
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = 1;
  config.attrs = &resident;
  config.numAttrs = 1;
  RENSA_CUDA_CHECK(name, cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace

void follow_in_teams(const operations::RecurrentSteps& op, const LaunchContext& context) {
  using operations::RecurrentCell;
  TeamArgs args{};
  args.layer = recurrent_args(op);
  RecurrentTeams plan = recurrent_teams(context.device, op.cell, args.layer.rows, args.layer.units,
                                        args.layer.directions);
  args.row_fours = plan.row_fours;
  args.vectors = args.layer.units % 4 == 0 && is_aligned(args.layer.weight, 16) &&
                 is_aligned(args.layer.h, 16) && is_aligned(args.layer.y, 16);
  args.arrivals = context.semaphores;
  args.arrival_stride = static_cast<unsigned>(kSemaphores / (plan.teams * args.layer.directions));
  switch (op.cell) {
    case RecurrentCell::lstm: return follow<RecurrentCell::lstm>(op.name(), context, args, plan);
    case RecurrentCell::gru: return follow<RecurrentCell::gru>(op.name(), context, args, plan);
    case RecurrentCell::tanh: return follow<RecurrentCell::tanh>(op.name(), context, args, plan);
    case RecurrentCell::relu: return follow<RecurrentCell::relu>(op.name(), context, args, plan);
  }
}

}  // namespace rensa::cuda
