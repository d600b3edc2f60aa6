// What products need beside cuBLASLt: products of integers, a bias and an activation in a pass of
// their own, and data to time plans on.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "rensa/core/dtype.h"
#include "rensa/device/operation.h"
#include "rensa/operations/matmul/matmul.h"

#if defined(__CUDACC__)
#include "rensa/core/functors.h"
#include "rensa/portable/conversion.h"
#endif

namespace rensa::cuda {

/// c(b, i, j) = sum over p of a(b, i, p) * b(b, p, j), strides in elements; for bool the sum is
/// `or` and the product `and`. Integers wrap around. k = 0 gives zeros.
struct IntegerMatmulArgs {
  const void* a;
  const void* b;
  void* c;
  int m, n, k;
  std::int64_t a_row, a_k, b_k, b_column, c_row;
  std::int64_t batch, a_batch, b_batch, c_batch;
};
void launch_integer_matmul(Dtype dtype, const IntegerMatmulArgs& args,
                           const LaunchContext& context);

/// c(b, i, j) += bias(j), then the activation, then the gate, of any dtype (complex ones have no
/// relu and no gate, only floating and complex ones tanh).
struct EpilogueArgs {
  void* c;
  const void* bias;  // null: the activation alone
  std::int64_t bias_stride;
  const void* gate;  // null, or what lies as c does: see Matmul
  std::int64_t batch, m, n, c_batch, c_row;
  operations::Activation activation;
};
void launch_matmul_epilogue(Dtype dtype, const EpilogueArgs& args, const LaunchContext& context);

/// Numbers in [-1, 1), the same for the same `seed`; a floating or complex dtype.
void launch_fill_pattern(Dtype dtype, void* data, std::int64_t size, unsigned seed,
                         cudaStream_t stream);
/// Whether two pieces of memory, of a multiple of 2 bytes, are the same bit for bit. `differs` is
/// scratch on the GPU. Waits; `operation` stands in errors and in the account of waits.
bool is_same_memory(const char* operation, const void* a, const void* b, std::int64_t nbytes,
                    unsigned* differs, cudaStream_t stream);

#if defined(__CUDACC__)
/// Whether a gate, or none, lets through what a product stores at `at`.
template <class T> __device__ __forceinline__ bool is_open(const T* gate, std::int64_t at) {
  return !gate || convert<float>(gate[at]) > 0.0f;
}

/// What is added in column `column`; -0, which changes no sum, where there is no bias.
template <class T> __device__ __forceinline__ float bias_of(const T* bias, int column) {
  return bias ? convert<float>(bias[column]) : -0.0f;
}

/// NaN stays NaN.
__device__ __forceinline__ float relu_of(float value) { return value <= 0.0f ? 0.0f : value; }

/// What a product stores for a sum, unless a gate is closed there. An activation sees what would be
/// stored without it.
template <class T>
__device__ __forceinline__ T finish(float sum, float alpha, float bias,
                                    operations::Activation activation) {
  float value = alpha * sum;
  value += bias;
  T stored = convert<T>(value);
  if (activation == operations::Activation::none) return stored;
  value = convert<float>(stored);
  if (activation == operations::Activation::relu) value = relu_of(value);
  else value = m::tanh(value);
  return convert<T>(value);
}
#endif

}  // namespace rensa::cuda
