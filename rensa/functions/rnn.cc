// Cells of recurrent networks: forward and backward.
#include "rensa/functions/rnn.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/pointwise.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/differentiable.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/rnn_internal.h"

namespace rensa::functions {

namespace rows {
extern const Differentiable lstm;
}

namespace {

constexpr int kGates = 4;

/// How an input of a cell holds its gates along axis 1: one as it is, several side by side for each
/// unit.
struct Part {
  int gates = 1;

  /// (n, gates * units, ...) with an axis for the gates.
  Shape apart(const Shape& x) const {
    Shape shape = x;
    shape[1] /= gates;
    shape.insert(2, gates);
    return shape;
  }
};

std::vector<BasicIndex> gate_index(int k) { return {Slice(), Slice(), k}; }

void append_gates(const Array& x, const Part& part, Arrays& gates) {
  if (part.gates == 1) return gates.push_back(x);
  Array apart = x.reshape(part.apart(x.shape()));
  for (int k = 0; k < part.gates; ++k) gates.push_back(apart[gate_index(k)]);
}

void append_gates(const Variable& x, const Part& part, Variables& gates) {
  if (part.gates == 1) return gates.push_back(x);
  Variable apart = reshape(x, part.apart(x.shape()));
  for (int k = 0; k < part.gates; ++k) gates.push_back(get_item(apart, gate_index(k)));
}

/// A differentiable row of the gates of its inputs: one kernel, and one backward.
class Cell final : public FunctionNode {
 public:
  Cell(const Differentiable& row, std::vector<Part> parts)
      : FunctionNode(row.row.name), row_(row), parts_(std::move(parts)) {}

  Arrays forward(const Arrays& x) override {
    Indexes all;
    for (std::size_t i = 0; i < x.size(); ++i) all.push_back(static_cast<int>(i));
    retain_inputs(all);
    Arrays gates = gates_of(x);
    return rensa::detail::pointwise(
        row_.row, std::vector<xp::ElementwiseArgument>(gates.begin(), gates.end()));
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    Variables x = get_retained_inputs();
    return config().enable_backprop ? composed(x, gy) : one_kernel(x, gy);
  }

 private:
  template <class T> std::vector<T> gates_of(const std::vector<T>& x) const {
    std::vector<T> gates;
    for (std::size_t i = 0; i < x.size(); ++i) append_gates(x[i], parts_[i], gates);
    return gates;
  }

  Variables one_kernel(const Variables& x, const Variables& gy) const {
    Arrays values, gx;
    for (const Variable& v : x) {
      values.push_back(v.array());
      gx.push_back(xp::empty(v.shape(), v.dtype(), v.device()));
    }
    Arrays gates = gates_of(values);
    std::vector<xp::ElementwiseArgument> arguments(gates.begin(), gates.end());
    for (const Variable& g : gy) {
      if (g.defined()) arguments.emplace_back(g.array());
      else arguments.emplace_back(0.0);
    }
    rensa::detail::pointwise_into(row_.gradient.row, arguments, gates_of(gx));
    Variables results;
    for (Array& g : gx) results.push_back(constant(std::move(g)));
    return results;
  }

  Variables composed(const Variables& x, const Variables& gy) const {
    std::vector<DifferentiableValue> values;
    for (const Variable& v : gates_of(x)) values.emplace_back(v);
    for (const Variable& g : gy) {
      values.push_back(g.defined() ? DifferentiableValue(g) : DifferentiableValue(0.0));
    }
    Variables gradients = row_.gradient.composed(values), results;
    auto next = gradients.begin();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Part& part = parts_[i];
      if (part.gates == 1) {
        results.push_back(cast(*next++, x[i].dtype()));
        continue;
      }
      Shape one = part.apart(x[i].shape());
      one[2] = 1;
      Variables gates;
      for (int k = 0; k < part.gates; ++k) gates.push_back(reshape(*next++, one));
      results.push_back(cast(reshape(concat(gates, 2), x[i].shape()), x[i].dtype()));
    }
    return results;
  }

  const Differentiable& row_;
  std::vector<Part> parts_;
};

/// Whether x is of c's shape, but for fewer rows and `times` as many columns.
bool fits(const Shape& c, const Shape& x, std::int64_t times) {
  if (c.ndim() < 2 || x.ndim() != c.ndim() || x[0] > c[0] || x[1] != times * c[1]) return false;
  return std::equal(c.begin() + 2, c.end(), x.begin() + 2);
}

}  // namespace

std::pair<Variable, Variable> lstm(const Variable& c_prev, const Variable& x) {
  if (!fits(c_prev.shape(), x.shape(), kGates)) {
    throw ShapeError(fmt::format(
        "lstm: c_prev {} takes an x of as many rows or fewer, {} times as many columns and else "
        "the same shape; x is {}",
        c_prev.array().view().describe(), kGates, x.array().view().describe()));
  }
  const std::vector<Part> parts{{}, {.gates = kGates}};
  std::int64_t rows = x.shape(0);
  if (rows == c_prev.shape(0)) {
    Variables y = apply<Cell>({c_prev, x}, rows::lstm, parts);
    return {y[0], y[1]};
  }
  Variables y = apply<Cell>({get_item(c_prev, {Slice(0, rows)}), x}, rows::lstm, parts);
  return {concat({y[0], get_item(c_prev, {Slice(rows, none)})}, 0), y[1]};
}

std::pair<Variable, Variable> tree_lstm(const Variables& cs, const Variable& x) {
  auto parts = static_cast<std::int64_t>(cs.size()) + 3;
  for (const Variable& c : cs) {
    if (fits(c.shape(), x.shape(), parts) && c.shape() == cs[0].shape() &&
        c.shape(0) == x.shape(0)) {
      continue;
    }
    throw ShapeError(
        fmt::format("tree_lstm: x {} has {} times the columns of each of {} states, which are of "
                    "one shape, and "
                    "else that shape; a state is {}",
                    x.array().view().describe(), parts, cs.size(), c.array().view().describe()));
  }
  if (cs.empty()) throw ValueError("tree_lstm: no states of children");
  Variables gates = split_axis(x, parts, 1);
  Variable c = tanh(gates[0]) * sigmoid(gates[1]);
  for (std::size_t k = 0; k < cs.size(); ++k) c = c + sigmoid(gates[3 + k]) * cs[k];
  return {c, sigmoid(gates[2]) * tanh(c)};
}

std::pair<Variable, Variable> slstm(const Variable& c_prev1, const Variable& c_prev2,
                                    const Variable& x1, const Variable& x2) {
  bool fit = fits(c_prev1.shape(), x1.shape(), kGates) &&
             fits(c_prev2.shape(), x2.shape(), kGates) && c_prev1.shape() == c_prev2.shape() &&
             x1.shape(0) == c_prev1.shape(0) && x2.shape() == x1.shape();
  if (!fit) {
    throw ShapeError(
        fmt::format("slstm: states {} and {}, inputs {} and {}: the states are of one shape, the "
                    "inputs of that "
                    "with {} times the columns",
                    c_prev1.array().view().describe(), c_prev2.array().view().describe(),
                    x1.array().view().describe(), x2.array().view().describe(), kGates));
  }
  Variables a, b;
  append_gates(x1, {.gates = kGates}, a), append_gates(x2, {.gates = kGates}, b);
  auto memory = [](const Variables& gates, const Variable& c) {
    return tanh(gates[0]) * sigmoid(gates[1]) + sigmoid(gates[2]) * c;
  };
  Variable c = memory(a, c_prev1) + memory(b, c_prev2);
  return {c, sigmoid(a[3] + b[3]) * tanh(c)};
}

namespace detail {

void check_state_rows(const char* link, const Variable& x, const Variable& state) {
  if (!state.defined() || state.shape(0) == x.shape(0)) return;
  throw ShapeError(fmt::format(
      "{}: x {} and the state {} must have as many rows; reset_state() of a link that keeps its "
      "state begins anew",
      link, x.array().view().describe(), state.array().view().describe()));
}

}  // namespace detail

}  // namespace rensa::functions
