// Padding on a GPU, in one pass: a thread writes an aligned vector of the output, of elements that
// it loads one by one, since rows begin at any address.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rensa/backend/cuda/copy.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/pad/pad.h"

namespace rensa::cuda {

namespace {

using operations::PadPlan;

constexpr int kVector = 16;

// A unit is an element, or several that lie together wherever they are.
struct PadArgs {
  const char* in;
  char* out;
  alignas(kVector) unsigned char pattern[kVector];
  unsigned count;          // units of the output
  FastDiv columns;         // units of its rows
  unsigned before, there;  // of a row: units before in's, units of in
  std::int64_t step;       // from unit to unit of in
  int outer;               // axes above the rows
  FastDiv extent[kMaxNdim];
  unsigned before_axis[kMaxNdim], there_axis[kMaxNdim];
  std::int64_t stride[kMaxNdim];
};
using PadKernel = void (*)(PadArgs);

/// What a row of the output has of `in`.
struct PadRow {
  const char* in;
  unsigned there;  // units: all of a row of in, or none
};

__device__ __forceinline__ PadRow row_at(const PadArgs& args, unsigned row) {
  PadRow found = {args.in, args.there};
  for (int axis = args.outer - 1; axis >= 0; --axis) {
    unsigned above = args.extent[axis].divide(row);
    unsigned place = row - above * args.extent[axis].divisor - args.before_axis[axis];
    if (place >= args.there_axis[axis]) found.there = 0;
    found.in += static_cast<std::int64_t>(place) * args.stride[axis];
    row = above;
  }
  return found;
}

/// Vectors of W units, which lie in two rows at most.
template <class Unit, int W>
__global__ void __launch_bounds__(kBlock) pad_vectors(const __grid_constant__ PadArgs args) {
  wait_for_previous();
  unsigned begin = (blockIdx.x * kBlock + threadIdx.x) * W;
  if (begin >= args.count) return;
  unsigned row = args.columns.divide(begin);
  unsigned column = begin - row * args.columns.divisor;
  unsigned until = args.columns.divisor - column;  // units of the vector that are of this row
  PadRow here = row_at(args, row), next = {args.in, 0};
  if (until < W && begin + until < args.count) next = row_at(args, row + 1);
  // The place in a row of `in` of the vector's first unit, and where that would be: as of this row,
  // and as of the next one. Places below 0 wrap around, beyond all that is there.
  unsigned place = column - args.before, place_in_next = 0u - until - args.before;
  const char* from = here.in + (std::int64_t{column} - args.before) * args.step;
  const char* from_next = next.in - (std::int64_t{until} + args.before) * args.step;
  Pack<Unit, W> pack;
  pack.fill(*reinterpret_cast<const Unit*>(args.pattern));
#pragma unroll
  for (unsigned j = 0; j < W; ++j) {
    bool is_here = j < until;
    if ((is_here ? place : place_in_next) + j >= (is_here ? here.there : next.there)) continue;
    pack.value[j] = *reinterpret_cast<const Unit*>((is_here ? from : from_next) + j * args.step);
  }
  Unit* out = reinterpret_cast<Unit*>(args.out) + begin;
  store_pack<Unit, W>(out, pack, args.count - begin, true);
}

template <class Unit> PadKernel kernel_of(bool vector) {
  return vector ? pad_vectors<Unit, kVector / static_cast<int>(sizeof(Unit))>
                : pad_vectors<Unit, 1>;
}

PadKernel kernel_of(int unit, bool vector) {
  switch (unit) {
    case 1: return kernel_of<unsigned char>(vector);
    case 2: return kernel_of<unsigned short>(vector);
    case 4: return kernel_of<unsigned>(vector);
    case 8: return kernel_of<unsigned long long>(vector);
    default: return kernel_of<uint4>(false);
  }
}

/// The largest unit that addresses, strides and rows are multiples of.
int unit_of(const PadPlan& plan) {
  const PadPlan::Axis& last = plan.last();
  if (last.stride != plan.size) return static_cast<int>(plan.size);
  auto bits = reinterpret_cast<std::uintptr_t>(plan.in) |
              reinterpret_cast<std::uintptr_t>(plan.out) | kVector |
              static_cast<std::uintptr_t>((last.out | last.in | last.before) * plan.size);
  for (int i = 0; i < plan.ndim - 1; ++i) bits |= static_cast<std::uintptr_t>(plan.axes[i].stride);
  return std::max(static_cast<int>(bits & -bits), static_cast<int>(plan.size));
}

void launch_pad(const char* name, const LaunchContext& context, const PadPlan& plan, PadArgs args) {
  int unit = unit_of(plan);
  const PadPlan::Axis& last = plan.last();
  std::int64_t columns = last.out * plan.size / unit, count = plan.rows() * columns;
  args.in = plan.in;
  args.out = plan.out;
  args.count = static_cast<unsigned>(count);
  args.columns = FastDiv(columns);
  args.before = static_cast<unsigned>(last.before * plan.size / unit);
  args.there = static_cast<unsigned>(last.in * plan.size / unit);
  args.step = last.stride == plan.size ? unit : last.stride;
  args.outer = plan.ndim - 1;
  for (int i = 0; i < args.outer; ++i) {
    const PadPlan::Axis& axis = plan.axes[i];
    args.extent[i] = FastDiv(axis.out);
    args.before_axis[i] = static_cast<unsigned>(axis.before);
    args.there_axis[i] = static_cast<unsigned>(axis.in);
    args.stride[i] = axis.stride;
  }
  int width = kVector / unit;
  bool vector = is_aligned(plan.out, kVector) && columns >= width;
  launch_kernel(name, context, kernel_of(unit, vector),
                static_cast<unsigned>(ceil_div(count, (vector ? width : 1) * kBlock)), kBlock,
                args);
}

/// Elements [begin, end) of the output's outermost axis.
PadPlan part_of(PadPlan plan, std::int64_t begin, std::int64_t end) {
  PadPlan::Axis& axis = plan.axes[0];
  plan.out += begin * (plan.rows() * plan.last().out / axis.out) * plan.size;
  std::int64_t first = std::clamp<std::int64_t>(begin - axis.before, 0, axis.in);
  std::int64_t stop = std::clamp<std::int64_t>(end - axis.before, 0, axis.in);
  if (stop > first) plan.in += first * axis.stride;
  axis = {end - begin, stop - first, std::max<std::int64_t>(axis.before - begin, 0), axis.stride};
  return plan;
}

/// A launch counts kMaxCount elements, and so an outermost axis is cut that has more of them.
void pad_parts(const char* name, const LaunchContext& context, const PadPlan& plan,
               const PadArgs& args) {
  std::int64_t outermost = plan.axes[0].out, of_one = plan.rows() * plan.last().out / outermost;
  std::int64_t most = std::max<std::int64_t>(1, kMaxCount / of_one);
  for (std::int64_t begin = 0; begin < outermost; begin += most) {
    PadPlan part = part_of(plan, begin, std::min(outermost, begin + most));
    if (of_one <= kMaxCount) {
      launch_pad(name, context, part, args);
      continue;
    }
    // One place of the outermost axis: what it has of `in` begins at the place itself.
    bool there = part.axes[0].in > 0;
    std::copy(part.axes + 1, part.axes + part.ndim, part.axes);
    --part.ndim;
    if (!there) part.axes[0].in = 0;
    pad_parts(name, context, part, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Pad::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::PadArgs args = {};
  cuda::make_pattern(value, out.view.dtype, out.view.dtype, args.pattern);
  cuda::pad_parts(name(), context, PadPlan(*this), args);
}

}  // namespace rensa::operations
