// The innermost loops of pooling, for one instruction set.
#include "rensa/functions/operations/pooling/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host::RENSA_SET {

namespace {

// The compiler makes branches of the loops below that keep several results in local arrays, so that
// those of floats are written as vectors: each instruction set has its own number of instructions
// for one.
using Floats __attribute__((vector_size(64), aligned(4), may_alias)) = float;
using Ints __attribute__((vector_size(64), aligned(4), may_alias)) = int;
// clang passes by attributes behind the "=", and GCC by those of a type that `auto` stands for.
static_assert(alignof(Floats) == alignof(float) && alignof(Ints) == alignof(int));
constexpr int kFloats = 16;

template <int n>  // vectors
RENSA_FN void take_greatest_vectors(const PoolingRun<float>* runs, int count, int at,
                                    float* greatest_of, int* positions_of) {
  Floats greatest[n];
  Ints positions[n];
  for (int l = 0; l < n; ++l) {
    greatest[l] = reinterpret_cast<const Floats*>(greatest_of + at)[l];
    positions[l] = reinterpret_cast<const Ints*>(positions_of + at)[l];
  }
  for (int r = 0; r < count; ++r) {
    const Floats* from = reinterpret_cast<const Floats*>(runs[r].from + at);
    Ints position = runs[r].position - Ints{};
    for (int l = 0; l < n; ++l) {
      Floats value = from[l];
      Ints better = ~(value <= greatest[l]) & (greatest[l] == greatest[l]);
      greatest[l] = better ? value : greatest[l];
      positions[l] = better ? position : positions[l];
    }
  }
  for (int l = 0; l < n; ++l) {
    reinterpret_cast<Floats*>(greatest_of + at)[l] = greatest[l];
    reinterpret_cast<Ints*>(positions_of + at)[l] = positions[l];
  }
}

template <class T, class V = ComputeOf<T>>
void take_greatest(const PoolingRun<T>* runs, int count, int n, V* greatest, int* positions) {
  int at = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (; at + 4 * kFloats <= n; at += 4 * kFloats) {
      take_greatest_vectors<4>(runs, count, at, greatest, positions);
    }
    for (; at + kFloats <= n; at += kFloats) {
      take_greatest_vectors<1>(runs, count, at, greatest, positions);
    }
  }
  for (int r = 0; r < count; ++r) {
    const T* from = runs[r].from;
    const int position = runs[r].position;
    RENSA_IVDEP
    for (int j = at; j < n; ++j) {
      V value = convert<V>(from[j]);
      bool better = !(value <= greatest[j]) & (greatest[j] == greatest[j]);
      greatest[j] = better ? value : greatest[j];
      positions[j] = better ? position : positions[j];
    }
  }
}

template <class V, class T> void store(const V* values, int n, T* to) {
  RENSA_IVDEP
  for (int j = 0; j < n; ++j) to[j] = convert<T>(values[j]);
}

template <class T> PoolingKernels<T> make_pooling_kernels() {
  return {take_greatest<T>, store<ComputeOf<T>, T>, store<int, std::uint8_t>};
}

}  // namespace

AllPoolingKernels get_pooling_kernels() {
  return {make_pooling_kernels<half_t>(), make_pooling_kernels<bfloat16_t>(),
          make_pooling_kernels<float>(), make_pooling_kernels<double>()};
}

}  // namespace rensa::host::RENSA_SET
