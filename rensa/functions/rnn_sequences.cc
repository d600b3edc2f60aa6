// Recurrent networks over sequences.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/rnn_internal.h"

namespace rensa::functions {

namespace {

using detail::CellKind;
using detail::Layer;
using detail::LayerOutput;
using detail::Memory;
using detail::SequenceNetwork;
using detail::Sequences;

std::string described(const Variable& v) { return v.array().view().describe(); }

template <class List> auto& at(List& list, int k) { return list[static_cast<std::size_t>(k)]; }

/// Weights and biases behind one another along axis 0, each group of them in one array.
class JoinWeights final : public FunctionNode {
 public:
  explicit JoinWeights(std::vector<Indexes> groups)
      : FunctionNode("join_weights"), groups_(std::move(groups)) {}

  Arrays forward(const Arrays& in) override {
    Arrays out;
    std::vector<rensa::detail::CopyPair> copies;
    for (const Indexes& group : groups_) {
      const Array& first = at(in, group[0]);
      Shape shape = first.shape();
      Dtype dtype = first.dtype();
      shape[0] = 0;
      for (int k : group) {
        check_same_device(name(), in[0], at(in, k));
        shape[0] += at(in, k).shape(0);
        dtype = promote_types(dtype, at(in, k).dtype());
      }
      out.push_back(xp::empty(shape, dtype, first.device()));
      std::int64_t begin = 0;
      for (int k : group) {
        std::int64_t rows = at(in, k).shape(0);
        copies.push_back({at(in, k), rensa::detail::slice_along(out.back(), 0, begin, rows)});
        begin += rows;
      }
    }
    rensa::detail::copy_parts(name(), copies);
    return out;
  }

  // Each gradient has memory of its own, as a leaf's has to: one operation instead of a copy each.
  Variables backward(const Indexes&, const Variables& gy) override {
    bool twice = config().enable_backprop;
    Variables gx(inputs().size());
    std::vector<rensa::detail::CopyPair> copies;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!gy[g].defined()) continue;
      std::int64_t begin = 0;
      for (int k : groups_[g]) {
        const VariableNode& x = *at(inputs(), k);
        std::int64_t end = begin + x.shape[0];
        if (twice) {
          at(gx, k) = cast(get_item(gy[g], {Slice(begin, end)}), x.dtype);
        } else {
          at(gx, k) = constant(xp::empty(x.shape, x.dtype, x.device));
          Array part = rensa::detail::slice_along(gy[g].array(), 0, begin, end - begin);
          copies.push_back({part, at(gx, k).array()});
        }
        begin = end;
      }
    }
    if (!twice) rensa::detail::copy_parts(name(), copies);
    return gx;
  }

 private:
  std::vector<Indexes> groups_;
};

/// The weights and biases of a layer, each for the input and for the last output.
struct Joined {
  Variable input, last, bias, last_bias;
};

/// In the order in which the layer has its gates.
Joined joined(CellKind kind, const Variables& w, const Variables& b) {
  if (kind != CellKind::lstm && kind != CellKind::gru) return {w[0], w[1], b[0], b[1]};
  std::vector<Indexes> groups{{2, 0, 1, 3}, {6, 4, 5, 7}};
  if (kind == CellKind::gru) groups = {{2, 0, 1}, {3, 4, 5}};
  for (std::size_t g : {0u, 1u}) {
    Indexes biases = groups[g];
    for (int& k : biases) k += static_cast<int>(w.size());
    groups.push_back(biases);
  }
  Variables all = w;
  all.insert(all.end(), b.begin(), b.end());
  Variables y = apply<JoinWeights>(all, groups);
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
                          const Variables& w, const Variables& b, bool backward) {
  auto [input, last, bias, last_bias] = joined(network.kind, w, b);
  Layer layer{network.name, network.kind, backward, xs.batches, input, bias, last, last_bias};
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
          run_direction(network, {x, xs.batches}, {h[i], c[i]}, ws[i], bs[i], direction == 1);
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
