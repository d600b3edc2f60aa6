// L::GRU and its kin.
#include "rensa/links/gru.h"

#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"

namespace rensa::links {

namespace {

LinearOptions of_input(const GRUOptions& options) {
  return {.initialW = options.init, .initial_bias = options.bias_init};
}
LinearOptions of_last(const GRUOptions& options) {
  return {.initialW = options.inner_init, .initial_bias = options.bias_init};
}

}  // namespace

StatelessGRU::StatelessGRU(std::int64_t in, std::int64_t out, const GRUOptions& options)
    : W_r(in, out, of_input(options)),
      U_r(out, out, of_last(options)),
      W_z(in, out, of_input(options)),
      U_z(out, out, of_last(options)),
      W(in, out, of_input(options)),
      U(out, out, of_last(options)) {}

void StatelessGRU::members(Visitor& v) {
  v("W_r", W_r), v("U_r", U_r), v("W_z", W_z), v("U_z", U_z), v("W", W), v("U", U);
}

Variable StatelessGRU::operator()(const Variable& h, const Variable& x) const {
  functions::detail::check_state_rows("StatelessGRU", x, h);
  Variable r = F::sigmoid(W_r(x) + U_r(h)), z = F::sigmoid(W_z(x) + U_z(h));
  return F::linear_interpolate(z, F::tanh(W(x) + U(r * h)), h);
}

StatefulGRU::StatefulGRU(std::int64_t in, std::int64_t out, const GRUOptions& options)
    : cell(in, out, options) {}

// As Chainer's: at first U's biases are left out with U.
Variable StatefulGRU::operator()(const Variable& x) {
  functions::detail::check_state_rows("StatefulGRU", x, h);
  if (h.defined()) h = cell(h, x);
  else h = F::sigmoid(cell.W_z(x)) * F::tanh(cell.W(x));
  return h;
}

StatelessMGU::StatelessMGU(std::int64_t in, std::int64_t out)
    : W_f(in + out, out), W_h(in + out, out) {}

Variable StatelessMGU::operator()(const Variable& h, const Variable& x) const {
  Variable f = F::sigmoid(W_f(F::concat({h, x})));
  return F::linear_interpolate(f, F::tanh(W_h(F::concat({f * h, x}))), h);
}

StatefulMGU::StatefulMGU(std::int64_t in, std::int64_t out) : cell(in, out) {}

Variable StatefulMGU::operator()(const Variable& x) {
  functions::detail::check_state_rows("StatefulMGU", x, h);
  Variable last = h;
  if (!last.defined()) {
    last = constant(xp::zeros({x.shape(0), cell.W_f.b.size()}, x.dtype(), x.device()));
  }
  h = cell(last, x);
  return h;
}

}  // namespace rensa::links
