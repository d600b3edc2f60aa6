// The function node of differentiable rows, and the rows' gradients as functions.
#include "rensa/functions/differentiable.h"

#include <string>

#include "rensa/array/pointwise.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/array/ufuncs/signs.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/operations/pointwise/pointwise_rows.h"
// Behind differentiable_value.h, whose functions it calls.
#include "rensa/operations/pointwise/pointwise_functors.h"

namespace rensa {

functions::DifferentiableValue m::sign(const functions::DifferentiableValue& a) {
  return functions::DifferentiableValue(constant(xp::sign(a.variable().array())));
}

functions::DifferentiableValue m::trunc(const functions::DifferentiableValue& a) {
  return functions::DifferentiableValue(constant(xp::trunc(a.variable().array())));
}

}  // namespace rensa

namespace rensa::functions {

namespace {

using Value = DifferentiableValue;

template <class Row> Variables composed(const std::vector<Value>& inputs) {
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  Value x[N], y[M];
  for (std::size_t k = 0; k < N; ++k) x[k] = inputs.at(k);
  pw::call<Row>(x, y);
  Variables results;
  for (const Value& value : y) results.push_back(value.variable());
  return results;
}

class DifferentiableNode final : public FunctionNode {
 public:
  DifferentiableNode(const Differentiable& function, std::vector<Scalar> numbers)
      : FunctionNode(function.row.name), function_(function), numbers_(std::move(numbers)) {}

  Arrays forward(const Arrays& x) override {
    if (function_.keep == Keep::inputs) retain_inputs(first(x.size()));
    std::vector<xp::ElementwiseArgument> arguments(x.begin(), x.end());
    arguments.insert(arguments.end(), numbers_.begin(), numbers_.end());
    Arrays y = detail::pointwise(function_.row, arguments);
    if (function_.keep == Keep::output) retain_outputs(first(y.size()));
    return y;
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept =
        function_.keep == Keep::inputs ? get_retained_inputs() : get_retained_outputs();
    std::vector<Value> given;
    given.reserve(kept.size() + gy.size() + numbers_.size());
    for (Variable& v : kept) given.emplace_back(std::move(v));
    for (const Variable& g : gy) given.push_back(g.defined() ? Value(g) : Value(0.0));
    for (const Scalar& number : numbers_) given.emplace_back(number);
    Variables all = gradients_of(function_.gradient, given), gx;
    for (int i : targets) {
      auto k = static_cast<std::size_t>(i);
      gx.push_back(k < all.size() ? fit(all[k], *inputs()[k]) : Variable());
    }
    return gx;
  }
  std::optional<FunctionAttributes> attributes() const override {
    FunctionAttributes attributes;
    for (std::size_t k = 0; k < numbers_.size(); ++k) {
      if (numbers_[k].kind() == 'c') return std::nullopt;
      attributes.numbers["number" + std::to_string(k)] = numbers_[k].real();
    }
    return attributes;
  }

 private:
  static Indexes first(std::size_t count) {
    Indexes indexes;
    for (std::size_t k = 0; k < count; ++k) indexes.push_back(static_cast<int>(k));
    return indexes;
  }

  const Differentiable& function_;
  std::vector<Scalar> numbers_;
};

}  // namespace

Variables differentiable(const Differentiable& function, const Variables& x,
                         std::vector<Scalar> numbers) {
  return apply<DifferentiableNode>(x, function, std::move(numbers));
}

Variables gradients_of(const Gradient& gradient, const std::vector<DifferentiableValue>& inputs) {
  if (config().enable_backprop) return gradient.composed(inputs);
  std::vector<xp::ElementwiseArgument> arguments;
  arguments.reserve(inputs.size());
  for (const Value& value : inputs) {
    if (value.is_number()) arguments.emplace_back(value.number());
    else arguments.emplace_back(value.variable().array());
  }
  Variables results;
  for (Array& g : detail::pointwise(gradient.row, arguments)) {
    results.emplace_back(std::move(g), false);
  }
  return results;
}

namespace gradients {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients, derivative) \
  constinit const Gradient name{pointwise::name##_grad, composed<pw::name##_grad>};
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}  // namespace gradients

namespace rows {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients, derivative)
#define RENSA_DIFFERENTIABLE(name, rule, keep, inputs, outputs, statements, given, outputs_of, \
                             derivative)                                                       \
  constinit const Differentiable name{pointwise::name, gradients::name, Keep::keep};
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}  // namespace rows

}  // namespace rensa::functions
