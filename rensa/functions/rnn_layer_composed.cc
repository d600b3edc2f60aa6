// A recurrent layer made of functions that know their gradients, and the order of its times.
#include <algorithm>

#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/rnn_layer.h"

namespace rensa::functions::detail {

LayerSteps::LayerSteps(const std::vector<std::int64_t>& batches, bool backward,
                       std::int64_t rows_each)
    : backward_(backward) {
  std::int64_t begin = 0;
  for (std::int64_t batch : batches) {
    steps_.push_back({begin, batch * rows_each});
    begin += batch * rows_each;
  }
  if (backward) std::ranges::reverse(steps_);
}

std::vector<Piece> LayerSteps::before(std::size_t i) const {
  std::int64_t rows = steps_[i].rows;
  if (i == 0) return {{true, 0, 0, rows}};
  std::int64_t there = std::min(rows, steps_[i - 1].rows);
  std::vector<Piece> pieces{{false, i - 1, 0, there}};
  if (there < rows) pieces.push_back({true, 0, there, rows});
  return pieces;
}

std::vector<Piece> LayerSteps::at_end() const {
  std::vector<Piece> pieces;
  std::int64_t there = 0;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].rows <= there) continue;
    pieces.push_back({false, i, there, steps_[i].rows});
    there = steps_[i].rows;
  }
  return pieces;
}

namespace {

Variable joined(const std::vector<Piece>& pieces, const Variable& start, const Variables& values) {
  Variables parts;
  for (const Piece& piece : pieces) {
    const Variable& whole = piece.of_start ? start : values[piece.step];
    bool all = piece.rows() == whole.shape(0);
    parts.push_back(all ? whole : get_item(whole, {Slice(piece.from, piece.to)}));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

/// What a time gives of its gates' parts x and u of the input and the last output.
Memory time_of(CellKind kind, const Memory& last, const Variable& x, const Variable& u) {
  switch (kind) {
    case CellKind::lstm: {
      Variables gates = split_axis(x + u, 4, 1);
      Variable c = tanh(gates[0]) * sigmoid(gates[1]) + sigmoid(gates[2]) * last.c;
      return {sigmoid(gates[3]) * tanh(c), c};
    }
    case CellKind::gru: {
      Variables own = split_axis(x, 3, 1), of_last = split_axis(u, 3, 1);
      Variable r = sigmoid(own[1] + of_last[0]), z = sigmoid(own[2] + of_last[1]);
      return {(1.0 - z) * tanh(own[0] + r * of_last[2]) + z * last.h, {}};
    }
    case CellKind::rnn_tanh: return {tanh(x + u), {}};
    case CellKind::rnn_relu: break;
  }
  return {relu(x + u), {}};
}

Variables composed_direction(CellKind kind, const LayerSteps& steps, const Variables& in) {
  const Variable &weight = in[3], &h = in[4];
  Variable c = kind == CellKind::lstm ? in[5] : Variable();
  Variable bias = kind == CellKind::gru ? in[5] : Variable();
  Variable all = linear(in[0], in[1], in[2]);
  // Under an Autocast states are of a wider dtype than products.
  Dtype dtype = all.dtype();
  if (c.defined()) dtype = promote_types(dtype, c.dtype()), c = cast(c, dtype);
  if (kind == CellKind::gru) dtype = promote_types(dtype, h.dtype());
  Variable start = cast(h, dtype);
  Variables hs, cs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto [begin, rows] = steps[i];
    Memory last{joined(steps.before(i), start, hs), {}};
    if (c.defined()) last.c = joined(steps.before(i), c, cs);
    Variable x = get_item(all, {Slice(begin, begin + rows)});
    Variable u = linear(cast(last.h, all.dtype()), weight, bias);
    Memory next = time_of(kind, last, cast(x, dtype), cast(u, dtype));
    hs.push_back(next.h), cs.push_back(next.c);
  }
  Variable end_h = joined(steps.at_end(), start, hs);
  Variable end_c = c.defined() ? joined(steps.at_end(), c, cs) : Variable();
  Variables in_time;
  for (std::size_t t = 0; t < hs.size(); ++t) in_time.push_back(hs[steps.in_time(t)]);
  Variable y = in_time.size() == 1 ? in_time[0] : concat(in_time, 0);
  return c.defined() ? Variables{y, end_h, end_c} : Variables{y, end_h};
}

}  // namespace

Variables composed_layer(CellKind kind, const std::vector<LayerSteps>& directions,
                         const Variables& in) {
  if (directions.size() == 1) return composed_direction(kind, directions[0], in);
  std::vector<Variables> outputs;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    Variables own{in[0]};
    for (std::size_t k = 1; k < in.size(); ++k) {
      bool is_state = k == 4 || (k == 5 && kind == CellKind::lstm);
      auto parts = static_cast<std::int64_t>(directions.size());
      own.push_back(split_axis(in[k], parts, is_state ? 1 : 0)[d]);
    }
    outputs.push_back(composed_direction(kind, directions[d], own));
  }
  Variables joined;
  for (std::size_t k = 0; k < outputs[0].size(); ++k) {
    Variables parts;
    for (const Variables& y : outputs) parts.push_back(y[k]);
    joined.push_back(concat(parts, 1));
  }
  return joined;
}

}  // namespace rensa::functions::detail
