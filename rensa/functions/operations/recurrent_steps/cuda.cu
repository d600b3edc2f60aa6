// The times of a recurrent layer of few units on a GPU. Sequences know nothing of each other: a
// block follows one through all its times, and a thread has one row of the weight in registers.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/functions/operations/recurrent_steps/cells.h"
#include "rensa/functions/operations/recurrent_steps/cuda_teams.h"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

constexpr int kLanes = 32;

// The row of the weight (parts * units, units) for `unit` of `part` (counted over directions),
// zeros behind it. A warp, whose threads have neighbouring rows, reads the memory in the order in
// which it lies.
template <int kUnits>
__device__ __forceinline__ void load_row(const RecurrentArgs& args, int part, int unit,
                                         float (*tile)[kLanes + 1], float (&row)[kUnits]) {
  int lane = threadIdx.x % kLanes, n = args.units, first = unit - lane;
  const float* weight = args.weight + part * n * n;
#pragma unroll
  for (int begin = 0; begin < kUnits; begin += kLanes) {
    int column = begin + lane;
    __syncwarp();
#pragma unroll 8
    for (int r = 0; r < kLanes; ++r) {
      bool there = first + r < n && column < n;
      tile[r][lane] = there ? weight[(first + r) * n + column] : 0.f;
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kLanes; ++k) row[begin + k] = tile[lane][k];
  }
}

template <int kUnits>
__device__ __forceinline__ float product(const float (&row)[kUnits], const float4* h) {
  float sum[4] = {};
#pragma unroll
  for (int k = 0; k < kUnits / 4; ++k) {
    float4 four = h[k];
    sum[0] += row[4 * k] * four.x;
    sum[1] += row[4 * k + 1] * four.y;
    sum[2] += row[4 * k + 2] * four.z;
    sum[3] += row[4 * k + 3] * four.w;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Threads are the parts' units, kUnits of each part; of the first part those that are there
// (leads) do what comes behind the products.
template <class Unit, int kUnits>
__global__ void __launch_bounds__(Unit::kParts* kUnits)
    follow_sequence(const __grid_constant__ RecurrentArgs args) {
  constexpr int kParts = Unit::kParts, kThreads = kParts * kUnits;
  __shared__ float tiles[kThreads / kLanes][kLanes][kLanes + 1];
  __shared__ float4 last[kUnits / 4];  // h, zeros behind it
  __shared__ float inputs[kThreads], sums[kThreads];
  int part = threadIdx.x / kUnits, unit = threadIdx.x % kUnits, n = args.units;
  bool there = unit < n, leads = there && part == 0;
  wait_for_previous();

  float weight[kUnits];
  int of_all = blockIdx.x % args.directions * kParts + part;
  load_row(args, of_all, unit, tiles[threadIdx.x / kLanes], weight);
  float bias = there && args.bias ? args.bias[of_all * n + unit] : 0.f;
  std::int64_t start = blockIdx.x * std::int64_t{n} + unit;
  UnitState state = {leads ? args.h[start] : 0.f, leads && args.c ? args.c[start] : 0.f, 0.f};
  if (part == 0) reinterpret_cast<float*>(last)[unit] = state.h;
  std::int64_t place = blockIdx.x + (args.backward ? (args.times - 1) * args.rows : 0);
  std::int64_t ahead = args.backward ? -args.rows : args.rows;
  const float* next = args.gates + (place * kParts + part) * n + unit;
  float x = there ? *next : 0.f;
  __syncthreads();

  for (std::int64_t left = args.times; left > 0; --left, place += ahead) {
    inputs[threadIdx.x] = x;
    next += ahead * kParts * n;
    if (there && left > 1) x = *next;
    sums[threadIdx.x] = product(weight, last) + bias;
    __syncthreads();
    if (leads) {
      float of_input[kParts], of_last[kParts];
#pragma unroll
      for (int k = 0; k < kParts; ++k) {
        of_input[k] = inputs[k * kUnits + unit];
        of_last[k] = sums[k * kUnits + unit];
      }
      Unit::step(of_input, of_last, state);
      reinterpret_cast<float*>(last)[unit] = state.h;
      args.y[place * n + unit] = state.h;
      if (kParts > 1) {
        args.kept[place * n + unit] = state.kept;
#pragma unroll
        for (int k = 0; k < kParts; ++k) {
          args.gates[(place * kParts + k) * n + unit] = of_input[k];
        }
      }
    }
    __syncthreads();
  }
}

template <operations::RecurrentCell cell>
void follow(const char* name, const LaunchContext& context, const RecurrentArgs& args) {
  using Unit = RecurrentUnit<cell>;
  constexpr int kMost = operations::RecurrentSteps::kFewUnits, kFew = kMost / 2;
  bool few = args.units <= kFew;
  launch_kernel(name, context, few ? follow_sequence<Unit, kFew> : follow_sequence<Unit, kMost>,
                dim3(static_cast<unsigned>(args.rows)), Unit::kParts * (few ? kFew : kMost), args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void RecurrentSteps::run_cuda(const cuda::LaunchContext& context) {
  RecurrentArgs args = recurrent_args(*this);
  if (args.units > kFewUnits) return cuda::follow_in_teams(*this, context);
  switch (cell) {
    case RecurrentCell::lstm: return cuda::follow<RecurrentCell::lstm>(name(), context, args);
    case RecurrentCell::gru: return cuda::follow<RecurrentCell::gru>(name(), context, args);
    case RecurrentCell::tanh: return cuda::follow<RecurrentCell::tanh>(name(), context, args);
    case RecurrentCell::relu: return cuda::follow<RecurrentCell::relu>(name(), context, args);
  }
}

}  // namespace rensa::operations
