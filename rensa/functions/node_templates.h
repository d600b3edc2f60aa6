// Function nodes of elementwise functions: what is left to say of one is its forward and its
// backward.
//
//   struct Exp {
//     static constexpr const char* name = "exp";
//     static constexpr Keep keep = Keep::output;
//     static Array forward(const Array& x) { return xp::exp(x); }
//     static Variable backward(const Variable& y, const Variable& gy) { return gy * y; }
//   };
//   Variable exp(const Variable& x) { return unary<Exp>(x); }
#pragma once

#include <utility>

#include "rensa/autograd/function_node.h"
#include "rensa/functions/array_functions.h"

namespace rensa::functions {

/// What a node keeps for its backward.
enum class Keep : unsigned char { nothing, inputs, output };

/// `gradient` in the shape and dtype of the input that it belongs to: the reverse of broadcasting
/// and promotion.
inline Variable fit(const Variable& gradient, const VariableNode& input) {
  return cast(sum_to(gradient, input.shape), input.dtype);
}

/// Op::forward(x, attributes...) and Op::backward(kept, gy, attributes...).
template <class Op, class... Attributes> class Unary final : public FunctionNode {
 public:
  explicit Unary(Attributes... attributes)
      : FunctionNode(Op::name), attributes_(std::move(attributes)...) {}

  Arrays forward(const Arrays& x) override {
    if (Op::keep == Keep::inputs) retain_inputs({0});
    if (Op::keep == Keep::output) retain_outputs({0});
    return {std::apply([&](const auto&... a) { return Op::forward(x[0], a...); }, attributes_)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable kept;
    if (Op::keep == Keep::inputs) kept = get_retained_inputs()[0];
    if (Op::keep == Keep::output) kept = get_retained_outputs()[0];
    Variable gx =
        std::apply([&](const auto&... a) { return Op::backward(kept, gy[0], a...); }, attributes_);
    return {cast(gx, inputs()[0]->dtype)};
  }
  /// Op::attributes(attributes...), where there is one.
  std::optional<FunctionAttributes> attributes() const override {
    if constexpr (sizeof...(Attributes) == 0) {
      return FunctionAttributes();
    } else if constexpr (requires(const Attributes&... a) { Op::attributes(a...); }) {
      return std::apply(
          [](const auto&... a) -> std::optional<FunctionAttributes> {
            return Op::attributes(a...);
          },
          attributes_);
    } else {
      return std::nullopt;
    }
  }

 private:
  std::tuple<Attributes...> attributes_;
};

template <class Op, class... Attributes>
Variable unary(const Variable& x, Attributes... attributes) {
  return apply<Unary<Op, Attributes...>>({x}, std::move(attributes)...)[0];
}

/// Op::forward(a, b) of arrays that broadcast; Op::backward(i, kept, gy) is the gradient of input i
/// in the shape of the output, `kept` the two inputs where Op::keep says so. Op::both(kept, gy),
/// where there is one, is asked first where both are wanted: it gives none where one by one takes
/// less.
template <class Op> class Binary final : public FunctionNode {
 public:
  Binary() : FunctionNode(Op::name) {}

  Arrays forward(const Arrays& x) override {
    if (Op::keep == Keep::inputs) retain_inputs({0, 1});
    return {Op::forward(x[0], x[1])};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept, gx;
    if (Op::keep == Keep::inputs) kept = get_retained_inputs();
    if constexpr (requires { Op::both(kept, gy[0]); }) {
      if (targets.size() == 2) gx = Op::both(kept, gy[0]);
    }
    if (gx.empty()) {
      for (int i : targets) gx.push_back(Op::backward(i, kept, gy[0]));
    }
    for (std::size_t k = 0; k < targets.size(); ++k) {
      gx[k] = fit(gx[k], *inputs()[static_cast<std::size_t>(targets[k])]);
    }
    return gx;
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }
};

template <class Op> Variable binary(const Variable& a, const Variable& b) {
  return apply<Binary<Op>>({a, b})[0];
}

}  // namespace rensa::functions
