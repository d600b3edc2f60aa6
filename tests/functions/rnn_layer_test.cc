// Layers of recurrent networks over sequences as one function: gradients of first and second order,
// the same by functions of one time, how many products a step has, recordings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/graph/capture.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using F::detail::CellKind;
using Batches = std::vector<std::int64_t>;

constexpr std::int64_t kIn = 3, kUnits = 2;

/// A network, of one layer where nothing else is said.
struct Net {
  const char* name;
  CellKind kind;
  int directions;
  int layers = 1;
  std::int64_t row_multiple = 0;
  std::int64_t units = kUnits;
  double range = 1;  // of inputs: up to that, of either sign
  double dropout = 0;

  bool has_c() const { return kind == CellKind::lstm; }
  std::size_t weights() const { return F::detail::weights_of(kind); }

  /// x, hx, of some kinds cx, then the weights and biases of each direction.
  Arrays inputs(const Batches& batches, std::int64_t batch, Dtype dtype, Device device) const {
    std::int64_t rows = 0;
    for (std::int64_t n : batches) rows += n;
    std::vector<Shape> shapes{{rows, kIn}, {layers * directions, batch, units}};
    if (has_c()) shapes.push_back(shapes.back());
    for (int i = 0; i < layers * directions; ++i) {
      std::int64_t in = i < directions ? kIn : directions * units;
      for (std::size_t j = 0; j < weights(); ++j) {
        shapes.push_back({units, j < weights() / 2 ? in : units});
      }
      for (std::size_t j = 0; j < weights(); ++j) shapes.push_back({units});
    }
    Arrays values;
    for (const Shape& shape : shapes) {
      values.push_back(xp::random::uniform(-range, range, shape, float64, device).astype(dtype));
    }
    return values;
  }

  /// hy, y and, where there is one, cy.
  Variables operator()(const Variables& v, const Batches& batches) const {
    auto next = v.begin() + (has_c() ? 3 : 2);
    F::WeightLists ws, bs;
    for (int i = 0; i < layers * directions; ++i) {
      for (F::WeightLists* lists : {&ws, &bs}) {
        auto end = next + static_cast<std::ptrdiff_t>(weights());
        lists->emplace_back(next, end);
        next = end;
      }
    }
    F::detail::SequenceOutput out = F::detail::run_sequences(
        {name, kind, layers, directions, dropout}, v[1], has_c() ? v[2] : Variable(), ws, bs,
        {v[0], batches, row_multiple});
    return has_c() ? Variables{out.hy, out.y, out.cy} : Variables{out.hy, out.y};
  }
};

const Net kNets[] = {
    {"n_step_lstm", CellKind::lstm, 1},     {"n_step_bilstm", CellKind::lstm, 2},
    {"n_step_gru", CellKind::gru, 1},       {"n_step_bigru", CellKind::gru, 2},
    {"n_step_rnn", CellKind::rnn_tanh, 1},  {"n_step_birnn", CellKind::rnn_tanh, 2},
    {"n_step_relu", CellKind::rnn_relu, 1}, {"n_step_birelu", CellKind::rnn_relu, 2},
};

/// Whose rows get zeros behind them.
const Net kWideNets[] = {
    {"n_step_lstm", CellKind::lstm, 1, 2, 8},      {"n_step_bilstm", CellKind::lstm, 2, 2, 8},
    {"n_step_gru", CellKind::gru, 1, 2, 4},        {"n_step_bigru", CellKind::gru, 2, 2, 8},
    {"n_step_birnn", CellKind::rnn_tanh, 2, 2, 4}, {"n_step_relu", CellKind::rnn_relu, 1, 1, 3},
    {"n_step_bigru", CellKind::gru, 2, 2, 8, 65},
};

/// Whose directions go side by side where sequences are of one length.
const Net kBothWays[] = {
    {"n_step_bilstm", CellKind::lstm, 2, 1, 0, 65, 0.3},
    {"n_step_bigru", CellKind::gru, 2, 1, 0, 65, 0.3},
    {"n_step_birnn", CellKind::rnn_tanh, 2, 1, 0, 72, 0.3},
    {"n_step_birelu", CellKind::rnn_relu, 2, 1, 0, 65, 0.3},
};
const Net kBothWaysTwice[] = {
    {"n_step_bilstm", CellKind::lstm, 2, 2, 0, 72, 0.3},
    {"n_step_bigru", CellKind::gru, 2, 2, 0, 65, 0.3},
    {"n_step_birnn", CellKind::rnn_tanh, 2, 2, 0, 66, 0.3},
};
const Net kDropping[] = {{"n_step_bigru", CellKind::gru, 2, 2, 0, 66, 0.3, 0.5}};

/// Batches, and how many rows a state has.
const std::pair<Batches, std::int64_t> kBatches[] = {
    {{3, 3, 3}, 3}, {{3, 2, 2, 1}, 3}, {{2, 1}, 3}, {{2}, 2}, {{1, 1}, 1},
};

class RnnLayer : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { xp::random::seed(11); }

  template <class F> void for_each(Dtype dtype, F&& f, std::span<const Net> nets = kNets) const {
    for (const Net& net : nets) {
      for (const auto& [batches, batch] : kBatches) {
        SCOPED_TRACE(std::string(net.name) + " of " + std::to_string(batches.size()) +
                     " times, state of " + std::to_string(batch));
        f(net, batches, net.inputs(batches, batch, dtype, GetParam()));
      }
    }
  }

  static Arrays like(const Variables& y) {
    Arrays g;
    for (const Variable& v : y) {
      g.push_back(xp::random::uniform(-1, 1, v.shape(), float64, v.device()).astype(v.dtype()));
    }
    return g;
  }
};

Variables leaves(const Arrays& values) { return Variables(values.begin(), values.end()); }

TEST_P(RnnLayer, FirstAndSecondDerivatives) {
  auto check = [](const Net& net, const Batches& batches, const Arrays& inputs) {
    auto all = [&](const Variables& v) { return net(v, batches); };
    Arrays weights = like(all(leaves(inputs)));
    EXPECT_NO_THROW(gradient_check::check_backward(all, inputs, weights));
    EXPECT_NO_THROW(gradient_check::check_double_backward(all, inputs, weights));
    for (std::size_t k = 0; k < weights.size(); ++k) {
      auto one = [&](const Variables& v) { return Variables{net(v, batches)[k]}; };
      EXPECT_NO_THROW(gradient_check::check_backward(one, inputs, {weights[k]})) << k;
    }
  };
  for_each(float64, check);
  for_each(float64, check, kBothWays);
}

// Gradients that are to be differentiated are made of functions of one time.
TEST_P(RnnLayer, GradientsAreThoseOfFunctionsOfOneTime) {
  auto check = [](const Net& net, const Batches& batches, const Arrays& inputs) {
    Variables x = leaves(inputs), y = net(x, batches), gy = leaves(like(y));
    Variables got = grad(y, x, gy), want = grad(y, x, gy, true);
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_TRUE(xp::allclose(got[k].array(), want[k].array(), 1e-12, 1e-13)) << k;
    }
  };
  for_each(float64, check);
  for_each(float64, check, kBothWays);
  for_each(float64, check, kBothWaysTwice);
  for_each(float64, check, kDropping);
}

// An input that is also what another input is made of gets each gradient once.
TEST_P(RnnLayer, SecondDerivativesOfInputsThatDependOnEachOther) {
  Net net = kNets[0];
  Batches batches{2, 2, 1};
  Arrays inputs = net.inputs(batches, 2, float64, GetParam());
  auto f = [&](const Variables& v) {
    Variables in = leaves(inputs);
    in[0] = v[0], in[1] = F::reshape(F::sin(v[1]), {1, 2, kUnits});
    in[2] = in[1] * F::sum(v[0]);
    return net(in, batches);
  };
  Arrays given{inputs[0], inputs[1][0]}, weights = like(f(leaves(given)));
  EXPECT_NO_THROW(gradient_check::check_backward(f, given, weights));
  EXPECT_NO_THROW(gradient_check::check_double_backward(f, given, weights));
}

std::int64_t count(const Recording& recording, const char* name) {
  return std::ranges::count_if(recording.operations, [&](const auto& operation) {
    return std::strcmp(operation->name(), name) == 0;
  });
}

// The weights' gradients are of all times at once: one product of each time goes back through it,
// three more are the gradients of the input and of the two weights. Directions that go side by side
// have one product for both.
TEST_P(RnnLayer, OneProductOfEachTimeGoesBack) {
  constexpr std::int64_t kTimes = 7;
  std::vector<Net> nets(std::begin(kNets), std::end(kNets));
  nets.insert(nets.end(), std::begin(kBothWays), std::end(kBothWays));
  for (const Net& net : nets) {
    Batches batches(kTimes, 2);
    for (bool ragged : {false, true}) {
      SCOPED_TRACE(std::string(net.name) + (ragged ? ", ragged" : ""));
      if (ragged) batches.back() = 1;
      Arrays inputs = net.inputs(batches, 2, float32, GetParam());
      Variables x = leaves(inputs);
      Recording forward, back;
      Variable y;
      {
        RecorderScope scope(&forward);
        y = net(x, batches)[1];
      }
      y.set_grad(xp::ones(y.shape(), float32, GetParam()));
      {
        RecorderScope scope(&back);
        y.backward();
      }
      bool few = net.units == kUnits;
      bool one_kernel = GetParam().is_cuda() && !ragged;  // in place of the times' products
      int nodes = ragged || few ? net.directions : 1;
      EXPECT_EQ(count(forward, "linear"), nodes);
      EXPECT_EQ(count(forward, "matmul"), one_kernel ? 0 : nodes * kTimes);
      EXPECT_EQ(count(forward, "recurrent_steps"), one_kernel ? nodes : 0);
      EXPECT_EQ(count(back, "matmul"), nodes * (kTimes + 3));
      EXPECT_EQ(count(forward, "add") + count(back, "add"),
                (nodes - 1) +  // of the directions' gradients of x
                    nodes * 1);
    }
  }
}

// A sequence's results and gradients are its own, so one that ends sooner, whose batch goes one
// direction after the other, changes nothing in those beside it.
TEST_P(RnnLayer, DirectionsSideBySideGiveWhatEachGives) {
  const Batches even(5, 3), ragged{4, 3, 3, 3, 3};
  auto of_first = [](const Array& a) { return xp::delete_(a, 3, a.ndim() == 3 ? 1 : 0); };
  auto check = [&](const Net& net, Dtype dtype, double tolerance) {
    Arrays with_another = net.inputs(ragged, 4, dtype, GetParam()), inputs;
    for (std::size_t k = 0; k < with_another.size(); ++k) {
      const Array& a = with_another[k];
      bool has_rows = k < (net.has_c() ? 3 : 2);
      inputs.push_back(has_rows ? of_first(a) : a);
    }
    Variables x = leaves(inputs), got = net(x, even);
    Variables wide_x = leaves(with_another), want = net(wide_x, ragged), gy, wide_gy;
    for (const Array& g : like(want)) {
      Array others = g.copy();
      if (g.ndim() == 3) others[{Slice(), 3}] = 0;
      else others[3] = 0;
      wide_gy.push_back(constant(others)), gy.push_back(constant(of_first(others)));
    }
    for (const Variable& y : got) EXPECT_TRUE(y.array().is_contiguous());
    Variables g = grad(got, x, gy), want_g = grad(want, wide_x, wide_gy);
    got.insert(got.end(), g.begin(), g.end());
    want.insert(want.end(), want_g.begin(), want_g.end());
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_EQ(got[k].dtype(), dtype);
      Array value = want[k].array().astype(float64), off = got[k].array().astype(float64);
      if (value.shape() != off.shape()) value = of_first(value);
      double scale = 1 + xp::abs(value).max().item<double>();
      EXPECT_LE(xp::abs(off - value).max().item<double>(), tolerance * scale) << k;
    }
  };
  for (std::span<const Net> nets : {std::span<const Net>(kBothWays), {kBothWaysTwice}}) {
    for (const Net& net : nets) {
      SCOPED_TRACE(std::string(net.name) + " of " + std::to_string(net.layers) + " layers");
      check(net, float64, 1e-12), check(net, float32, 1e-5);
      // Of rounded units some are on the other side of 0.
      if (net.kind != CellKind::rnn_relu) check(net, bfloat16, 3e-2);
    }
  }
}

// States of sequences that no time reaches pass by both directions.
TEST_P(RnnLayer, DirectionsSideBySideLeaveOtherStatesAsTheyAre) {
  for (const Net& net : kBothWays) {
    SCOPED_TRACE(net.name);
    const Batches batches{2, 2};
    Arrays inputs = net.inputs(batches, 3, float32, GetParam());
    Variables y = net(leaves(inputs), batches);
    EXPECT_TRUE(xp::array_equal(y[0].array()[{Slice(), 2}], inputs[1][{Slice(), 2}]));
    EXPECT_FALSE(xp::array_equal(y[0].array()[{Slice(), 1}], inputs[1][{Slice(), 1}]));
  }
}

TEST_P(RnnLayer, RowsWithZerosBehindThemGiveTheSame) {
  auto check = [](Net net, const Batches& batches, const Arrays& inputs) {
    Variables x = leaves(inputs), wide = net(x, batches);
    net.row_multiple = 1;
    Variables want = net(x, batches), gy = leaves(like(want));
    Variables got_g = grad(wide, x, gy), want_g = grad(want, x, gy);
    Variables twice = grad(wide, x, gy, true);
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_TRUE(xp::allclose(wide[k].array(), want[k].array(), 1e-12, 1e-13)) << k;
      EXPECT_TRUE(wide[k].array().is_contiguous()) << k;
    }
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_TRUE(xp::allclose(got_g[k].array(), want_g[k].array(), 1e-12, 1e-13)) << k;
      EXPECT_TRUE(xp::allclose(twice[k].array(), want_g[k].array(), 1e-12, 1e-13)) << k;
      EXPECT_TRUE(got_g[k].array().is_contiguous()) << k;
    }
  };
  for_each(float64, check, kWideNets);
}

TEST_P(RnnLayer, SecondDerivativesOfRowsWithZerosBehindThem) {
  Net net = kWideNets[1];
  Batches batches{2, 1};
  Arrays inputs = net.inputs(batches, 2, float64, GetParam());
  auto f = [&](const Variables& v) { return net(v, batches); };
  EXPECT_NO_THROW(gradient_check::check_double_backward(f, inputs, like(f(leaves(inputs)))));
}

// The zeros, x and the states before the first layer, outputs and states behind the last one: what
// is between them has the launches that it has without them, but for networks without gates, whose
// weights are joined to get zeros.
TEST_P(RnnLayer, RowsWithZerosBehindThemTakeFewLaunches) {
  for (Net net : kWideNets) {
    SCOPED_TRACE(net.name);
    Batches batches(7, 2);
    Arrays inputs = net.inputs(batches, 2, float32, GetParam());
    auto launches = [&] {
      Variables x = leaves(inputs), y;
      Recording forward, back;
      {
        RecorderScope scope(&forward);
        y = net(x, batches);
      }
      {
        RecorderScope scope(&back);
        (F::sum(y[0]) + F::sum(y[1])).backward();
      }
      return std::pair(forward.operations.size(), back.operations.size());
    };
    auto wide = launches();
    net.row_multiple = 1;
    auto narrow = launches();
    bool joins = net.kind == CellKind::lstm || net.kind == CellKind::gru;
    std::size_t more = joins ? 0 : static_cast<std::size_t>(net.layers * net.directions);
    EXPECT_LE(wide.first, narrow.first + 3 + more);
    EXPECT_LE(wide.second, narrow.second + 2 + more);
  }
}

// What the fast kernels of a GPU want is there, and only there.
TEST_P(RnnLayer, RowsOfAGpuAreWhole16Bytes) {
  constexpr std::int64_t kWide = 130;
  Batches batches(32, 2);
  auto random = [](const Shape& shape) {
    return Variable(xp::random::uniform(-0.1, 0.1, shape, float32, GetParam()).astype(bfloat16));
  };
  F::WeightLists ws(1), bs(1);
  for (std::size_t j = 0; j < 8; ++j) {
    ws[0].push_back(random({kWide, kWide})), bs[0].push_back(random({kWide}));
  }
  Variable x = random({64, kWide}), h = random({1, 2, kWide}), c = random({1, 2, kWide});
  auto run = [&](std::int64_t multiple, Recording* recording) {
    RecorderScope scope(recording);
    auto out = F::detail::run_sequences({"n_step_lstm", CellKind::lstm, 1, 1, 0}, h, c, ws, bs,
                                        {x, batches, multiple});
    return out.y;
  };
  Recording as_it_suits, plain;
  Variable y = run(0, &as_it_suits), want = run(1, &plain);
  EXPECT_EQ(count(as_it_suits, "resize_blocks"), GetParam().is_cpu() ? 0 : 2);
  EXPECT_EQ(count(plain, "resize_blocks"), 0);
  EXPECT_TRUE(xp::allclose(y.array().astype(float32), want.array().astype(float32), 2e-2, 2e-2));
}

TEST_P(RnnLayer, IsReplayedBitForBit) {
  auto check = [](const Net& net, const Batches& batches, const Arrays& inputs) {
    Variables ones;
    for (const Variable& y : net(leaves(inputs), batches)) {
      ones.push_back(constant(xp::ones_like(y.array())));
    }
    auto gradients = [&](const Variables& v) {
      Variables x;
      for (const Variable& input : v) x.emplace_back(input.array());
      Variables y = net(x, batches), g = grad(y, x, ones);
      y.insert(y.end(), g.begin(), g.end());
      return y;
    };
    CaptureCache cache({.replay_lists = true});
    for (int i = 0; i < 5; ++i) {
      Variables x;
      for (const Array& a : inputs) x.push_back(constant(a * (1 + 0.1f * static_cast<float>(i))));
      Variables want = gradients(x), got = cache.call(gradients, x);
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_TRUE(xp::array_equal(got[k].array(), want[k].array())) << k << ", call " << i;
      }
    }
    EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
  };
  for_each(float32, check);
  for_each(float32, check, kWideNets);
  for_each(float32, check, kBothWays);
  for_each(bfloat16, check, kBothWaysTwice);
}

TEST_P(RnnLayer, ForgetsAndComputesAgain) {
  auto check = [](const Net& net, const Batches& batches, const Arrays& inputs) {
    auto f = [&](const Variables& v) { return net(v, batches); };
    Variables x = leaves(inputs), y = f(x), gy = leaves(like(y));
    Variables want = grad(y, x, gy), got = grad(F::forget(f, x), x, gy);
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_TRUE(xp::array_equal(got[k].array(), want[k].array())) << k;
    }
  };
  for_each(float32, check);
  for_each(float32, check, kBothWays);
}

// Those of all digits go by products of each time. A weight may lie in any order.
TEST_P(RnnLayer, FewUnitsOfFloat32GiveTheSame) {
  const Batches batches(5, 3);
  for (Net net : kNets) {
    for (std::int64_t units : {1, 31, 32, 33, 63, 64, 65}) {
      SCOPED_TRACE(std::string(net.name) + " of " + std::to_string(units));
      net.units = units;
      Arrays exact = net.inputs(batches, 3, float64, GetParam()), inputs;
      for (std::size_t k = 1; k < exact.size(); ++k) exact[k] *= 0.3;
      for (const Array& a : exact) inputs.push_back(a.astype(float32));
      inputs.back() = xp::stack({inputs.back(), inputs.back()}, 1)[{Slice(), 0}];
      for (Array& a : inputs) a = a.ndim() == 2 ? a.transpose().ascontiguous().transpose() : a;
      Variables x = leaves(inputs), got = net(x, batches);
      Variables exact_x = leaves(exact), want = net(exact_x, batches), gy = leaves(like(want)), g;
      for (const Variable& v : gy) g.emplace_back(v.array().astype(float32));
      Variables got_g = grad(got, x, g), want_g = grad(want, exact_x, gy);
      got.insert(got.end(), got_g.begin(), got_g.end());
      want.insert(want.end(), want_g.begin(), want_g.end());
      for (std::size_t k = 0; k < want.size(); ++k) {
        double scale = 1 + xp::abs(want[k].array()).max().item<double>();
        Array off = xp::abs(got[k].array().astype(float64) - want[k].array());
        EXPECT_LE(off.max().item<double>(), 1e-5 * scale) << k;
      }
    }
  }
}

// A state that is a constant takes no product.
TEST_P(RnnLayer, LeavesOutWhatNobodyWants) {
  Net net = kNets[0];
  Batches batches{2, 2, 2};
  Variables x = leaves(net.inputs(batches, 2, float32, GetParam()));
  for (std::size_t k : {0u, 1u, 2u}) x[k] = constant(x[k].array());
  Variable y = net(x, batches)[1];
  y.set_grad(xp::ones(y.shape(), float32, GetParam()));
  Recording back;
  {
    RecorderScope scope(&back);
    y.backward();
  }
  EXPECT_EQ(count(back, "matmul"), 2 + 2);
}

TEST_P(RnnLayer, ComputesProductsInTheDtypeOfAutocast) {
  auto check = [](const Net& net, const Batches& batches, const Arrays& inputs) {
    Variables x = leaves(inputs), want = net(x, batches), got;
    {
      Autocast on(bfloat16);
      got = net(x, batches);
    }
    bool wide = net.kind == CellKind::lstm || net.kind == CellKind::gru;
    EXPECT_EQ(got[1].dtype(), wide ? float32 : bfloat16);
    Variables gy, wide_gy;
    for (std::size_t k = 0; k < got.size(); ++k) {
      EXPECT_TRUE(xp::allclose(got[k].array().astype(float32), want[k].array(), 3e-2, 3e-2)) << k;
      wide_gy.push_back(constant(xp::ones_like(want[k].array())));
      gy.push_back(constant(xp::ones_like(got[k].array())));
    }
    Variables g = grad(got, x, gy), twice = grad(got, x, gy, true), want_g = grad(want, x, wide_gy);
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_EQ(g[k].dtype(), float32);
      double scale = 0.05 * xp::abs(want_g[k].array()).max().item<double>() + 0.05;
      EXPECT_TRUE(xp::allclose(g[k].array(), want_g[k].array(), 0, scale)) << k;
      EXPECT_TRUE(xp::allclose(twice[k].array(), want_g[k].array(), 0, scale)) << k;
    }
  };
  for_each(float32, check);
  // Of many rectified units some are on the other side of 0.
  for_each(float32, check, std::span(kBothWays).first(3));
}

TEST_P(RnnLayer, OfNoFeaturesAndOfNoUnits) {
  for (auto [in, units] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {3, 0}}) {
    Variable hx(xp::ones({1, 2, units}, float32, GetParam())),
        x(xp::ones({3, in}, float32, GetParam()));
    F::WeightLists ws(1), bs(1);
    for (std::size_t j = 0; j < 6; ++j) {
      ws[0].emplace_back(xp::ones({units, j < 3 ? in : units}, float32, GetParam()));
      bs[0].emplace_back(xp::ones({units}, float32, GetParam()));
    }
    auto [hy, cy, y] = F::detail::run_sequences({"n_step_gru", CellKind::gru, 1, 1, 0}, hx,
                                                Variable(), ws, bs, {x, {2, 1}});
    EXPECT_EQ(y.shape(), Shape({3, units}));
    F::sum(y).backward();
    EXPECT_EQ(x.grad().shape(), x.shape());
    EXPECT_EQ(ws[0][5].grad().shape(), ws[0][5].shape());
  }
}

TEST_P(RnnLayer, RefusesDtypesThatDiffer) {
  Net net = kNets[0];
  Batches batches{2, 1};
  for (std::size_t k : {0u, 1u, 2u, 3u}) {
    Arrays inputs = net.inputs(batches, 2, float32, GetParam());
    inputs[k] = inputs[k].astype(float64);
    EXPECT_THROW(net(leaves(inputs), batches), DtypeError) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RnnLayer, ::testing::ValuesIn(testing::test_devices()));

}  // namespace
}  // namespace rensa
