// Convolutions and their gradients.
#pragma once

#include <cstdint>
#include <memory>

#include "rensa/device/kind.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::operations {

struct Convolution;

enum class ConvolutionDirection : unsigned char {
  forward,          // y of x and w
  input_gradient,   // x of y and w: the sums of what forward multiplies with each element of x
  weight_gradient,  // w of x and y
};

/// How a GPU computes a convolution: cuda_plan.h.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual bool joins_relu(const Convolution& op) const = 0;
};

/// y[n, o, j] = sum of x[n, c, j * stride - pad + k * dilate] * w[o, c, k] over the channels c of
/// o's group and the places k of the kernel, x being 0 beyond its borders; or one of the two
/// gradients of that. x is (n, channels, spatial axes ...), w (filters, channels / groups, ...),
/// y (n, filters, ...), of one floating dtype, none of them empty; half types are summed in
/// float32. The extents of y are such that no kernel reaches beyond the padding.
///
/// A bias, (filters,) of y or (channels,) of the gradient x, is added to what is made; relu follows
/// it on a GPU, where joins_relu() says so.
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
  bool relu = false;
  Operand x, w, y;
  Operand bias;  // absent: none
  /// How a GPU does it: chosen at the first look at workspace_bytes(), and what copies of the
  /// operation, which recordings replay, do too.
  mutable std::shared_ptr<const ConvolutionPlan> plan;

  /// Whether relu may be set: the results are those of relu afterwards, bit for bit.
  bool joins_relu() const { return bias.present() && plan && plan->joins_relu(*this); }

  template <class V> void fields(V& v) {
    switch (direction) {
      case ConvolutionDirection::forward: v.read(x, w, bias), v.write(y); break;
      case ConvolutionDirection::input_gradient: v.read(y, w, bias), v.write(x); break;
      case ConvolutionDirection::weight_gradient: v.read(x, y), v.write(w); break;
    }
    for (int i = 0; i < stride.size(); ++i) v.number(stride[i], pad[i], dilate[i]);
    v.number(direction, groups, channels_last, tf32, deterministic, relu);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// What adds the bias to what `op` has made, where it is not computed along with it.
Elementwise bias_addition(const Convolution& op);

}  // namespace rensa::operations
