// Recurrent networks over sequences.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rensa/array/creation.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/core/error.h"
#include "rensa/core/integers.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/functions/rnn_rows.h"

namespace rensa::functions {

namespace {

using detail::Blocks;
using detail::CellKind;
using detail::Direction;
using detail::Layer;
using detail::LayerOutput;
using detail::Memory;
using detail::SequenceNetwork;
using detail::Sequences;
using detail::WeightGroup;

std::string described(const Variable& v) { return v.array().view().describe(); }

/// What a network computes with in place of its `units`, and in place of an x of `in` elements: a
/// GPU's fast kernels for products take rows of whole 16 bytes. What is added is zero, its weights
/// too, and stays zero; it takes no part in the others.
struct Widths {
  std::int64_t in, units, wide_in, wide;
  Array zeros;  // as long as the longest row

  bool wider() const { return wide != units; }
};

/// How many elements the rows of fast products are a multiple of.
std::int64_t row_multiple(const Variable& weight) {
  Dtype dtype = weight.dtype();
  if (weight.device().is_cpu() || dtype == float64) return 1;
  if (config().autocast) dtype = *config().autocast;
  return dtype == float32 && !config().tf32 ? 1 : 16 / itemsize(dtype);
}

Widths widths_of(const SequenceNetwork& network, const Sequences& xs, std::int64_t units,
                 const Variable& weight) {
  Widths w{xs.x.shape(1), units, xs.x.shape(1), units, Array()};
  std::int64_t multiple = xs.row_multiple;
  if (multiple == 0) {
    // The copies of x, of states and of outputs take as long as some products save.
    constexpr std::int64_t kManyProducts = 4096, kManyUnits = 128;
    auto steps = static_cast<std::int64_t>(xs.batches.size());
    bool pays = units >= kManyUnits && steps * units >= kManyProducts;
    multiple = pays ? row_multiple(weight) : 1;
  }
  w.wide = round_up(units, multiple);
  if (!w.wider()) return w;
  w.wide_in = round_up(w.in, multiple);
  std::int64_t longest = std::max(w.wide_in, w.wide * network.directions);
  w.zeros = xp::zeros({longest}, weight.dtype(), weight.device());
  return w;
}

/// The weights and biases of a layer, each for the input and for the last output.
struct Joined {
  Variable input, last, bias, last_bias;
};

/// In the order in which the layer has its gates; `in` are the blocks of its input. Those of
/// several directions lie behind one another.
Joined joined(CellKind kind, const WeightLists& ws, const WeightLists& bs, const Blocks& in,
              const Widths& widths) {
  bool gated = kind == CellKind::lstm || kind == CellKind::gru;
  if (!gated && ws.size() == 1 && !widths.wider()) return {ws[0][0], ws[0][1], bs[0][0], bs[0][1]};
  std::vector<Indexes> order{{0}, {1}};
  if (kind == CellKind::lstm) order = {{2, 0, 1, 3}, {6, 4, 5, 7}};
  if (kind == CellKind::gru) order = {{2, 0, 1}, {3, 4, 5}};
  auto count = static_cast<int>(ws.size()), each = static_cast<int>(detail::weights_of(kind));
  Blocks last{1, widths.units, widths.wide};
  std::vector<WeightGroup> groups;
  for (int lists : {0, count}) {  // that stand before: of weights, then of biases
    for (const Indexes& members : order) {
      WeightGroup group{{}, widths.wide, groups.empty() ? in : last};
      for (int d = lists; d < lists + count; ++d) {
        for (int k : members) group.members.push_back(d * each + k);
      }
      groups.push_back(group);
    }
  }
  Variables all;
  for (const WeightLists* lists : {&ws, &bs}) {
    for (const Variables& list : *lists) all.insert(all.end(), list.begin(), list.end());
  }
  Variables y = detail::join_weights(all, groups, widths.zeros);
  return {y[0], y[1], y[2], y[3]};
}

void check_weights(const SequenceNetwork& network, const WeightLists& lists, const char* what) {
  std::size_t layers =
      static_cast<std::size_t>(network.n_layers) * static_cast<std::size_t>(network.directions);
  std::size_t each = detail::weights_of(network.kind);
  bool fits =
      network.n_layers > 0 && lists.size() == layers &&
      std::all_of(lists.begin(), lists.end(), [&](const Variables& w) { return w.size() == each; });
  if (fits) return;
  throw ValueError(fmt::format(
      "{}: {} layers in {} direction(s) have {} lists of {} {}; there are {}{}", network.name,
      network.n_layers, network.directions, layers, each, what, lists.size(),
      lists.empty() ? "" : fmt::format(", the first of {}", lists[0].size())));
}

void check_batches(const SequenceNetwork& network, const Sequences& xs, std::int64_t batch) {
  if (xs.batches.empty()) throw ValueError(fmt::format("{}: no xs", network.name));
  std::int64_t last = batch;
  for (std::size_t t = 0; t < xs.batches.size(); ++t) {
    if (xs.batches[t] > last) {
      throw ShapeError(fmt::format(
          "{}: xs[{}] has {} rows, {} has {}: of sequences sorted by length, the longest first, "
          "there "
          "are never more",
          network.name, t, xs.batches[t], t == 0 ? "hx" : fmt::format("xs[{}]", t - 1), last));
    }
    if (xs.batches[t] == 0) {
      throw ShapeError(fmt::format(
          "{}: xs[{}] has no rows; leave times out that no sequence reaches", network.name, t));
    }
    last = xs.batches[t];
  }
}

void check_state(const SequenceNetwork& network, const Variable& hx, const char* what) {
  std::int64_t layers = network.n_layers * network.directions;
  if (hx.defined() && hx.ndim() == 3 && hx.shape(0) == layers) return;
  throw ShapeError(fmt::format("{}: {} is {}; it must be ({}, batch, units)", network.name, what,
                               hx.defined() ? described(hx) : "undefined", layers));
}

void check_shapes(const SequenceNetwork& network, const Variables& w, const Variables& b,
                  std::size_t i, std::int64_t in, std::int64_t units) {
  for (std::size_t j = 0; j < w.size(); ++j) {
    Shape shape{units, j < w.size() / 2 ? in : units};
    if (w[j].shape() != shape) {
      throw ShapeError(fmt::format("{}: ws[{}][{}] is {}; it must be {}", network.name, i, j,
                                   described(w[j]), shape.str()));
    }
    if (b[j].shape() != Shape{units}) {
      throw ShapeError(fmt::format("{}: bs[{}][{}] is {}; it must be {}", network.name, i, j,
                                   described(b[j]), Shape{units}.str()));
    }
  }
}

Memory rows_of(const Memory& memory, const Slice& rows) {
  return {get_item(memory.h, {rows}), memory.c.defined() ? get_item(memory.c, {rows}) : Variable()};
}

LayerOutput run_direction(const SequenceNetwork& network, const Sequences& xs, const Memory& start,
                          const Joined& weights, Direction direction) {
  auto [input, last, bias, last_bias] = weights;
  Layer layer{network.name, network.kind, direction, xs.batches, input, bias, last, last_bias};
  if (network.kind != CellKind::gru) {
    layer.bias = bias + last_bias;
    layer.last_bias = Variable();
  }
  std::int64_t batch = start.h.shape(0), under_way = xs.batches[0];
  if (under_way == batch) return run_layer(layer, xs.x, start);
  LayerOutput output = run_layer(layer, xs.x, rows_of(start, Slice(0, under_way)));
  Memory others = rows_of(start, Slice(under_way, none));  // which no time reaches
  output.end.h = concat({output.end.h, others.h}, 0);
  if (others.c.defined()) output.end.c = concat({output.end.c, others.c}, 0);
  return output;
}

/// Whether both directions of a layer go side by side. Few units of a direction go through all
/// times in one kernel of a GPU.
bool go_side_by_side(const SequenceNetwork& network, const Sequences& xs, std::int64_t units) {
  bool of_one_length = xs.batches.front() == xs.batches.back();
  return network.directions == 2 && of_one_length && units > operations::RecurrentSteps::kFewUnits;
}

/// The states of layers and their directions: what they start from, or end with.
struct States {
  Variables h, c;

  /// Of `count` directions, side by side.
  Memory from(std::size_t first, std::size_t count) const {
    auto joined = [&](const Variables& all) {
      if (all.empty()) return Variable();
      auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      Variables some(begin, begin + static_cast<std::ptrdiff_t>(count));
      return count == 1 ? some[0] : concat(some, 1);
    };
    return {joined(h), joined(c)};
  }
  void append(const Memory& end, std::size_t count) {
    auto put = [&](const Variable& both, Variables& all) {
      if (!both.defined()) return;
      Variables some{both};
      if (count > 1) some = split_axis(both, static_cast<std::int64_t>(count), 1);
      all.insert(all.end(), some.begin(), some.end());
    };
    put(end.h, h), put(end.c, c);
  }
};

/// Its gradient is the way back.
struct Reorder {
  static constexpr const char* name = "reorder";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, int axis, const KeptArray& order, const KeptArray&) {
    return xp::take(x, order.get(name, "order"), axis);
  }
  static Variable backward(const Variable&, const Variable& gy, int axis, const KeptArray& order,
                           const KeptArray& back) {
    return unary<Reorder>(gy, axis, back, order);
  }
};

}  // namespace

Variable detail::reorder(const Variable& x, int axis, const Array& order, const Array& back) {
  return unary<Reorder>(x, axis, KeptArray(order), KeptArray(back));
}

std::size_t detail::weights_of(CellKind kind) {
  return kind == CellKind::lstm ? 8 : kind == CellKind::gru ? 6 : 2;
}

detail::SequenceOutput detail::run_sequences(const SequenceNetwork& network, const Variable& hx,
                                             const Variable& cx, const WeightLists& ws,
                                             const WeightLists& bs, const Sequences& xs) {
  check_weights(network, ws, "weights"), check_weights(network, bs, "biases");
  check_state(network, hx, "hx");
  bool has_c = network.kind == CellKind::lstm;
  if (has_c) check_state(network, cx, "cx");
  if (has_c && cx.shape() != hx.shape()) {
    throw ShapeError(fmt::format("{}: hx {} and cx {} are of one shape", network.name,
                                 described(hx), described(cx)));
  }
  check_batches(network, xs, hx.shape(1));
  std::int64_t units = hx.shape(2);
  Widths widths = widths_of(network, xs, units, ws[0][0]);
  const Array& zeros = widths.zeros;
  Blocks in{1, widths.in, widths.wide_in}, state{1, units, widths.wide};
  Variables given{xs.x, hx};
  if (has_c) given.push_back(cx);
  if (widths.wider()) given = resize_blocks(given, {in, state, state}, zeros);
  Variable x = given[0];
  States starts{separate(given[1]), has_c ? separate(given[2]) : Variables()}, ends;
  const auto directions = static_cast<std::size_t>(network.directions);
  const std::size_t count = go_side_by_side(network, xs, units) ? 2 : 1;
  for (std::size_t i = 0; i < ws.size();) {
    if (i > 0 && network.dropout_ratio != 0) x = dropout(x, network.dropout_ratio);
    Variables ys;
    for (std::size_t end = i + directions; i < end; i += count) {
      WeightLists w, b;
      for (std::size_t k = i; k < i + count; ++k) {
        check_shapes(network, ws[k], bs[k], k, in.count * in.from, units);
        w.push_back(ws[k]), b.push_back(bs[k]);
      }
      Direction direction = count == 2                        ? Direction::both
                            : i + 1 == end && directions == 2 ? Direction::backward
                                                              : Direction::forward;
      LayerOutput output = run_direction(network, {x, xs.batches}, starts.from(i, count),
                                         joined(network.kind, w, b, in, widths), direction);
      ends.append(output.end, count), ys.push_back(output.y);
    }
    x = ys.size() == 1 ? ys[0] : concat(ys, 1);
    in = {network.directions, units, widths.wide};
  }
  Variables outputs{x, stack(ends.h)};
  if (has_c) outputs.push_back(stack(ends.c));
  Blocks y{network.directions, widths.wide, units}, end{1, widths.wide, units};
  if (widths.wider()) outputs = resize_blocks(outputs, {y, end, end}, zeros);
  return {outputs[1], has_c ? outputs[2] : Variable(), outputs[0]};
}

namespace {

NStepLSTMOutput run(const SequenceNetwork& network, const Variable& hx, const Variable& cx,
                    const WeightLists& ws, const WeightLists& bs, const Variables& xs) {
  Sequences sequences;
  for (std::size_t t = 0; t < xs.size(); ++t) {
    if (xs[t].ndim() != 2 || xs[t].shape(1) != xs[0].shape(1)) {
      throw ShapeError(fmt::format("{}: xs[{}] is {}; all must be (batch, {})", network.name, t,
                                   described(xs[t]),
                                   xs[0].ndim() == 2 ? std::to_string(xs[0].shape(1)) : "in"));
    }
    sequences.batches.push_back(xs[t].shape(0));
  }
  if (!xs.empty()) sequences.x = xs.size() == 1 ? xs[0] : concat(xs, 0);
  detail::SequenceOutput output = detail::run_sequences(network, hx, cx, ws, bs, sequences);
  std::vector<std::int64_t> cuts;
  std::partial_sum(sequences.batches.begin(), sequences.batches.end() - 1,
                   std::back_inserter(cuts));
  return {output.hy, output.cy, cuts.empty() ? Variables{output.y} : split_axis(output.y, cuts, 0)};
}

NStepOutput without_c(NStepLSTMOutput output) { return {output.hy, std::move(output.ys)}; }

CellKind kind_of(const char* name, std::string_view activation) {
  if (activation == "tanh") return CellKind::rnn_tanh;
  if (activation == "relu") return CellKind::rnn_relu;
  throw ValueError(
      fmt::format("{}: activation \"{}\", which is none of \"tanh\", \"relu\"", name, activation));
}

}  // namespace

NStepLSTMOutput n_step_lstm(int n_layers, double dropout_ratio, const Variable& hx,
                            const Variable& cx, const WeightLists& ws, const WeightLists& bs,
                            const Variables& xs) {
  return run({"n_step_lstm", CellKind::lstm, n_layers, 1, dropout_ratio}, hx, cx, ws, bs, xs);
}

NStepLSTMOutput n_step_bilstm(int n_layers, double dropout_ratio, const Variable& hx,
                              const Variable& cx, const WeightLists& ws, const WeightLists& bs,
                              const Variables& xs) {
  return run({"n_step_bilstm", CellKind::lstm, n_layers, 2, dropout_ratio}, hx, cx, ws, bs, xs);
}

NStepOutput n_step_gru(int n_layers, double dropout_ratio, const Variable& hx,
                       const WeightLists& ws, const WeightLists& bs, const Variables& xs) {
  return without_c(
      run({"n_step_gru", CellKind::gru, n_layers, 1, dropout_ratio}, hx, {}, ws, bs, xs));
}

NStepOutput n_step_bigru(int n_layers, double dropout_ratio, const Variable& hx,
                         const WeightLists& ws, const WeightLists& bs, const Variables& xs) {
  return without_c(
      run({"n_step_bigru", CellKind::gru, n_layers, 2, dropout_ratio}, hx, {}, ws, bs, xs));
}

NStepOutput n_step_rnn(int n_layers, double dropout_ratio, const Variable& hx,
                       const WeightLists& ws, const WeightLists& bs, const Variables& xs,
                       std::string_view activation) {
  CellKind kind = kind_of("n_step_rnn", activation);
  return without_c(run({"n_step_rnn", kind, n_layers, 1, dropout_ratio}, hx, {}, ws, bs, xs));
}

NStepOutput n_step_birnn(int n_layers, double dropout_ratio, const Variable& hx,
                         const WeightLists& ws, const WeightLists& bs, const Variables& xs,
                         std::string_view activation) {
  CellKind kind = kind_of("n_step_birnn", activation);
  return without_c(run({"n_step_birnn", kind, n_layers, 2, dropout_ratio}, hx, {}, ws, bs, xs));
}

}  // namespace rensa::functions
