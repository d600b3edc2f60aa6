// The functions of rensa/functions/rnn.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

Variables both(std::pair<Variable, Variable> y) { return {y.first, y.second}; }

/// What a case of a network over sequences has for inputs: hx, cx of a cell, the weights of each
/// layer, its biases, the times.
struct Network {
  Variable hx, cx;
  F::WeightLists ws, bs;
  Variables xs;
};

Network network(const Variables& x, int weights, int layers, bool cell) {
  Network found;
  auto next = x.begin();
  auto take = [&](int n) {
    Variables taken(next, next + n);
    next += n;
    return taken;
  };
  found.hx = take(1)[0];
  if (cell) found.cx = take(1)[0];
  for (int i = 0; i < layers; ++i)
    found.ws.push_back(take(weights)), found.bs.push_back(take(weights));
  found.xs.assign(next, x.end());
  return found;
}

Variables listed(const F::NStepLSTMOutput& y) {
  Variables all{y.hy, y.cy};
  all.insert(all.end(), y.ys.begin(), y.ys.end());
  return all;
}

Variables listed(const F::NStepOutput& y) {
  Variables all{y.hy};
  all.insert(all.end(), y.ys.begin(), y.ys.end());
  return all;
}

template <auto kFunction> auto lstms(int layers, int directions) {
  return [=](const Variables& x) {
    Network n = network(x, 8, layers * directions, true);
    return listed(kFunction(layers, 0, n.hx, n.cx, n.ws, n.bs, n.xs));
  };
}

template <auto kFunction> auto grus(int layers, int directions) {
  return [=](const Variables& x) {
    Network n = network(x, 6, layers * directions, false);
    return listed(kFunction(layers, 0, n.hx, n.ws, n.bs, n.xs));
  };
}

template <auto kFunction> auto rnns(int layers, int directions, std::string_view activation) {
  return [=](const Variables& x) {
    Network n = network(x, 2, layers * directions, false);
    return listed(kFunction(layers, 0, n.hx, n.ws, n.bs, n.xs, activation));
  };
}

const std::vector<testing::FunctionRow> rows = {
    {"lstm", [](const Variables& x) { return both(F::lstm(x[0], x[1])); }},
    {"lstm of sequences that have ended",
     [](const Variables& x) { return both(F::lstm(x[0], x[1])); }},
    {"lstm of images", [](const Variables& x) { return both(F::lstm(x[0], x[1])); }},
    {"slstm", [](const Variables& x) { return both(F::slstm(x[0], x[1], x[2], x[3])); }},
    {"tree_lstm of 1", [](const Variables& x) { return both(F::tree_lstm({x[0]}, x[1])); }},
    {"tree_lstm of 2",
     [](const Variables& x) {
       return both(F::tree_lstm({x[0], x[1]}, x[2]));
     }},
    {"tree_lstm of 3",
     [](const Variables& x) {
       return both(F::tree_lstm({x[0], x[1], x[2]}, x[3]));
     }},
    {"n_step_lstm layers=1", lstms<F::n_step_lstm>(1, 1)},
    {"n_step_lstm layers=2", lstms<F::n_step_lstm>(2, 1)},
    {"n_step_lstm hx of more", lstms<F::n_step_lstm>(1, 1)},
    {"n_step_lstm one time", lstms<F::n_step_lstm>(1, 1)},
    {"n_step_bilstm layers=1", lstms<F::n_step_bilstm>(1, 2)},
    {"n_step_bilstm layers=2", lstms<F::n_step_bilstm>(2, 2)},
    {"n_step_bilstm hx of more", lstms<F::n_step_bilstm>(1, 2)},
    {"n_step_gru layers=1", grus<F::n_step_gru>(1, 1)},
    {"n_step_gru layers=2", grus<F::n_step_gru>(2, 1)},
    {"n_step_bigru layers=1", grus<F::n_step_bigru>(1, 2)},
    {"n_step_bigru layers=2", grus<F::n_step_bigru>(2, 2)},
    {"n_step_rnn tanh layers=2", rnns<F::n_step_rnn>(2, 1, "tanh")},
    {"n_step_rnn relu layers=2", rnns<F::n_step_rnn>(2, 1, "relu")},
    {"n_step_birnn tanh layers=2", rnns<F::n_step_birnn>(2, 2, "tanh")},
    {"n_step_birnn relu layers=2", rnns<F::n_step_birnn>(2, 2, "relu")},
};
const testing::FunctionTable table("rnn", rows);

}  // namespace
}  // namespace rensa
