// Random variates on a GPU: one thread per element, but for small binomial ones of one n and p.
#include <algorithm>
#include <cmath>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/random.cuh"
#include "rensa/core/samplers.h"
#include "rensa/operations/variates/variates.h"

namespace rensa::cuda {

namespace {

// From a linear index to byte offsets into the parameters, for any count of elements.
struct ParameterIndexer {
  int ndim;
  std::int64_t extent[kMaxNdim];
  std::int64_t stride[3][kMaxNdim];

  __device__ __forceinline__ void offsets(std::int64_t index, std::int64_t (&offset)[3]) const {
    offset[0] = offset[1] = offset[2] = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      std::int64_t position = index;
      if (axis > 0) {
        std::int64_t quotient =
            (index | extent[axis]) >> 32
                ? index / extent[axis]
                : static_cast<unsigned>(index) / static_cast<unsigned>(extent[axis]);
        position = index - quotient * extent[axis];
        index = quotient;
      }
#pragma unroll
      for (int k = 0; k < 3; ++k) offset[k] += position * stride[k][axis];
    }
  }
};

struct VariatesArgs {
  HostScalar seed, offset;
  char* out;
  Dtype dtype;
  std::int64_t item, size;  // bytes of an element, elements
  struct Parameter {
    const char* data;  // null: the number
    ElementType type;
    double number;
  } parameters[3];
  bool arrays;  // whether a parameter is one
  ParameterIndexer indexer;
  const double* table;
  std::int64_t table_size;
};

template <Distribution D>
__global__ void __launch_bounds__(kBlock) fill_variates(const __grid_constant__ VariatesArgs args) {
  wait_for_previous();
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i >= args.size) return;
  double value[3] = {args.parameters[0].number, args.parameters[1].number,
                     args.parameters[2].number};
  if (args.arrays) {
    std::int64_t offset[3];
    args.indexer.offsets(i, offset);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const VariatesArgs::Parameter& parameter = args.parameters[k];
      if (parameter.data) value[k] = load_any<double>(parameter.data + offset[k], parameter.type);
    }
  }
  VariateStream stream(integer_of(args.seed), integer_of(args.offset) + i);
  store_any<double>(
      args.out + i * args.item, args.dtype,
      draw_variate<D>(stream, value[0], value[1], value[2], args.table, args.table_size));
}

// --- binomial variates of one n and p ---

struct BinomialArgs {
  HostScalar seed, offset;
  char* out;
  Dtype dtype;
  std::int64_t item, size;
  draw::BinomialTable table;
};

__global__ void __launch_bounds__(kBlock) fill_binomial(const __grid_constant__ BinomialArgs args) {
  wait_for_previous();
  __shared__ double upto[draw::BinomialTable::kMost];
  if (threadIdx.x < args.table.counts) upto[threadIdx.x] = args.table.upto[threadIdx.x];
  __syncthreads();
  unsigned long long seed = integer_of(args.seed), offset = integer_of(args.offset);
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x; i < args.size;
       i += step) {
    VariateStream stream(seed, offset + i);
    store_any<long long>(args.out + i * args.item, args.dtype,
                         static_cast<long long>(args.table.draw(stream, upto)));
  }
}

/// False where the variates are drawn otherwise.
bool run_binomial(const operations::Variates& op, const LaunchContext& context,
                  const VariatesArgs& from) {
  if (op.distribution != Distribution::binomial || from.arrays) return false;
  BinomialArgs args = {from.seed, from.offset, from.out, from.dtype, from.item, from.size, {}};
  if (!args.table.fill(from.parameters[0].number, from.parameters[1].number)) return false;
  std::int64_t blocks = std::min(ceil_div(args.size, kBlock), std::int64_t{8} * kMultiprocessors);
  launch_kernel(op.name(), context, fill_binomial, blocks, kBlock, args);
  return true;
}

// --- launches ---

using VariatesKernel = void (*)(VariatesArgs);

VariatesKernel variates_kernel(Distribution distribution) {
  switch (distribution) {
#define RENSA_DISTRIBUTION(name, expression) \
  case Distribution::name:                   \
    return fill_variates<Distribution::name>;
#include "rensa/core/distributions.def"
#undef RENSA_DISTRIBUTION
  }
  return nullptr;
}

// The parameters' strides over the output's axes, as few of them as will do.
void set_parameters(VariatesArgs& args, const operations::Variates& op) {
  ArrayView out = op.out.view, arrays[3];
  ArrayView* views[4] = {&out};
  int count = 1;
  for (int k = 0; k < 3; ++k) {
    const operations::ElementwiseInput& input = op.parameters[k];
    args.parameters[k].number = input.scalar.real();
    if (!input.array.present()) continue;
    arrays[k] = input.array.view;
    views[count++] = &arrays[k];
    args.parameters[k].data = arrays[k].data;
    args.parameters[k].type = ElementType(arrays[k].dtype, ComputeType::f64, false);
  }
  args.arrays = count > 1;
  if (!args.arrays) return;
  collapse_axes(views, count);
  args.indexer.ndim = out.ndim();
  for (int axis = 0; axis < out.ndim(); ++axis) {
    args.indexer.extent[axis] = out.shape[axis];
    for (int k = 0; k < 3; ++k) {
      args.indexer.stride[k][axis] = args.parameters[k].data ? arrays[k].strides[axis] : 0;
    }
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Variates::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::VariatesArgs args = {};
  args.seed = seed;
  args.offset = offset;
  args.out = out.view.data;
  args.dtype = out.view.dtype;
  args.item = itemsize(args.dtype);
  args.size = out.view.size();
  cuda::set_parameters(args, *this);
  if (table.present()) {
    args.table = table.view.as<const double>();
    args.table_size = table.view.size();
  }
  if (cuda::run_binomial(*this, context, args)) return;
  cuda::launch_kernel(name(), context, cuda::variates_kernel(distribution),
                      ceil_div(args.size, cuda::kBlock), cuda::kBlock, args);
}

}  // namespace rensa::operations
