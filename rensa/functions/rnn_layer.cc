// One layer of a recurrent network over sequences, in one direction or in both side by side:
// forward, and a backward that has one product for each gradient of weights.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/pointwise.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/functions/rnn_layer.h"
#include "rensa/operations/pointwise/recurrent_rows.h"

namespace rensa::functions {

namespace {

using detail::CellKind;
using detail::Direction;
using detail::Layer;
using detail::LayerOutput;
using detail::LayerSteps;
using detail::Memory;
using detail::Piece;

Array rows_of(const Array& a, std::int64_t begin, std::int64_t count) {
  return rensa::detail::slice_along(a, 0, begin, count);
}

/// The columns of part k and those of `count` parts, each `units` wide.
Array part_of(const Array& a, std::int64_t units, std::int64_t k, std::int64_t count = 1) {
  return rensa::detail::slice_along(a, 1, k * units, count * units);
}

/// Runs a row of recurrent.def. An undefined input is the number 0.
void run_row(const PointwiseRow& row, const Arrays& in, const Arrays& out) {
  std::vector<xp::ElementwiseArgument> arguments;
  for (const Array& a : in) {
    if (a.defined()) arguments.emplace_back(a);
    else arguments.emplace_back(0.0);
  }
  rensa::detail::pointwise_into(row, arguments, out);
}

/// Outputs or memories of all times, and what they start from.
struct History {
  const LayerSteps& steps;
  Array start, values;

  Array of(std::size_t i) const { return rows_of(values, steps[i].begin, steps[i].rows); }
  Array before(std::size_t i) const { return joined(steps.before(i)); }
  Array end() const { return joined(steps.at_end()); }
  /// What stands before each time, time after time.
  Array before_all() const {
    Pieces all;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      Pieces here = steps.before(steps.in_time(k));
      all.insert(all.end(), here.begin(), here.end());
    }
    return joined(all);
  }

 private:
  using Pieces = std::vector<Piece>;

  /// Rows behind one another: a view where they lie so.
  Array joined(const Pieces& pieces) const {
    struct Run {
      bool of_start;
      std::int64_t begin, rows;
    };
    std::vector<Run> runs;
    std::int64_t total = 0;
    for (const Piece& piece : pieces) {
      std::int64_t begin = piece.from + (piece.of_start ? 0 : steps[piece.step].begin);
      total += piece.rows();
      bool goes_on = !runs.empty() && runs.back().of_start == piece.of_start &&
                     runs.back().begin + runs.back().rows == begin;
      if (goes_on) runs.back().rows += piece.rows();
      else runs.push_back({piece.of_start, begin, piece.rows()});
    }
    auto part = [&](const Run& run) {
      return rows_of(run.of_start ? start : values, run.begin, run.rows);
    };
    if (runs.size() == 1) return part(runs[0]);
    Array all = xp::empty({total, values.shape(1)}, values.dtype(), values.device());
    std::vector<rensa::detail::CopyPair> copies;
    std::int64_t at = 0;
    for (const Run& run : runs) {
      copies.push_back({part(run), rows_of(all, at, run.rows)});
      at += run.rows;
    }
    rensa::detail::copy_parts("rnn_layer", copies);
    return all;
  }
};

/// The gradient of what goes from one time to the next, a row for each sequence: it begins as that
/// of what the sequence ends with, and ends as that of what it starts from.
class StateGradient {
 public:
  StateGradient(const Array& end, const Shape& shape, const LayerSteps& steps, const Array& like)
      : known_(end.defined() || !steps.all_of_one_batch()) {
    if (end.defined()) values_ = end.copy();
    else if (known_) values_ = xp::zeros(shape, like.dtype(), like.device());
    else values_ = xp::empty(shape, like.dtype(), like.device());
  }
  /// Of the first sequences; undefined while it is zero.
  Array read(std::int64_t rows) const { return known_ ? rows_of(values_, 0, rows) : Array(); }
  Array all() const { return values_; }
  /// Where it is to be written.
  Array write(std::int64_t rows) {
    known_ = true;
    return rows_of(values_, 0, rows);
  }

 private:
  Array values_;
  bool known_;  // of all sequences
};

/// Inputs: x, the weight and the bias for it, the weight for the last output, h and, of some kinds,
/// c or the bias for the last output. Outputs: y, what h ends with, what c ends with.
///
/// Of both directions a step is one time of each, the first and the last one, the second and the
/// last but one, and so on. Within the node arrays are in the order of steps, and have a row for
/// each direction, in turns: rows of all of them lie at one distance, and so do a step's matrices
/// of the two directions. Its products are one product of two matrices by two.
class RnnLayer final : public FunctionNode {
 public:
  enum Input : std::size_t { kX, kWeight, kBias, kLastWeight, kH, kC, kLastBias = kC };

  RnnLayer(CellKind kind, Direction direction, std::vector<std::int64_t> batches)
      : FunctionNode("rnn_layer"),
        kind_(kind),
        direction_(direction),
        directions_(direction == Direction::both ? 2 : 1),
        batches_(std::move(batches)),
        steps_(batches_, direction == Direction::backward, directions_) {}

  Arrays forward(const Arrays& in) override {
    Indexes all;
    for (std::size_t i = 0; i < in.size(); ++i) all.push_back(static_cast<int>(i));
    retain_inputs(all), retain_outputs({0});
    Array gates = turned(in_turns(xp::linear(in[kX], in[kWeight], in[kBias])));
    Dtype dtype = gates.dtype();
    if (kind_ == CellKind::lstm) dtype = promote_types(dtype, in[kC].dtype());
    if (kind_ == CellKind::gru) dtype = promote_types(dtype, in[kH].dtype());
    Array start = in_turns(in[kH]);
    Shape shape{gates.shape(0), start.shape(1)};
    History h{steps_, start, xp::empty(shape, dtype, gates.device())};
    bool is_lstm = kind_ == CellKind::lstm, is_gru = kind_ == CellKind::gru;
    if (is_lstm) kept_ = xp::empty(shape, dtype, gates.device());
    if (is_gru) kept_ = xp::empty(shape, gates.dtype(), gates.device());
    if (is_lstm || is_gru) gates_ = gates;
    if (is_one_kernel(in)) launch_all_times(in, gates, h.values);
    else go_through_times(in, gates, h);
    Arrays out{side_by_side(turned(h.values)), side_by_side(h.end())};
    if (is_lstm) out.push_back(side_by_side(History{steps_, in_turns(in[kC]), kept_}.end()));
    return out;
  }
  std::int64_t multiply_adds(const Arrays& in, const Arrays&) const override {
    return in[kX].shape(0) * (in[kWeight].size() + in[kLastWeight].size());
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables in = get_retained_inputs(), y = get_retained_outputs();
    if (config().enable_backprop) return composed(in, gy);
    auto wanted = [&](Input i) {
      return std::ranges::find(targets, static_cast<int>(i)) != targets.end();
    };
    History h{steps_, in_turns(in[kH].array()), turned(in_turns(y[0].array()))};
    Gradients g = gradients_of_gates(in, h, gy, wanted(kH));
    Variables gx(in.size());
    auto put = [&](Input i, const Array& value) {
      gx[i] = constant(value.reshape(in[i].shape()).astype(in[i].dtype(), false));
    };
    Array of_input = side_by_side(turned(g.of_input)), of_last = apart(g.of_last);
    if (wanted(kX)) put(kX, xp::matmul(of_input, in[kWeight].array()));
    if (wanted(kWeight)) put(kWeight, xp::matmul(of_input.transpose(), in[kX].array()));
    if (wanted(kBias)) put(kBias, of_input.sum(0));
    if (wanted(kLastWeight)) {
      Array before = apart(h.before_all().astype(of_last.dtype(), false));
      put(kLastWeight, xp::matmul(of_last.swapaxes(1, 2), before));
    }
    bool is_gru = kind_ == CellKind::gru;
    if (wanted(kH)) put(kH, is_gru ? g.h.all() + g.past.all() : g.h.all());
    if (kind_ == CellKind::lstm && wanted(kC)) put(kC, g.past.all());
    if (is_gru && wanted(kLastBias)) put(kLastBias, of_last.sum(1));
    return gx;
  }

 private:
  bool is_tanh() const { return kind_ == CellKind::rnn_tanh; }

  /// (rows, directions * n) as (rows * directions, n), and back: views of what is contiguous.
  Array in_turns(const Array& a) const {
    return a.reshape({a.shape(0) * directions_, a.shape(1) / directions_});
  }
  Array side_by_side(const Array& a) const {
    return a.reshape({a.shape(0) / directions_, a.shape(1) * directions_});
  }
  /// Rows in turns as a matrix of each direction: a view.
  Array apart(const Array& a) const {
    return a.reshape({a.shape(0) / directions_, directions_, a.shape(1)}).swapaxes(0, 1);
  }
  /// Weights behind one another as those of each direction.
  Array weights_apart(const Array& a) const {
    return a.reshape({directions_, a.shape(0) / directions_, a.shape(1)});
  }
  /// Rows of all times in the order of steps, or of those in that order in the order of times: the
  /// second direction goes through them the other way.
  Array turned(const Array& a) const {
    if (directions_ == 1) return a;
    auto times = static_cast<std::int64_t>(steps_.size());
    auto of = [&](const Array& rows, std::int64_t d) {
      return rows.reshape({times, batches_[0], 2, a.shape(1)})[{Slice(), Slice(), d}];
    };
    Array b = xp::empty(a.shape(), a.dtype(), a.device());
    rensa::detail::copy_parts("rnn_layer",
                              {{of(a, 0), of(b, 0)}, {of(a, 1)[Slice(none, none, -1)], of(b, 1)}});
    return b;
  }
  /// The bias for the last output, for each row that may be there.
  Array last_bias(const Arrays& in) const {
    std::int64_t rows = in[kH].shape(0), n = in[kLastBias].size() / directions_;
    Array each = in[kLastBias].reshape({directions_, n});
    return each.broadcast_to({rows, directions_, n}).reshape({rows * directions_, n});
  }

  operations::RecurrentCell cell() const {
    using operations::RecurrentCell;
    return kind_ == CellKind::lstm  ? RecurrentCell::lstm
           : kind_ == CellKind::gru ? RecurrentCell::gru
           : is_tanh()              ? RecurrentCell::tanh
                                    : RecurrentCell::relu;
  }
  /// Whether a GPU goes through all times in one kernel: of sequences of one length, and of units
  /// whose weights are few enough.
  bool is_one_kernel(const Arrays& in) const {
    Array start = in_turns(in[kH]);
    return steps_.all_of_one_batch() && start.size() > 0 &&
           std::ranges::all_of(in, [](const Array& a) { return a.dtype() == float32; }) &&
           operations::RecurrentSteps::fits(in[kX].device(), cell(), start.shape(0), start.shape(1),
                                            directions_);
  }
  void launch_all_times(const Arrays& in, const Array& gates, const Array& h) const {
    bool is_lstm = kind_ == CellKind::lstm, is_gru = kind_ == CellKind::gru;
    operations::RecurrentSteps op(cell());
    Array weight = in[kLastWeight].ascontiguous(), start = in_turns(in[kH]).ascontiguous();
    Array other = is_gru ? in[kLastBias].ascontiguous() : Array();  // or c
    if (is_lstm) other = in_turns(in[kC]).ascontiguous();
    op.directions = directions_;
    op.backward = steps_.in_time(0) != 0;
    op.weight = weight.operand();
    op.h = start.operand();
    if (is_lstm) op.c = other.operand();
    if (is_gru) op.bias = other.operand();
    op.gates = gates.operand();
    op.y = h.operand();
    if (is_lstm || is_gru) op.kept = kept_.operand();
    launch(op);
  }
  void go_through_times(const Arrays& in, const Array& gates, const History& h) const {
    bool is_lstm = kind_ == CellKind::lstm, is_gru = kind_ == CellKind::gru;
    Array bias = is_gru ? last_bias(in) : Array();
    Array weight = weights_apart(in[kLastWeight]).swapaxes(1, 2);
    History c{steps_, is_lstm ? in_turns(in[kC]) : Array(), kept_};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto [begin, rows] = steps_[i];
      Array last = h.before(i), x = rows_of(gates, begin, rows);
      Array u = xp::empty(x.shape(), x.dtype(), x.device());
      (void)xp::matmul(apart(last.astype(x.dtype(), false)), weight, {.out = apart(u)});
      if (is_lstm) lstm_time(c, i, x, u, h.of(i));
      else if (is_gru) gru_time(last, i, x, u, rows_of(bias, 0, rows), h.of(i));
      else run_row(is_tanh() ? pointwise::tanh_time : pointwise::relu_time, {x, u}, {h.of(i)});
    }
  }
  // The gates take the places of what their functions are of: x of this time.
  static void lstm_time(const History& c, std::size_t i, const Array& x, const Array& u,
                        const Array& h) {
    std::int64_t n = h.shape(1);
    Arrays in{c.before(i)}, out{c.of(i), h};
    for (int k = 0; k < 4; ++k) in.push_back(part_of(x, n, k)), out.push_back(part_of(x, n, k));
    for (int k = 0; k < 4; ++k) in.push_back(part_of(u, n, k));
    run_row(pointwise::lstm_time, in, out);
  }
  // Those of x are n, r, z; what is kept beside them is what the last output gives for n.
  void gru_time(const Array& last, std::size_t i, const Array& x, const Array& u, const Array& bias,
                const Array& h) const {
    std::int64_t n = h.shape(1);
    Array xn = part_of(x, n, 0), xr = part_of(x, n, 1), xz = part_of(x, n, 2);
    Arrays in{last, xr, xz, xn};
    for (const Array& a : {u, bias}) {
      for (int k = 0; k < 3; ++k) in.push_back(part_of(a, n, k));
    }
    run_row(pointwise::gru_time, in,
            {h, xr, xz, xn, rows_of(kept_, steps_[i].begin, steps_[i].rows)});
  }

  /// Of the gates of all times, time after time, and of what the layer starts from: `past` is c's,
  /// or what reaches h past the gates of a gated recurrent unit.
  struct Gradients {
    Array of_input, of_last;
    StateGradient h, past;
  };
  Gradients gradients_of_gates(const Variables& in, const History& h, const Variables& gy,
                               bool of_start) const {
    bool is_lstm = kind_ == CellKind::lstm, is_gru = kind_ == CellKind::gru;
    std::int64_t units = h.values.shape(1), parts = is_lstm || is_gru ? 4 : 1;
    Array weight = weights_apart(in[kLastWeight].array());
    Array all = xp::empty({h.values.shape(0), parts * units}, weight.dtype(), weight.device());
    auto given = [&](std::size_t k) {
      return k < gy.size() && gy[k].defined() ? in_turns(gy[k].array()) : Array();
    };
    History c{steps_, is_lstm ? in_turns(in[kC].array()) : Array(), kept_};
    Array of_y = gy[0].defined() ? turned(given(0)) : Array();
    // Of a gated recurrent unit n for the input, r, z, n for the last output: r and z are the same.
    const Shape& shape = h.start.shape();
    Gradients g{is_gru ? part_of(all, units, 0, 3) : all, is_gru ? part_of(all, units, 1, 3) : all,
                StateGradient(given(1), shape, steps_, h.values),
                StateGradient(given(2), shape, steps_, h.values)};
    for (std::size_t i = steps_.size(); i-- > 0;) {
      auto [begin, rows] = steps_[i];
      OutputGradient gh{of_y.defined() ? rows_of(of_y, begin, rows) : Array(), g.h.read(rows)};
      Array here = rows_of(all, begin, rows);
      if (is_lstm) {
        lstm_time_grad(c, i, gh, g.past, here);
      } else if (is_gru) {
        gru_time_grad(h.before(i), i, gh, g.past, here);
      } else {
        run_row(is_tanh() ? pointwise::tanh_time_grad : pointwise::relu_time_grad,
                {h.of(i), gh.by_itself, gh.of_next}, {here});
      }
      if (i == 0 && !of_start) break;
      Array of_step = apart(rows_of(g.of_last, begin, rows));
      (void)xp::matmul(of_step, weight, {.out = apart(g.h.write(rows))});
    }
    return g;
  }

  struct OutputGradient {
    Array by_itself, of_next;
  };
  void lstm_time_grad(const History& c, std::size_t i, const OutputGradient& gh, StateGradient& gc,
                      const Array& g) const {
    auto [begin, rows] = steps_[i];
    std::int64_t n = c.values.shape(1);
    Array gates = rows_of(gates_, begin, rows);
    Arrays in{c.before(i), c.of(i)}, out;
    for (int k = 0; k < 4; ++k) in.push_back(part_of(gates, n, k));
    in.insert(in.end(), {gh.by_itself, gh.of_next, gc.read(rows)});
    out.push_back(gc.write(rows));
    for (int k = 0; k < 4; ++k) out.push_back(part_of(g, n, k));
    run_row(pointwise::lstm_time_grad, in, out);
  }
  void gru_time_grad(const Array& last, std::size_t i, const OutputGradient& gh,
                     StateGradient& past, const Array& g) const {
    auto [begin, rows] = steps_[i];
    std::int64_t n = last.shape(1);
    Array gates = rows_of(gates_, begin, rows), u = rows_of(kept_, begin, rows);
    Arrays in{last, part_of(gates, n, 1), part_of(gates, n, 2), part_of(gates, n, 0),
              u,    gh.by_itself,         gh.of_next,           past.read(rows)};
    run_row(
        pointwise::gru_time_grad, in,
        {past.write(rows), part_of(g, n, 1), part_of(g, n, 2), part_of(g, n, 0), part_of(g, n, 3)});
  }

  // For gradients that are to be differentiated.
  Variables composed(const Variables& given, const Variables& gy) const {
    Variables in, outputs, gradients;
    for (const Variable& v : given) in.push_back(autograd::entrance(name(), v));
    std::vector<LayerSteps> each;
    for (std::int64_t d = 0; d < directions_; ++d) {
      each.emplace_back(batches_, direction_ == Direction::backward || d == 1);
    }
    Variables y = detail::composed_layer(kind_, each, in);
    for (std::size_t i = 0; i < gy.size(); ++i) {
      if (gy[i].defined()) outputs.push_back(y[i]), gradients.push_back(gy[i]);
    }
    return grad(outputs, in, gradients, true);
  }

  CellKind kind_;
  Direction direction_;
  std::int64_t directions_;
  std::vector<std::int64_t> batches_;
  LayerSteps steps_;
  // The gates of all times; c, or of gated recurrent units what h gives for n.
  Array gates_, kept_;
};

void check_dtypes(const Layer& layer, const Variables& weights, const Memory& start) {
  Dtype dtype = weights[0].dtype();
  bool fits = dtype_kind(dtype) == 'f';
  for (const Variable& v : weights) fits &= v.dtype() == dtype;
  for (const Variable& state : {start.h, start.c}) {
    if (!state.defined()) continue;
    bool cast = config().autocast && state.dtype() != float64 && dtype_kind(state.dtype()) == 'f';
    fits &= state.dtype() == dtype || cast;
  }
  if (fits) return;
  std::string text = fmt::format("{}: hx of {}", layer.name, dtype_name(start.h.dtype()));
  if (start.c.defined()) text += fmt::format(", cx of {}", dtype_name(start.c.dtype()));
  throw DtypeError(fmt::format(
      "{}, xs of {}, weights of {} and {}, biases of {}: all must be of one floating dtype; use "
      "F::cast or astype",
      text, dtype_name(weights[0].dtype()), dtype_name(weights[1].dtype()),
      dtype_name(weights[3].dtype()), dtype_name(weights[2].dtype())));
}

}  // namespace

detail::LayerOutput detail::run_layer(const Layer& layer, const Variable& x, const Memory& start) {
  Variables products{x, layer.input, layer.bias, layer.last};
  if (layer.last_bias.defined()) products.push_back(layer.last_bias);
  products = autograd::autocast("linear", products);
  check_dtypes(layer, products, start);
  Variables in(products.begin(), products.begin() + 4);
  in.push_back(start.h);
  if (layer.kind == CellKind::lstm) in.push_back(start.c);
  if (layer.kind == CellKind::gru) in.push_back(products[4]);
  Variables y = apply<RnnLayer>(in, layer.kind, layer.direction, layer.batches);
  return {{y[1], layer.kind == CellKind::lstm ? y[2] : Variable()}, y[0]};
}

}  // namespace rensa::functions
