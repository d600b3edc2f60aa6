// Convolutions and their gradients.
#pragma once

#include <cstdint>
#include <memory>

#include "rensa/device/kind.h"

namespace rensa::cuda {
class ConvolutionPlan;
}  // namespace rensa::cuda

namespace rensa::operations {

enum class ConvolutionDirection : unsigned char {
  forward,          // y of x and w
  input_gradient,   // x of y and w: the sums of what forward multiplies with each element of x
  weight_gradient,  // w of x and y
};

/// y[n, o, j] = sum of x[n, c, j * stride - pad + k * dilate] * w[o, c, k] over the channels c of
/// o's group and the places k of the kernel, x being 0 beyond its borders; or one of the two
/// gradients of that. x is (n, channels, spatial axes ...), w (filters, channels / groups, ...),
/// y (n, filters, ...), of one floating dtype, none of them empty; half types are summed in
/// float32. The extents of y are such that no kernel reaches beyond the padding.
///
/// On a GPU all three are dense, either C-contiguous or with the channels last, x, w and y alike,
/// and there are 1 to 3 spatial axes; on the CPU strides are any.
struct Convolution final : KindOf<Convolution> {
  Convolution(const char* name, ConvolutionDirection d) : KindOf(name), direction(d) {}
  ConvolutionDirection direction;
  Shape stride, pad, dilate;
  std::int64_t groups = 1;
  bool channels_last = false;
  bool tf32 = false;  // this and the two below are taken from Config when the operation is made
  bool autotune = false;
  bool deterministic = true;
  Operand x, w, y;
  /// How a GPU does it: chosen at the first look at workspace_bytes(), and what copies of the
  /// operation, which recordings replay, do too.
  mutable std::shared_ptr<const cuda::ConvolutionPlan> plan;

  template <class V> void fields(V& v) {
    switch (direction) {
      case ConvolutionDirection::forward: v.read(x, w), v.write(y); break;
      case ConvolutionDirection::input_gradient: v.read(y, w), v.write(x); break;
      case ConvolutionDirection::weight_gradient: v.read(x, y), v.write(w); break;
    }
    for (int i = 0; i < stride.size(); ++i) v.number(stride[i], pad[i], dilate[i]);
    v.number(direction, groups, channels_last, tf32, deterministic);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
