// The triangles of matrices on a GPU.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/triangle.h"
#include "rensa/operations/triangle/triangle.h"

namespace rensa::cuda {

namespace {

constexpr int kPerThread = 4;

// Lines are the rows of all matrices. A block writes kBlock * kPerThread columns of a line, and
// then of further ones where the grid has fewer blocks than there are such pieces.
struct TriangleArgs {
  TriangleShape shape;
  const char* in;
  char* out;
  Indexer<1> lines;                   // of `in`
  std::int64_t column_stride, count;  // of `in`; lines
};

template <class Unit>
__global__ void __launch_bounds__(kBlock) keep_triangle(const __grid_constant__ TriangleArgs args) {
  wait_for_previous();
  long long chunks = (args.shape.columns + kBlock * kPerThread - 1) / (kBlock * kPerThread);
  for (long long work = blockIdx.x; work < args.count * chunks; work += gridDim.x) {
    long long line = work / chunks;
    long long row = line % args.shape.rows, column = work % chunks * (kBlock * kPerThread);
    long long begin = args.shape.begin(row), end = args.shape.end(row);
    std::int64_t offset[1];
    args.lines.offsets(static_cast<unsigned>(line), offset);
    Unit* out = reinterpret_cast<Unit*>(args.out) + line * args.shape.columns;
    Unit value[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      long long at = column + threadIdx.x + i * kBlock;
      value[i] = Unit{};
      if (at >= begin && at < end) {
        value[i] = *reinterpret_cast<const Unit*>(args.in + offset[0] + at * args.column_stride);
      }
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      long long at = column + threadIdx.x + i * kBlock;
      if (at < args.shape.columns) out[at] = value[i];
    }
  }
}

struct IndicesArgs {
  TriangleShape shape;
  long long* rows;
  long long* columns;
};

// A block takes one row after the other.
__global__ void __launch_bounds__(kBlock) write_indices(const __grid_constant__ IndicesArgs args) {
  wait_for_previous();
  for (long long row = blockIdx.x; row < args.shape.rows; row += gridDim.x) {
    long long begin = args.shape.begin(row), count = args.shape.end(row) - begin;
    long long at = args.shape.before(row);
    for (long long i = threadIdx.x; i < count; i += kBlock) {
      args.rows[at + i] = row;
      args.columns[at + i] = begin + i;
    }
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Triangle::run_cuda(const cuda::LaunchContext& context) {
  int last = out.view.ndim() - 1;
  cuda::TriangleArgs args = {};
  args.shape = {lower, k, out.view.shape[last - 1], out.view.shape[last]};
  args.in = in.view.data;
  args.out = out.view.data;
  args.column_stride = in.view.strides[last];
  args.count = 1;
  for (int axis = 0; axis < last; ++axis) {
    args.lines.push_back(out.view.shape[axis], {in.view.strides[axis]});
    args.count *= out.view.shape[axis];
  }
  // At most several times the blocks that a device runs at once; each goes on to further lines.
  std::int64_t chunks = ceil_div(args.shape.columns, cuda::kBlock * cuda::kPerThread);
  std::int64_t grid = std::min<std::int64_t>(args.count * chunks, 1 << 16);
  auto launch = [&](auto kernel) {
    cuda::launch_kernel(name(), context, kernel, grid, cuda::kBlock, args);
  };
  switch (itemsize(out.view.dtype)) {
    case 1: return launch(cuda::keep_triangle<unsigned char>);
    case 2: return launch(cuda::keep_triangle<unsigned short>);
    case 4: return launch(cuda::keep_triangle<unsigned>);
    case 8: return launch(cuda::keep_triangle<unsigned long long>);
    default: return launch(cuda::keep_triangle<uint4>);
  }
}

void TriangleIndices::run_cuda(const cuda::LaunchContext& context) {
  cuda::IndicesArgs args = {{lower, k, rows, columns},
                            row_indices.view.as<long long>(),
                            column_indices.view.as<long long>()};
  std::int64_t grid = std::min<std::int64_t>(rows, 1 << 16);
  cuda::launch_kernel(name(), context, cuda::write_indices, grid, cuda::kBlock, args);
}

}  // namespace rensa::operations
