// L::LSTM and its kin.
#include "rensa/links/lstm.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

constexpr int kGates = 4;

/// Each gate's rows on their own: an initializer that looks at the shape sees one gate's.
Initializer by_gates(const Initializer& given) {
  Initializer init = given ? given : Initializer(initializers::LeCunNormal());
  return [init](const Array& out) {
    std::int64_t units = out.shape(0) / kGates;
    for (int k = 0; k < kGates; ++k) init(out[{Slice(k * units, (k + 1) * units)}]);
  };
}

/// The gates' biases stand side by side for each unit, as F::lstm has them.
Initializer biases(const LSTMOptions& options) {
  Initializer bias = options.bias_init, forget = options.forget_bias_init;
  return [bias, forget](const Array& out) {
    for (int k = 0; k < kGates; ++k) (k == 2 ? forget : bias)(out[{Slice(k, none, kGates)}]);
  };
}

LinearOptions upward_options(const LSTMOptions& options) {
  return {.initialW = by_gates(options.upward_init), .initial_bias = biases(options)};
}

LinearOptions lateral_options(const LSTMOptions& options) {
  return {.nobias = true, .initialW = by_gates(options.lateral_init)};
}

Variable zeros_like_rows(const Variable& x, std::int64_t units) {
  return constant(xp::zeros({x.shape(0), units}, x.dtype(), x.device()));
}

/// a, i, f and o, (n, units) each.
Variables gates_of(const Variable& x) {
  Variable apart = F::reshape(x, {x.shape(0), x.shape(1) / kGates, kGates});
  Variables gates;
  for (int k = 0; k < kGates; ++k) gates.push_back(F::get_item(apart, {Slice(), Slice(), k}));
  return gates;
}

void check_states(const char* link, const Variable& x, const Variable& c, const Variable& h) {
  functions::detail::check_state_rows(link, x, c);
  functions::detail::check_state_rows(link, x, h);
}

void set_states(const char* link, State& c, State& h, const Variable& new_c,
                const Variable& new_h) {
  if (new_c.defined() && new_h.defined() && new_c.shape(0) != new_h.shape(0)) {
    throw ShapeError(fmt::format("{}: set_state with c {} and h {}; they must have as many rows",
                                 link, new_c.array().view().describe(),
                                 new_h.array().view().describe()));
  }
  c = new_c, h = new_h;
}

}  // namespace

LSTMWeights::LSTMWeights(None, std::int64_t out, const LSTMOptions& options)
    : upward(none, kGates * out, upward_options(options)),
      lateral(out, kGates * out, lateral_options(options)),
      state_size_(out) {}

LSTMWeights::LSTMWeights(std::int64_t in, std::int64_t out, const LSTMOptions& options)
    : upward(in, kGates * out, upward_options(options)),
      lateral(out, kGates * out, lateral_options(options)),
      state_size_(out) {}

Variable LSTMWeights::gates(const Variable& x, const Variable& h) const {
  functions::detail::check_state_rows("LSTM", x, h);
  Variable in = upward(x);
  return h.defined() ? in + lateral(h) : in;
}

StatelessLSTM::StatelessLSTM(std::int64_t in, std::int64_t out, const LSTMOptions& options)
    : weights(in, out, options) {}
StatelessLSTM::StatelessLSTM(std::int64_t out, const LSTMOptions& options)
    : weights(none, out, options) {}
StatelessLSTM::StatelessLSTM(None, std::int64_t out, const LSTMOptions& options)
    : StatelessLSTM(out, options) {}

std::pair<Variable, Variable> StatelessLSTM::operator()(const Variable& c, const Variable& h,
                                                        const Variable& x) const {
  Variable gates = weights.gates(x, h);
  return F::lstm(c.defined() ? c : zeros_like_rows(gates, weights.state_size()), gates);
}

LSTM::LSTM(std::int64_t in, std::int64_t out, const LSTMOptions& options)
    : weights(in, out, options) {}
LSTM::LSTM(std::int64_t out, const LSTMOptions& options) : weights(none, out, options) {}
LSTM::LSTM(None, std::int64_t out, const LSTMOptions& options) : LSTM(out, options) {}

Variable LSTM::operator()(const Variable& x) {
  std::int64_t rows = x.shape(0);
  Variable last = h, memory = c, ended;
  if (last.defined() && last.shape(0) < rows) {
    throw ShapeError(
        fmt::format("LSTM: x {} has more rows than the last call, {}; reset_state() "
                    "begins anew",
                    x.array().view().describe(), last.array().view().describe()));
  }
  if (last.defined() && last.shape(0) > rows) {
    ended = F::get_item(last, {Slice(rows, none)});
    last = F::get_item(last, {Slice(0, rows)});
  }
  Variable gates = weights.gates(x, last);
  if (!memory.defined()) memory = zeros_like_rows(gates, weights.state_size());
  auto [next, y] = F::lstm(memory, gates);
  c = next;
  h = ended.defined() ? F::concat({y, ended}, 0) : y;
  return y;
}

void LSTM::set_state(const Variable& new_c, const Variable& new_h) {
  set_states("LSTM", c, h, new_c, new_h);
}

StatefulPeepholeLSTM::StatefulPeepholeLSTM(std::int64_t in, std::int64_t out)
    : upward(in, kGates * out),
      lateral(out, kGates * out, {.nobias = true}),
      peep_i(out, out, {.nobias = true}),
      peep_f(out, out, {.nobias = true}),
      peep_o(out, out, {.nobias = true}) {}

void StatefulPeepholeLSTM::members(Visitor& v) {
  v("upward", upward), v("lateral", lateral);
  v("peep_i", peep_i), v("peep_f", peep_f), v("peep_o", peep_o);
  v("c", c), v("h", h);
}

Variable StatefulPeepholeLSTM::operator()(const Variable& x) {
  check_states("StatefulPeepholeLSTM", x, c, h);
  Variable in = upward(x), last = h, memory = c;
  if (last.defined()) in = in + lateral(last);
  if (!memory.defined()) memory = zeros_like_rows(in, in.shape(1) / kGates);
  Variables gates = gates_of(in);
  Variable i = F::sigmoid(gates[1] + peep_i(memory)), f = F::sigmoid(gates[2] + peep_f(memory));
  memory = F::tanh(gates[0]) * i + f * memory;
  Variable y = F::sigmoid(gates[3] + peep_o(memory)) * F::tanh(memory);
  c = memory, h = y;
  return y;
}

void StatefulPeepholeLSTM::set_state(const Variable& new_c, const Variable& new_h) {
  set_states("StatefulPeepholeLSTM", c, h, new_c, new_h);
}

StatefulZoneoutLSTM::StatefulZoneoutLSTM(std::int64_t in, std::int64_t out, double c_ratio,
                                         double h_ratio)
    : upward(in, kGates * out),
      lateral(out, kGates * out, {.nobias = true}),
      c_ratio(c_ratio),
      h_ratio(h_ratio) {}

void StatefulZoneoutLSTM::members(Visitor& v) {
  v("upward", upward), v("lateral", lateral), v("c", c), v("h", h);
}

Variable StatefulZoneoutLSTM::operator()(const Variable& x) {
  check_states("StatefulZoneoutLSTM", x, c, h);
  Variable in = upward(x), last = h, memory = c;
  if (last.defined()) in = in + lateral(last);
  else last = zeros_like_rows(in, in.shape(1) / kGates);
  if (!memory.defined()) memory = zeros_like_rows(in, in.shape(1) / kGates);
  auto [next, y] = F::lstm(memory, in);
  c = F::zoneout(memory, next, c_ratio);
  h = F::zoneout(last, y, h_ratio);
  return h;
}

void StatefulZoneoutLSTM::set_state(const Variable& new_c, const Variable& new_h) {
  set_states("StatefulZoneoutLSTM", c, h, new_c, new_h);
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::StatelessLSTM>;
template class Chain<links::LSTM>;
}  // namespace rensa
