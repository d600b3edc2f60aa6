// F::forget: gradients, random numbers and statistics as without it, and no memory in between.
#include "rensa/functions/forget.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/memory_pool.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/graph/plan.h"
#include "rensa/links/links.h"
#include "rensa/links/reporter.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;

/// A block with everything that a second run could disturb.
struct Block : Chain<Block> {
  L::Linear l1, l2;
  L::BatchNormalization norm;
  bool finetune = true;  // which reads a count on the host
  Block() : l1(6, 8), l2(8, 6), norm(8) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("norm", norm); }
  Variable operator()(const Variable& x) const {
    return x + l2(F::dropout(F::relu(norm(l1(x), finetune))));
  }
};

struct Net : Chain<Net> {
  bool forgets;
  Block a, b;
  L::Linear last;
  explicit Net(bool forgetful) : forgets(forgetful), last(6, 1) {}
  void members(Visitor& v) override { v("a", a), v("b", b), v("last", last); }
  Variable operator()(const Variable& x) const {
    auto through = [&](const Block& block, const Variable& h) {
      return forgets ? F::forget(std::cref(block), h) : block(h);
    };
    return F::mean(F::square(last(through(b, through(a, x)))));
  }
};

/// All values that a model has, and its gradients.
std::vector<Values> values_of(const Link& model) {
  std::vector<Values> all;
  for (const NamedParameter& p : model.namedparams()) {
    all.push_back(p.parameter.array().to_vector<float>());
    if (p.parameter.grad().defined()) all.push_back(p.parameter.grad().to_vector<float>());
  }
  return all;
}

TEST(Forget, IsTheSameToTheBit) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(1);
    Net plain(false), forgetful(false);
    forgetful.copyparams(plain);
    forgetful.forgets = true;
    for (Net* net : {&plain, &forgetful}) net->to(device);
    Array x = xp::random::uniform(-1, 1, {5, 6}, float32, device);
    for (int i = 0; i < 3; ++i) {
      std::optional<xp::random::GeneratorState> after;
      Values loss, gx;
      for (const Net* net : {&plain, &forgetful}) {
        xp::random::seed(7 + i);
        Variable input = x;
        const_cast<Net*>(net)->cleargrads();
        Variable y = (*net)(input);
        xp::random::uniform(0, 1, {8}, float32, device);  // in between
        {
          UsingConfig<bool> test(&Config::train, false);  // the second run is trained all the same
          y.backward();
        }
        auto state = xp::random::get_random_state(device);
        if (!after) {
          after = state, loss = y.array().to_vector<float>(), gx = input.grad().to_vector<float>();
          continue;
        }
        EXPECT_EQ(state, *after);
        EXPECT_EQ(y.array().to_vector<float>(), loss);
        EXPECT_EQ(input.grad().to_vector<float>(), gx);
      }
      EXPECT_EQ(values_of(forgetful), values_of(plain));
      EXPECT_EQ(forgetful.a.norm.avg_mean.to_vector<float>(),
                plain.a.norm.avg_mean.to_vector<float>());
      EXPECT_EQ(forgetful.b.norm.avg_var.to_vector<float>(),
                plain.b.norm.avg_var.to_vector<float>());
      EXPECT_EQ(forgetful.a.norm.N.value(), i + 1);
    }
  }
}

// It computes with the averages that it moves.
TEST(Forget, BatchRenormalization) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(3);
    L::BatchRenormalization plain(3, 1.5, 0.5), forgetful(plain);
    plain.to(device), forgetful.to(device);
    for (int i = 0; i < 3; ++i) {
      Array x = xp::random::uniform(-1, 4, {6, 3}, float32, device);
      Array weights = xp::random::uniform(-1, 1, {6, 3}, float32, device);
      Variable a = x, b = x;
      F::sum(plain(a) * constant(weights)).backward();
      F::sum(F::forget(std::cref(forgetful), b) * constant(weights)).backward();
      EXPECT_EQ(b.grad().to_vector<float>(), a.grad().to_vector<float>()) << i;
      EXPECT_EQ(forgetful.statistics.avg_var.to_vector<float>(),
                plain.statistics.avg_var.to_vector<float>());
    }
  }
}

TEST(Forget, IsReplayedBitForBit) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(1);
    Net eager(true), captured(true);
    for (Net* net : {&eager, &captured}) net->a.finetune = net->b.finetune = false;
    captured.copyparams(eager);
    eager.to(device), captured.to(device);
    optimizers::Adam first, second;
    first.setup(eager), second.setup(captured);
    auto train = [](Net& net, const Optimizer& optimizer, const Variable& x) {
      Variable loss = net(x);
      net.cleargrads();
      loss.backward();
      optimizer.update();
      return loss;
    };
    auto step = capture([&](const Variable& x) { return train(captured, second, x); },
                        {.replay_lists = true});
    for (int i = 0; i < 12; ++i) {
      Variable x = constant(xp::full({5, 6}, 0.1 * i, float32, device) +
                            xp::arange(6, float32, device) * 0.3f);
      auto before = xp::random::get_random_state(device);
      Values want = train(eager, first, x).array().to_vector<float>();
      xp::random::set_random_state(before, device);
      EXPECT_EQ(step(x).array().to_vector<float>(), want) << i;
    }
    EXPECT_EQ(values_of(captured), values_of(eager));
    EXPECT_EQ(captured.a.norm.avg_var.to_vector<float>(), eager.a.norm.avg_var.to_vector<float>());
    EXPECT_GT(step.stats().replays, 4) << step.stats().last_fallback;
  }
}

TEST(Forget, OfSeveralResultsSomeMayBeLeft) {
  for (Device device : testing::test_devices()) {
    Variable a = xp::array({1.f, 2.f}, device), b = xp::array({3.f, 4.f}, device);
    auto f = [](const Variable& x, const Variable& y) {
      return Variables{x * y, F::exp(x), y, constant(x.array())};
    };
    Variables results = F::forget(f, a, b);
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(results[2].array().to_vector<float>(), (Values{3, 4}));
    (F::sum(results[0]) + F::sum(results[2] * results[3])).backward();
    EXPECT_EQ(a.grad().to_vector<float>(), (Values{3, 4}));
    EXPECT_EQ(b.grad().to_vector<float>(), (Values{2, 4}));
  }
}

TEST(Forget, GradientsOfGradients) {
  for (Device device : testing::test_devices()) {
    auto second = [&](bool forgetful) {
      Variable x = xp::array({0.5f, 2.f}, device), w = xp::array({3.f, -1.f}, device);
      auto f = [&](const Variable& v) { return F::sin(v * w) * v; };
      Variable y = forgetful ? F::forget(f, x) : f(x);
      Variable gx = grad({F::sum(y * y)}, {x}, {}, true)[0];
      F::sum(gx * gx).backward();
      return xp::concatenate({x.grad(), w.grad()});
    };
    EXPECT_TRUE(xp::allclose(second(true), second(false), 1e-6));
  }
}

TEST(Forget, ParametersInsideGetTheirsWhereNothingElseWantsAny) {
  L::Linear link(3, 2);
  Variable x = constant(xp::ones({4, 3}));
  F::sum(F::forget(std::ref(link), x)).backward();
  EXPECT_EQ(link.W.grad().to_vector<float>(), Values(6, 4));
  // rensa::grad leaves parameters as they are.
  link.cleargrads();
  Variable asked = xp::ones({4, 3});
  Variable gx = grad({F::sum(F::forget(std::ref(link), asked))}, {asked})[0];
  EXPECT_EQ(gx.shape(), asked.shape());
  EXPECT_FALSE(link.W.grad().defined());
}

TEST(Forget, LinksMayTakeTheirShapeInside) {
  for (Device device : testing::test_devices()) {
    Array x = xp::random::random({4, 3}, float32, device), wanted;
    for (bool forgets : {false, true}) {
      xp::random::seed(3, device);
      L::Linear link(5);
      link.to(device);
      auto f = [&](const Variable& v) { return F::dropout(link(F::dropout(v))); };
      F::sum(forgets ? F::forget(f, constant(x)) : f(constant(x))).backward();
      if (!forgets) wanted = link.W.grad();
      else EXPECT_TRUE(xp::array_equal(link.W.grad(), wanted)) << device;
    }
  }
}

TEST(Forget, GradientsShareNoMemory) {
  L::Bias bias(1, Shape{2});
  Variable x = xp::ones({1, 2});
  F::sum(F::forget(
             [&](const Variable& v) {
               return v + F::reshape(bias.b, {1, 2});
             },
             x))
      .backward();
  x.grad().fill(5);
  EXPECT_EQ(bias.b.grad().to_vector<float>(), (Values{1, 1}));
}

TEST(Forget, WithinItself) {
  auto run = [](bool forgetful) {
    xp::random::seed(4);
    Variable x = xp::ones({40});
    auto inner = [](const Variable& v) { return F::dropout(v * v); };
    auto outer = [&](const Variable& v) {
      Variable h = F::dropout(v, 0.25);
      return F::exp(forgetful ? F::forget(inner, h) : inner(h));
    };
    F::sum(forgetful ? F::forget(outer, x) : outer(x)).backward();
    return x.grad().to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Forget, WithoutGradientsItIsTheFunction) {
  int calls = 0;
  auto f = [&](const Variable& x) { return ++calls, F::exp(x); };
  Variable x = xp::ones({2});
  {
    no_backprop_mode off;
    EXPECT_FALSE(F::forget(f, x).creator());
  }
  EXPECT_FALSE(F::forget(f, constant(x.array())).creator());
  EXPECT_EQ(calls, 2);
}

TEST(Forget, ReportsOnce) {
  Reporter reporter;
  Observation seen;
  int reports = 0;
  Variable x = xp::ones({2});
  auto scope = reporter.scope(seen);
  auto f = [&](const Variable& v) {
    report({{"value", [&] { return ++reports; }}});
    return F::exp(v);
  };
  F::sum(F::forget(f, x)).backward();
  EXPECT_EQ(reports, 1);
}

TEST(Forget, TellsWhatItCannotRunAgain) {
  Variable x = xp::ones({2, 3});
  L::LSTM lstm(3, 2);
  EXPECT_THROW(F::forget(std::ref(lstm), x), NotImplementedError);
  EXPECT_THROW(F::forget([](const Variable&) { return Variable(); }, x), ValueError);
  // Other random numbers, other results.
  for (int more : {0, 2}) {
    bool first = true;
    auto f = [&](const Variable& v) {
      Variable y = F::dropout(v);
      for (int i = first ? 1 : 0; i < more; ++i) y = F::dropout(y);
      if (more == 0 && first) y = F::dropout(y);
      first = false;
      return y;
    };
    EXPECT_THROW(F::sum(F::forget(f, x)).backward(), ValueError) << more;
  }
  bool again = false;
  auto fewer = [&](const Variables& v) { return std::exchange(again, true) ? Variables{} : v; };
  EXPECT_THROW(F::sum(F::forget(fewer, Variables{x})[0]).backward(), ValueError);
  // What it ran on is needed as it was.
  Variable y = F::sum(F::forget([](const Variable& v) { return F::exp(v); }, x));
  x.array().fill(0);
  EXPECT_THROW(y.backward(), ValueError);
}

TEST(Forget, KeepsNothingInBetween) {
  for (bool forgetful : {false, true}) {
    std::weak_ptr<VariableNode> between;
    Variable x = xp::ones({2, 3});
    auto f = [&](const Variable& v) {
      Variable h = F::exp(v);
      between = h.node();
      return h * h;
    };
    Variable y = forgetful ? F::forget(f, x) : f(x);
    EXPECT_EQ(between.expired(), forgetful);
  }
}

/// Eight blocks of eight functions, forward and backward.
void run_blocks(const Variable& x, bool forgetful) {
  auto block = [](const Variable& v) {
    Variable y = v;
    for (int i = 0; i < 8; ++i) y = F::exp(y * 0.1f);
    return y;
  };
  Variable h = x;
  for (int i = 0; i < 8; ++i) h = forgetful ? F::forget(block, h) : block(h);
  F::sum(h).backward();
}

// Second runs depend on what blocks begin with alone, and are not begun all at once for that.
TEST(Forget, ARecordingTakesLessMemory) {
  auto planned = [](bool forgetful) {
    Variable x = xp::ones({1 << 19});
    Recording recording;
    {
      RecorderScope scope(&recording);
      run_blocks(x, forgetful);
    }
    return make_plan(recording, true).arenas.at(cpu())->nbytes();
  };
  std::size_t plain = planned(false), forgetful = planned(true);
  EXPECT_LT(forgetful, plain / 3) << plain;
}

TEST(Forget, PeakOfThePool) {
  RENSA_NEEDS_GPUS(1);
  MemoryPool& pool = cuda::memory_pool(gpu(0));
  auto peak = [&](bool forgetful) {
    Variable x = xp::ones({1 << 20}, float32, gpu(0));
    pool.reset_peaks();
    std::int64_t before = pool.used_bytes();
    run_blocks(x, forgetful);
    return pool.peak_used_bytes() - before;
  };
  std::int64_t plain = peak(false), forgetful = peak(true);
  EXPECT_LT(forgetful, plain / 2) << plain;
}

}  // namespace
}  // namespace rensa
