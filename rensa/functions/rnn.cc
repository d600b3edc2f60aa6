// Cells of recurrent networks: forward and backward.
#include "rensa/functions/rnn.h"

#include <fmt/format.h>

#include "rensa/array/pointwise.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/differentiable.h"

namespace rensa::functions {

namespace {

constexpr int kGates = 4;

/// (n, 4 * units, ...) as (n, units, 4, ...).
Shape gates_apart(const Shape& x) {
  Shape shape = x;
  shape[1] /= kGates;
  shape.insert(2, kGates);
  return shape;
}

Array gate(const Array& apart, int k) { return apart[{Slice(), Slice(), k}]; }
Variable gate(const Variable& apart, int k) { return get_item(apart, {Slice(), Slice(), k}); }

/// c, the gates of x.
template <class T> std::vector<T> cell_inputs(const T& c, const T& apart) {
  std::vector<T> inputs{c};
  for (int k = 0; k < kGates; ++k) inputs.push_back(gate(apart, k));
  return inputs;
}

class Lstm final : public FunctionNode {
 public:
  Lstm() : FunctionNode("lstm") {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0, 1});
    Arrays inputs = cell_inputs(x[0], x[1].reshape(gates_apart(x[1].shape())));
    std::vector<xp::ElementwiseArgument> arguments(inputs.begin(), inputs.end());
    return detail::pointwise(rows::lstm.row, arguments);
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    Variables x = get_retained_inputs();
    return config().enable_backprop ? composed(x, gy) : one_kernel(x, gy);
  }

 private:
  static Variables one_kernel(const Variables& x, const Variables& gy) {
    Shape apart = gates_apart(x[1].shape());
    Array gc = xp::empty(x[0].shape(), x[0].dtype(), x[0].device());
    Array gx = xp::empty(x[1].shape(), x[1].dtype(), x[1].device());
    Arrays inputs = cell_inputs(x[0].array(), x[1].array().reshape(apart));
    std::vector<xp::ElementwiseArgument> arguments(inputs.begin(), inputs.end());
    for (const Variable& g : gy) {
      if (g.defined()) arguments.emplace_back(g.array());
      else arguments.emplace_back(0.0);
    }
    detail::pointwise_into(rows::lstm.gradient.row, arguments, cell_inputs(gc, gx.reshape(apart)));
    return {constant(gc), constant(gx)};
  }

  static Variables composed(const Variables& x, const Variables& gy) {
    Shape apart = gates_apart(x[1].shape());
    std::vector<DifferentiableValue> values;
    for (const Variable& v : cell_inputs(x[0], reshape(x[1], apart))) values.emplace_back(v);
    for (const Variable& g : gy) {
      values.push_back(g.defined() ? DifferentiableValue(g) : DifferentiableValue(0.0));
    }
    Variables gradients = rows::lstm.gradient.composed(values), gates;
    apart[2] = 1;
    for (std::size_t k = 1; k < gradients.size(); ++k)
      gates.push_back(reshape(gradients[k], apart));
    Variable gx = reshape(concat(gates, 2), x[1].shape());
    return {cast(gradients[0], x[0].dtype()), cast(gx, x[1].dtype())};
  }
};

bool fits(const Shape& c, const Shape& x) {
  if (c.ndim() < 2 || x.ndim() != c.ndim() || x[0] > c[0] || x[1] != kGates * c[1]) return false;
  for (int i = 2; i < c.ndim(); ++i) {
    if (x[i] != c[i]) return false;
  }
  return true;
}

}  // namespace

std::pair<Variable, Variable> lstm(const Variable& c_prev, const Variable& x) {
  if (!fits(c_prev.shape(), x.shape())) {
    throw ShapeError(fmt::format(
        "lstm: c_prev {} takes an x of as many rows or fewer, {} times as many columns and else "
        "the same shape; x is {}",
        c_prev.array().view().describe(), kGates, x.array().view().describe()));
  }
  std::int64_t rows = x.shape(0);
  if (rows == c_prev.shape(0)) {
    Variables y = apply<Lstm>({c_prev, x});
    return {y[0], y[1]};
  }
  Variables y = apply<Lstm>({get_item(c_prev, {Slice(0, rows)}), x});
  return {concat({y[0], get_item(c_prev, {Slice(rows, none)})}, 0), y[1]};
}

}  // namespace rensa::functions
