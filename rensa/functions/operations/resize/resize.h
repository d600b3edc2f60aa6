// Images resized, and the reverse.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/resize/resize_axis.h"

namespace rensa::operations {

/// What the two kinds have in common: arrays are (outer, rows, columns, inner), C-contiguous and of
/// one floating dtype; the elements are of x, the pixels of y.
struct ResizeShape {
  std::int64_t outer = 1, inner = 1;
  ResizeAxis rows, columns;

  template <class V> void number(V& v) const {
    v.number(outer, inner);
    for (const ResizeAxis* a : {&rows, &columns}) {
      v.number(a->in, a->out, a->scale, a->shift, a->inverse, a->linear);
    }
  }
};

/// y = x resized. Of float16 and bfloat16 the shares and sums are float32.
struct Resize final : KindOf<Resize> {
  explicit Resize(const char* name) : KindOf(name) {}
  ResizeShape shape;
  Operand x, y;

  template <class V> void fields(V& v) { v.read(x), v.write(y), shape.number(v); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// gx = for each element the sum of what the pixels that have a share of it give it of gy. In one
/// order of the pixels.
struct ResizeSpread final : KindOf<ResizeSpread> {
  explicit ResizeSpread(const char* name) : KindOf(name) {}
  ResizeShape shape;
  Operand gy, gx;

  template <class V> void fields(V& v) { v.read(gy), v.write(gx), shape.number(v); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
