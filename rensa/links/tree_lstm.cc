// L::ChildSumTreeLSTM and L::NaryTreeLSTM.
#include "rensa/links/tree_lstm.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"

namespace rensa::links {

namespace {

/// x, or zeros for as many rows as a child has.
Variable or_zeros(const char* link, const Variable& x, const Variables& cs, const Variables& hs,
                  std::int64_t in) {
  if (x.defined()) return x;
  for (const Variables* list : {&cs, &hs}) {
    for (const Variable& v : *list) {
      if (v.defined()) return constant(xp::zeros({v.shape(0), in}, v.dtype(), v.device()));
    }
  }
  throw ValueError(fmt::format("{}: x and all of the children's variables are undefined", link));
}

Variables padded(const Variables& list, const Variable& x, std::int64_t out) {
  Variables all;
  for (const Variable& v : list) {
    all.push_back(v.defined() ? v : constant(xp::zeros({x.shape(0), out}, x.dtype(), x.device())));
  }
  return all;
}

void check_children(const char* link, const Variables& cs, const Variables& hs, std::size_t n) {
  if (cs.size() == n && hs.size() == n) return;
  throw ValueError(
      fmt::format("{}: {} states and {} outputs of {} children", link, cs.size(), hs.size(), n));
}

}  // namespace

ChildSumTreeLSTM::ChildSumTreeLSTM(std::int64_t in, std::int64_t out)
    : W_x(in, 4 * out),
      W_h_aio(out, 3 * out, {.nobias = true}),
      W_h_f(out, out, {.nobias = true}),
      in_(in),
      out_(out) {}

std::pair<Variable, Variable> ChildSumTreeLSTM::operator()(const Variables& cs, const Variables& hs,
                                                           const Variable& given) const {
  check_children("ChildSumTreeLSTM", cs, hs, cs.size());
  Variable x = or_zeros("ChildSumTreeLSTM", given, cs, hs, in_);
  Variables parts = F::split_axis(W_x(x), {3 * out_}, 1);
  if (hs.empty()) {
    Variables gates = F::split_axis(parts[0], 3, 1);
    Variable c = F::sigmoid(gates[1]) * F::tanh(gates[0]);
    return {c, F::sigmoid(gates[2]) * F::tanh(c)};
  }
  Variables outputs = padded(hs, x, out_);
  Variable sum = outputs[0];
  for (std::size_t k = 1; k < outputs.size(); ++k) sum = sum + outputs[k];
  Variables gates{parts[0] + W_h_aio(sum)};
  Variables forget =
      F::split_axis(W_h_f(F::concat(outputs, 0)), static_cast<std::int64_t>(outputs.size()), 0);
  for (const Variable& f : forget) gates.push_back(f + parts[1]);
  return F::tree_lstm(padded(cs, x, out_), F::concat(gates, 1));
}

NaryTreeLSTM::NaryTreeLSTM(std::int64_t in, std::int64_t out, int n_ary)
    : W_x(in, (3 + n_ary) * out), in_(in), out_(out) {
  if (n_ary < 1) throw ValueError(fmt::format("NaryTreeLSTM: {} children", n_ary));
  for (int k = 0; k < n_ary; ++k)
    W_h.emplace_back(out, (3 + n_ary) * out, LinearOptions{.nobias = true});
}

void NaryTreeLSTM::members(Visitor& v) {
  v("W_x", W_x);
  for (std::size_t k = 0; k < W_h.size(); ++k) v("W_h" + std::to_string(k + 1), W_h[k]);
}

std::pair<Variable, Variable> NaryTreeLSTM::operator()(const Variables& cs, const Variables& hs,
                                                       const Variable& given) const {
  check_children("NaryTreeLSTM", cs, hs, W_h.size());
  Variable x = or_zeros("NaryTreeLSTM", given, cs, hs, in_), gates = W_x(x);
  for (std::size_t k = 0; k < hs.size(); ++k) {
    if (!hs[k].defined()) continue;
    functions::detail::check_state_rows("NaryTreeLSTM", x, hs[k]);
    gates = gates + W_h[k](hs[k]);
  }
  return F::tree_lstm(padded(cs, x, out_), gates);
}

}  // namespace rensa::links
