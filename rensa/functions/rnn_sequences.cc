// Recurrent networks over sequences.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rensa/array/indexing_routines.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/rnn_internal.h"

namespace rensa::functions {

namespace {

using detail::CellKind;
using detail::SequenceNetwork;
using detail::Sequences;

std::string described(const Variable& v) { return v.array().view().describe(); }

/// A layer's weights as one matrix, or its biases as one vector, for the input (`half` 0) or the
/// last output (1), in the order in which the cell has its gates.
Variable joined(CellKind kind, const Variables& weights, std::size_t half) {
  std::size_t n = weights.size() / 2;
  auto w = [&](std::size_t k) { return weights[half * n + k]; };
  if (n == 1) return w(0);
  if (kind == CellKind::gru) return concat({w(0), w(1), w(2)}, 0);
  Variable gates = stack({w(2), w(0), w(1), w(3)}, 1);  // a, i, f, o of each unit
  Shape shape = w(0).shape();
  shape[0] *= 4;
  return reshape(gates, shape);
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

/// What goes from one time to the next: the last output, and the memory where there is one.
struct Memory {
  Variable h, c;

  template <class F> Memory each(F f) const { return {f(h), c.defined() ? f(c) : c}; }
  Memory rows(const Slice& slice) const {
    return each([&](const Variable& v) { return get_item(v, {slice}); });
  }
};

Memory behind(const Memory& a, const Memory& b) {
  return {concat({a.h, b.h}, 0), a.c.defined() ? concat({a.c, b.c}, 0) : a.c};
}

Memory step(CellKind kind, const Memory& last, const Variable& x, const Variable& weight,
            const Variable& bias) {
  Variable u = linear(last.h, weight, kind == CellKind::gru ? bias : Variable());
  switch (kind) {
    case CellKind::lstm: {
      auto [c, h] = lstm(last.c, x + u);
      return {h, c};
    }
    case CellKind::gru: return {detail::gru(last.h, x, u), {}};
    case CellKind::rnn_tanh: return {tanh(x + u), {}};
    case CellKind::rnn_relu: break;
  }
  return {relu(x + u), {}};
}

/// One layer in one direction. The memory has as many rows as sequences are under way; those of the
/// others wait in `rest`, the sequences in their order.
struct Direction {
  Memory memory, rest;
  std::int64_t under_way, batch;

  void go_on_with(std::int64_t rows) {
    if (rows == under_way) return;
    bool fewer = rows < under_way;
    Memory cut = fewer ? memory.rows(Slice(rows, none)) : rest.rows(Slice(0, rows - under_way));
    if (fewer) {
      rest = under_way < batch ? behind(cut, rest) : cut;
      memory = memory.rows(Slice(0, rows));
    } else {
      memory = under_way > 0 ? behind(memory, cut) : cut;
      if (rows < batch) rest = rest.rows(Slice(rows - under_way, none));
    }
    under_way = rows;
  }
};

struct LayerOutput {
  Memory memory;
  Variable y;
};

LayerOutput run_direction(CellKind kind, const Variable& x,
                          const std::vector<std::int64_t>& batches, const Memory& start,
                          const Variables& w, const Variables& b, bool backward) {
  // The gates of a gated recurrent unit see the two biases apart, others their sum.
  Variable own = joined(kind, b, 0), of_last = joined(kind, b, 1), weight = joined(kind, w, 1);
  Variable all = linear(x, joined(kind, w, 0), kind == CellKind::gru ? own : own + of_last);
  std::vector<std::int64_t> cuts;
  std::partial_sum(batches.begin(), batches.end() - 1, std::back_inserter(cuts));
  Variables gates = cuts.empty() ? Variables{all} : split_axis(all, cuts, 0);
  std::int64_t batch = start.h.shape(0);
  Direction direction{start, {}, batch, batch};
  Variables ys(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::size_t t = backward ? batches.size() - 1 - i : i;
    direction.go_on_with(batches[t]);
    direction.memory = step(kind, direction.memory, gates[t], weight, of_last);
    ys[t] = direction.memory.h;
  }
  Memory end =
      direction.under_way < batch ? behind(direction.memory, direction.rest) : direction.memory;
  return {end, ys.size() == 1 ? ys[0] : concat(ys, 0)};
}

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
  Variables h = separate(hx), c = has_c ? separate(cx) : Variables(h.size()), hy, cy;
  Variable x = xs.x;
  for (std::size_t layer = 0, i = 0; layer < static_cast<std::size_t>(network.n_layers); ++layer) {
    if (layer > 0 && network.dropout_ratio != 0) x = dropout(x, network.dropout_ratio);
    Variables ys;
    for (int direction = 0; direction < network.directions; ++direction, ++i) {
      check_shapes(network, ws[i], bs[i], i, x.shape(1), units);
      auto [end, y] =
          run_direction(network.kind, x, xs.batches, {h[i], c[i]}, ws[i], bs[i], direction == 1);
      hy.push_back(end.h), cy.push_back(end.c), ys.push_back(y);
    }
    x = ys.size() == 1 ? ys[0] : concat(ys, 1);
  }
  return {stack(hy), has_c ? stack(cy) : Variable(), x};
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
