// Activation functions: forward and backward.
#include "rensa/functions/activation.h"

#include "rensa/array/softmax.h"
#include "rensa/functions/differentiable.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/node_templates.h"

namespace rensa::functions {

namespace {

/// gy where the output of relu is positive. Linear in gy, so its gradient is itself.
struct ReluGrad {
  static constexpr const char* name = "relu_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& gy, const KeptArray& y) {
    return xp::elementwise(ufunc::relu_grad, {gy, y.get("relu", "output")});
  }
  static Variable backward(const Variable&, const Variable& ggx, const KeptArray& y) {
    return unary<ReluGrad>(ggx, y);
  }
};

struct Relu {
  static constexpr const char* name = "relu";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x) { return xp::elementwise(ufunc::relu, {x}); }
  static Variable backward(const Variable& y, const Variable& gy) {
    return unary<ReluGrad>(gy, KeptArray(y.array()));
  }
};

struct Softmax {
  static constexpr const char* name = "softmax";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x, int axis) { return xp::softmax(x, axis); }
  static Variable backward(const Variable& y, const Variable& gy, int axis) {
    return gradient_of(gradients::softmax, y, gy, sum(gy * y, axis, true));
  }
};

struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x, int axis) { return xp::log_softmax(x, axis); }
  static Variable backward(const Variable& y, const Variable& gy, int axis) {
    return gradient_of(gradients::log_softmax, y, gy, sum(gy, axis, true));
  }
};

}  // namespace

Variable relu(const Variable& x) { return unary<Relu>(x); }
Variable sigmoid(const Variable& x) { return differentiable(rows::sigmoid, {x})[0]; }
Variable tanh(const Variable& x) { return differentiable(rows::tanh, {x})[0]; }
Variable softplus(const Variable& x, double beta) {
  return differentiable(rows::softplus, {x}, {beta})[0];
}
Variable leaky_relu(const Variable& x, double slope) {
  return differentiable(rows::leaky_relu, {x}, {slope})[0];
}
Variable elu(const Variable& x, double alpha) { return differentiable(rows::elu, {x}, {alpha})[0]; }
Variable selu(const Variable& x, double alpha, double scale) {
  return differentiable(rows::selu, {x}, {alpha, scale})[0];
}
Variable gelu(const Variable& x) { return differentiable(rows::gelu, {x})[0]; }
Variable silu(const Variable& x) { return differentiable(rows::silu, {x})[0]; }
Variable hard_sigmoid(const Variable& x) { return differentiable(rows::hard_sigmoid, {x})[0]; }
Variable clipped_relu(const Variable& x, double z) {
  return differentiable(rows::clipped_relu, {x}, {z})[0];
}
Variable relu6(const Variable& x) { return clipped_relu(x, 6); }
Variable softmax(const Variable& x, int axis) { return unary<Softmax>(x, axis); }
Variable log_softmax(const Variable& x, int axis) { return unary<LogSoftmax>(x, axis); }

}  // namespace rensa::functions
