// The kernels of pointwise.def's rows as templates, and the table of their instances. Two kernels
// per row: one for arrays of one floating dtype that all lie flat, in vectors of up to 16 bytes,
// and one for any dtypes and strides.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/pointwise/pointwise_functors.h"
#include "rensa/operations/pointwise/pointwise_rows.h"

namespace rensa::cuda {

/// An input of either kernel: where it lies, or the number.
struct PointwiseInput {
  const char* data;                      // null: the number
  ElementType type;                      // strided kernel
  alignas(16) unsigned char number[16];  // a value V
};
struct PointwiseFlatArgs {
  std::int64_t size;  // elements
  int unroll;         // vectors per thread, at most what the kernel is made for
  bool aligned;       // every vector moves in one load or store
  char* out[kMostPointwiseOutputs];
  PointwiseInput in[kMostPointwiseInputs];
};
struct PointwiseStridedArgs {
  unsigned count;  // elements
  Dtype out_dtype[kMostPointwiseOutputs];
  char* out[kMostPointwiseOutputs];
  PointwiseInput in[kMostPointwiseInputs];
  Indexer<kMostPointwiseOutputs + kMostPointwiseInputs> indexer;  // outputs, then inputs
};

/// Threads of a block of the flat kernel, and vectors that one of them works on.
inline constexpr int kFlatBlock = 128;
constexpr int flat_unroll(int inputs, int outputs) { return inputs + outputs <= 4 ? 2 : 1; }
/// Elements of a vector.
constexpr int flat_width(std::int64_t itemsize) { return itemsize == 8 ? 2 : 4; }

struct PointwiseKernels {
  void (*flat[kNumVectorTypes])(PointwiseFlatArgs);
  void (*strided[kNumComputeTypes])(PointwiseStridedArgs);  // null: the row does not take the type
};
struct PointwiseTable {
  PointwiseKernels row[pointwise::kNumRows];
};

// Each puts the kernels of its subject into the table.
void add_pointwise_activation(PointwiseTable& table);
void add_pointwise_elementary(PointwiseTable& table);
void add_pointwise_loss(PointwiseTable& table);
void add_pointwise_recurrent(PointwiseTable& table);
void add_pointwise_special(PointwiseTable& table);

#if defined(__CUDACC__)

template <class V> __device__ __forceinline__ V number_of(const PointwiseInput& input) {
  return *reinterpret_cast<const V*>(input.number);
}

template <class Row, class T, int W, int U>
__global__ void __launch_bounds__(kFlatBlock)
    pointwise_flat(const __grid_constant__ PointwiseFlatArgs args) {
  using V = ComputeOf<T>;
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  std::int64_t begin = std::int64_t{blockIdx.x} * (kFlatBlock * args.unroll) + threadIdx.x;
  bool whole =
      args.unroll == U && (blockIdx.x + std::int64_t{1}) * (kFlatBlock * U * W) <= args.size;
  Pack<T, W> in[U][N];
  if (whole && args.aligned) {  // without a branch between the loads: all of them are in flight
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (args.in[k].data == nullptr) continue;
        in[u][k] = reinterpret_cast<const Pack<T, W>*>(args.in[k].data)[begin + u * kFlatBlock];
      }
    }
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (u >= args.unroll) continue;
      std::int64_t at = (begin + u * kFlatBlock) * W;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (args.in[k].data == nullptr) continue;
        in[u][k] = load_pack<T, W>(reinterpret_cast<const T*>(args.in[k].data) + at, args.size - at,
                                   args.aligned, convert<T>(0.0f));
      }
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    if (u >= args.unroll) continue;
    Pack<T, W> out[M];
#pragma unroll
    for (int j = 0; j < W; ++j) {
      V x[N], y[M];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        x[k] = args.in[k].data ? convert<V>(in[u][k].value[j]) : number_of<V>(args.in[k]);
      }
      pw::call<Row>(x, y);
#pragma unroll
      for (int k = 0; k < M; ++k) out[k].value[j] = convert<T>(y[k]);
    }
    std::int64_t at = (begin + u * kFlatBlock) * W;
#pragma unroll
    for (int k = 0; k < M; ++k) {
      store_pack<T, W>(reinterpret_cast<T*>(args.out[k]) + at, out[k], args.size - at,
                       args.aligned);
    }
  }
}

template <class Row, class V>
__global__ void __launch_bounds__(kBlock)
    pointwise_strided(const __grid_constant__ PointwiseStridedArgs args) {
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t offset[M + N];
  args.indexer.offsets(index, offset);
  Raw<V> raw[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const PointwiseInput& input = args.in[k];
    if (input.data) raw[k] = load_raw<V>(input.data + offset[M + k], input.type.log2_size);
  }
  V x[N], y[M];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const PointwiseInput& input = args.in[k];
    x[k] = input.data ? convert_raw<V>(raw[k], input.type) : number_of<V>(input);
  }
  pw::call<Row>(x, y);
#pragma unroll
  for (int k = 0; k < M; ++k) store_any<V>(args.out[k] + offset[k], args.out_dtype[k], y[k]);
}

template <class Row, VectorType kType> constexpr void add_flat(PointwiseKernels& kernels) {
  using T = typename StorageOf<kType>::type;
  constexpr int kUnroll = flat_unroll(pw::num_inputs<Row>, pw::num_outputs<Row>);
  kernels.flat[static_cast<int>(kType)] = pointwise_flat<Row, T, flat_width(sizeof(T)), kUnroll>;
}
template <class Row, DtypeRule kRule, ComputeType C>
constexpr void add_strided(PointwiseKernels& kernels) {
  if constexpr (rule_takes(kRule, C)) {
    kernels.strided[static_cast<int>(C)] = pointwise_strided<Row, typename ValueOf<C>::type>;
  }
}
template <class Row, DtypeRule kRule>
void add_pointwise(PointwiseTable& table, pointwise::Index index) {
  PointwiseKernels& kernels = table.row[static_cast<int>(index)];
  add_flat<Row, VectorType::f32>(kernels);
  add_flat<Row, VectorType::f16>(kernels);
  add_flat<Row, VectorType::bf16>(kernels);
  add_flat<Row, VectorType::f64>(kernels);
  add_strided<Row, kRule, ComputeType::f32>(kernels);
  add_strided<Row, kRule, ComputeType::f64>(kernels);
  add_strided<Row, kRule, ComputeType::c64>(kernels);
  add_strided<Row, kRule, ComputeType::c128>(kernels);
}

#endif  // __CUDACC__

}  // namespace rensa::cuda
