// Checks of gradients by differences.
#include "rensa/autograd/gradient_check.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::gradient_check {

namespace {

bool is_floating(const Array& a) { return dtype_kind(a.dtype()) == 'f'; }

double dot(const Array& a, const Array& b) {
  return xp::sum(a.astype(float64) * b.astype(float64)).item<double>();
}

Arrays arrays_of(const Variables& variables) {
  Arrays arrays;
  for (const Variable& v : variables) arrays.push_back(v.defined() ? v.array() : Array());
  return arrays;
}

Arrays ones_unless_given(const Arrays& outputs, const Arrays& grad_outputs) {
  if (!grad_outputs.empty()) return grad_outputs;
  Arrays ones;
  for (const Array& y : outputs) ones.push_back(xp::ones_like(y));
  return ones;
}

double weighted_sum(const Arrays& outputs, const Arrays& weights) {
  double total = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (weights[i].defined()) total += dot(outputs[i], weights[i]);
  }
  return total;
}

/// The subscripts of element `i` in C order.
std::vector<BasicIndex> place_of(std::int64_t i, const Shape& shape) {
  std::vector<BasicIndex> place(static_cast<std::size_t>(shape.size()), BasicIndex(0));
  for (int axis = shape.size(); axis-- > 0; i /= shape[axis])
    place[static_cast<std::size_t>(axis)] = BasicIndex(i % shape[axis]);
  return place;
}

/// A direction of length 1 over all of `like` together.
Arrays random_direction(const Arrays& like) {
  Arrays direction;
  double squares = 0;
  for (const Array& a : like) {
    direction.push_back(xp::random::normal(0, 1, a.shape(), float64, a.device()));
    squares += dot(direction.back(), direction.back());
  }
  if (squares == 0) return direction;
  for (Array& d : direction) d = d / std::sqrt(squares);
  return direction;
}

/// A point, and the way there from `origin` along a line.
struct Line {
  Arrays points, origin, direction;
  explicit Line(Arrays p) : points(std::move(p)), direction(random_direction(points)) {
    for (const Array& a : points) origin.push_back(a.copy());
  }
  ~Line() { move_to(0); }
  void move_to(double distance) const {
    for (std::size_t i = 0; i < points.size(); ++i) {
      Array there = origin[i].astype(float64) + direction[i] * distance;
      points[i].assign(there.astype(points[i].dtype()));
    }
  }
};

}  // namespace

Arrays numerical_grad(const std::function<Arrays()>& f, const Arrays& inputs,
                      const Arrays& grad_outputs, double eps) {
  Arrays gradients;
  for (const Array& x : inputs) {
    for (int i = 0; i < x.ndim(); ++i) {
      if (x.strides()[i] != 0 || x.shape(i) <= 1) continue;
      throw ValueError(fmt::format(
          "numerical_grad: elements of the input {} are the same one; give a copy of it",
          x.view().describe()));
    }
    std::vector<double> values = x.to_vector<double>(), gradient(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Array element = x[place_of(static_cast<std::int64_t>(i), x.shape())];
      element.fill(values[i] + eps);
      double above = weighted_sum(f(), grad_outputs);
      element.fill(values[i] - eps);
      double below = weighted_sum(f(), grad_outputs);
      element.fill(values[i]);
      gradient[i] = (above - below) / (2 * eps);
    }
    gradients.push_back(xp::array(gradient, cpu()).reshape(x.shape()));
  }
  return gradients;
}

void check_backward(const Function& f, const Arrays& inputs, const Arrays& grad_outputs,
                    const std::vector<ParameterRef>& params, const Options& options) {
  Variables xs, wanted;
  for (const Array& x : inputs) {
    xs.emplace_back(x.copy());
    if (is_floating(x)) wanted.push_back(xs.back());
  }
  Variables ys = f(xs);  // parameters that wait for their shape are made here
  wanted.insert(wanted.end(), params.begin(), params.end());
  Arrays weights = ones_unless_given(arrays_of(ys), grad_outputs);
  Variables seeds;
  for (const Array& w : weights) seeds.push_back(constant(w));
  Variables gradients = grad(ys, wanted, seeds);

  Line line(arrays_of(wanted));
  double analytical = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) analytical += dot(gradients[i].array(), line.direction[i]);
  }
  auto value_at = [&](double distance) {
    line.move_to(distance);
    return weighted_sum(arrays_of(f(xs)), weights);
  };
  double numerical = (value_at(options.eps) - value_at(-options.eps)) / (2 * options.eps);
  double difference = std::abs(numerical - analytical);
  if (difference <= options.atol + options.rtol * std::abs(analytical)) return;
  throw ValueError(fmt::format(
      "check_backward: along a random direction backward gives {}, the difference of values {} "
      "({} apart)",
      analytical, numerical, difference));
}

void check_double_backward(const Function& f, const Arrays& inputs, const Arrays& grad_outputs,
                           const std::vector<ParameterRef>& params, const Options& options) {
  Arrays weights = ones_unless_given(
      [&] {
        Variables xs;
        for (const Array& x : inputs) xs.push_back(constant(x));
        return arrays_of(f(xs));
      }(),
      grad_outputs);
  Arrays all = inputs;
  all.insert(all.end(), weights.begin(), weights.end());
  // The gradients as a function of the inputs and of grad_outputs.
  auto first_order = [&](const Variables& arguments) {
    auto middle = arguments.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    Variables xs(arguments.begin(), middle), seeds(middle, arguments.end()), wanted;
    for (const Variable& x : xs) {
      if (is_floating(x.array())) wanted.push_back(x);
    }
    wanted.insert(wanted.end(), params.begin(), params.end());
    Variables gradients;
    for (Variable& g : grad(f(xs), wanted, seeds, true)) {
      if (g.defined()) gradients.push_back(std::move(g));
    }
    return gradients;
  };
  check_backward(first_order, all, {}, params, options);
}

}  // namespace rensa::gradient_check
