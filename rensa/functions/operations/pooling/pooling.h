// Pooling over windows, and the reverse.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/pooling/windows.h"

namespace rensa::operations {

/// Axes that windows may have, and how many there are where they are fewer: those in front are of
/// one element.
inline constexpr int kMostWindowAxes = 6;

/// What the two kinds have in common: arrays are (outer, elements or windows along the axes,
/// inner), C-contiguous, whose inner ones lie side by side.
struct PoolingShape {
  std::int64_t outer = 1, inner = 1;
  int ndim = 2;  // 2, 3 or kMostWindowAxes
  WindowAxis axis[kMostWindowAxes];
  PoolingMode mode = PoolingMode::max;
  PoolingWeight weight = PoolingWeight::one;

  template <class V> void number(V& v) const {
    v.number(outer, inner, ndim, mode, weight);
    for (const WindowAxis& a : axis) v.number(a.in, a.out, a.size, a.stride, a.pad);
  }
};

/// y = what `mode` says of x's windows. Of `max` the positions in the windows are written, of `at`
/// they are read: uint8 or int32, of y's shape. x and y are of one floating dtype.
struct Pooling final : KindOf<Pooling> {
  explicit Pooling(const char* name) : KindOf(name) {}
  PoolingShape shape;
  Operand x, y, positions;

  template <class V> void fields(V& v) {
    v.read(x);
    if (shape.mode == PoolingMode::at) v.read(positions), v.write(y);
    else v.write(y, positions);
    shape.number(v);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// gx = for each element the sum of what its windows give it of gy: `sum`, all of them, each
/// divided as the weight says; `at`, those that have their position there. In the order of the
/// windows.
struct PoolingSpread final : KindOf<PoolingSpread> {
  explicit PoolingSpread(const char* name) : KindOf(name) {}
  PoolingShape shape;
  Operand gy, positions, gx;

  template <class V> void fields(V& v) { v.read(gy, positions), v.write(gx), shape.number(v); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
