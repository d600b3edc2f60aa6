// A captured step against the same step run eagerly, bit for bit: on a GPU as a CUDA graph, on the
// CPU as the rewritten list run operation by operation.
#include "rensa/graph/capture.h"

#include <gtest/gtest.h>

#include <functional>

#include "rensa/array/exchange.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/kernel/fuse.h"
#include "rensa/kernel/reduction_kernel.h"
#include "rensa/links/links.h"
#include "rensa/links/reporter.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// By the approximation with tanh: eight elementwise operations, and many more behind.
Variable gelu(const Variable& x) {
  return 0.5f * x * (1 + F::tanh(0.7978846f * (x + 0.044715f * x * x * x)));
}

struct Net : Chain<Net> {
  L::Linear l1, l2, l3;
  Variable (*activation)(const Variable&);
  Net(std::int64_t units, Variable (*f)(const Variable&))
      : l1(units), l2(units), l3(10), activation(f) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const {
    Variable h = F::dropout(activation(l1(x)), 0.25);
    return l3(activation(l2(h)));
  }
};

struct Batch {
  Array x, t;
};

std::vector<Batch> make_batches(Device device) {
  xp::random::seed(7);
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) {
    std::int64_t n = i % 4 == 3 ? 5 : 16;  // a short batch at each "epoch's" end
    batches.push_back({xp::random::uniform(0, 1, {n, 20}, float32, cpu()).to(device),
                       xp::random::randint(0, 10, {n}, int32, cpu()).to(device)});
  }
  return batches;
}

/// What a training run leaves behind.
struct Outcome {
  std::vector<std::vector<float>> parameters, gradients;
  std::vector<float> losses, accuracies;
  CaptureStats stats;
};

CaptureOptions test_options() {
  CaptureOptions options;
  options.replay_lists = true;
  return options;
}

/// Three epochs with all that tempts a recording to freeze.
Outcome train(Device device, bool captured, const Optimizer& optimizer,
              CaptureOptions options = test_options(),
              Variable (*activation)(const Variable&) = F::relu) {
  std::vector<Batch> batches = make_batches(device);
  xp::random::seed(11);
  auto model = L::Classifier(Net(32, activation));
  model.to_device(device);
  optimizer.setup(model);
  CaptureCache cache(options);
  CaptureCache::Step step = [&](const Variables& in) {
    return Variables{optimizer.update(model, in[0], in[1])};
  };
  Reporter reporter;
  reporter.add_observer("main", model);
  Outcome outcome;
  auto saved = model.copy(CopyMode::copy);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (epoch == 1 && i == 2) optimizer.attribute("lr") *= 0.5;
      if (epoch == 1 && i == 7) saved.copyparams(model);
      if (epoch == 2 && i == 3) model.copyparams(saved);  // loaded in place, after recording
      Observation observation;
      auto scope = reporter.scope(observation);
      Variables inputs{constant(batches[i].x), constant(batches[i].t)};
      Variables loss = captured ? cache.call(step, inputs) : step(inputs);
      outcome.losses.push_back(loss[0].item<float>());
      EXPECT_EQ(observation.at("main/loss").item<float>(), outcome.losses.back());
      outcome.accuracies.push_back(observation.at("main/accuracy").item<float>());
    }
    UsingConfig<bool> testing(&Config::train, false);
    no_backprop_mode no_graph;
    outcome.losses.push_back(model(batches[0].x, batches[0].t).item<float>());
  }
  for (const ParameterRef& p : model.params()) {
    outcome.parameters.push_back(p.array().to_vector<float>());
    outcome.gradients.push_back(p.grad().to_vector<float>());
  }
  outcome.stats = cache.stats();
  return outcome;
}

/// Appends an array's elements.
void keep(std::vector<float>& values, const Array& array) {
  std::vector<float> more = array.ravel().to_vector<float>();
  values.insert(values.end(), more.begin(), more.end());
}

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.accuracies, b.accuracies);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.gradients, b.gradients);
}

class CaptureTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) {
      RENSA_NEEDS_GPUS(1);
    }
  }
};

TEST_P(CaptureTest, EqualsEagerBitForBit) {
  Outcome eager = train(GetParam(), false, optimizers::MomentumSGD());
  Outcome captured = train(GetParam(), true, optimizers::MomentumSGD());
  expect_equal(eager, captured);
  EXPECT_EQ(captured.stats.warmups, 4);
  EXPECT_EQ(captured.stats.recordings, 2);
  EXPECT_EQ(captured.stats.replays, 36 - 6);
  EXPECT_EQ(captured.stats.fallbacks, 0);
  EXPECT_LT(captured.stats.rewritten_operations, captured.stats.operations);
  EXPECT_GT(captured.stats.longest_chain, 0);
  EXPECT_LE(captured.stats.longest_chain, captured.stats.rewritten_operations);
}

TEST_P(CaptureTest, AnotherConfigurationIsAnotherRecording) {
  CaptureCache cache({.replay_lists = true});
  auto step = [](const Variables& in) { return Variables{in[0] * 2.f}; };
  Variables in{constant(xp::ones({3}, float32, GetParam()))};
  auto recordings = [&] {
    for (int i = 0; i < 4; ++i) (void)cache.call(step, in);
    return cache.stats().recordings;
  };
  EXPECT_EQ(recordings(), 1);
  std::int64_t expected = 1;
  for (bool Config::*field : {&Config::autotune, &Config::cudnn_deterministic}) {
    UsingConfig<bool> other(field, !(config().*field));
    EXPECT_EQ(recordings(), ++expected);
  }
  for (UseTf32 tf32 : {UseTf32(true), UseTf32::x3()}) {
    UsingConfig<UseTf32> other(&Config::tf32, tf32);
    EXPECT_EQ(recordings(), ++expected);
  }
  {
    UsingConfig<UseCudnn> other(&Config::use_cudnn, UseCudnn::never);
    EXPECT_EQ(recordings(), ++expected);
  }
  EXPECT_EQ(recordings(), expected);
}

TEST_P(CaptureTest, UnrewrittenListGivesTheSame) {
  CaptureOptions plain = test_options();
  plain.rewrite = plain.branches = false;
  Outcome rewritten = train(GetParam(), true, optimizers::SGD());
  Outcome unrewritten = train(GetParam(), true, optimizers::SGD(), plain);
  expect_equal(rewritten, unrewritten);
  EXPECT_EQ(unrewritten.stats.rewritten_operations, unrewritten.stats.operations);
}

TEST_P(CaptureTest, ChainsOfElementwiseOperationsEqualEagerBitForBit) {
  Outcome eager = train(GetParam(), false, optimizers::MomentumSGD(), test_options(), gelu);
  Outcome captured = train(GetParam(), true, optimizers::MomentumSGD(), test_options(), gelu);
  expect_equal(eager, captured);
  EXPECT_EQ(captured.stats.fallbacks, 0) << captured.stats.last_fallback;
  if (GetParam().is_cuda()) {
    EXPECT_GT(captured.stats.joined_operations, 30);
  } else {
    EXPECT_EQ(captured.stats.joined_operations, 0);  // a compiler's vectors may round otherwise
  }
}

/// A recurrent net unrolled `steps` times over its own outputs.
struct Unrolled : Chain<Unrolled> {
  L::Linear from_input, from_state, out;
  int steps;
  explicit Unrolled(int n) : from_input(8), from_state(8), out(1), steps(n) {}
  void members(Visitor& v) override {
    v("from_input", from_input), v("from_state", from_state), v("out", out);
  }
  Variable operator()(const Variable& x) {
    Variable h = F::tanh(from_input(x));
    for (int t = 1; t < steps; ++t) h = F::relu(from_input(x) + from_state(F::tanh(h)));
    return F::sum(out(h) * 0.01f);
  }
};

/// Layers whose gradients of weights go by large tiles where there are such.
struct LargeLayers : Chain<LargeLayers> {
  L::Linear first{784, 1000}, second{1000, 10};
  void members(Visitor& v) override { v("first", first), v("second", second); }
  Variable operator()(const Variable& x) { return F::mean(F::square(second(F::relu(first(x))))); }
};

TEST_P(CaptureTest, ALongStepEqualsEagerBitForBit) {
  auto train = [&](bool captured) {
    xp::random::seed(3);
    Unrolled net(100);
    net.to_device(GetParam());
    optimizers::SGD optimizer(0.01);
    optimizer.setup(net);
    CaptureCache cache(test_options());
    CaptureCache::Step step = [&](const Variables& in) {
      return Variables{optimizer.update(net, in[0])};
    };
    std::vector<float> values;
    for (int i = 0; i < 5; ++i) {
      Variables in{constant(xp::random::normal(0, 1, {4, 8}, float32, GetParam()))};
      values.push_back((captured ? cache.call(step, in) : step(in))[0].item<float>());
    }
    for (const ParameterRef& p : net.params()) keep(values, p.array());
    if (captured) {
      EXPECT_EQ(cache.stats().replays, 2) << cache.stats().last_fallback;
      EXPECT_GT(cache.stats().operations, 1500);
    }
    return values;
  };
  EXPECT_EQ(train(false), train(true));
}

// As a scan over the batches: each update has the gradients of its own, and the counts and rates
// of its own.
TEST_P(CaptureTest, SeveralUpdatesInOneStepEqualEagerBitForBit) {
  auto train = [&](bool captured) {
    constexpr std::int64_t kUpdates = 3, kBatch = 8;
    xp::random::seed(5);
    auto model = L::Classifier(Net(32, F::relu));
    model.to_device(GetParam());
    optimizers::Adam optimizer({.alpha = 0.01});
    optimizer.setup(model);
    CaptureCache cache(test_options());
    CaptureCache::Step step = [&](const Variables& in) {
      Variables losses;
      for (std::int64_t i = 0; i < kUpdates; ++i) {
        Slice batch(i * kBatch, (i + 1) * kBatch);
        losses.push_back(optimizer.update(model, in[0][batch], in[1][batch]));
      }
      return losses;
    };
    std::vector<float> values;
    for (int call = 0; call < 7; ++call) {
      if (call == 5) optimizer.attribute("alpha") *= 0.5;
      Variables in{
          constant(xp::random::uniform(0, 1, {kUpdates * kBatch, 20}, float32, GetParam())),
          constant(xp::random::randint(0, 10, {kUpdates * kBatch}, int32, GetParam()))};
      for (const Variable& loss : captured ? cache.call(step, in) : step(in)) {
        values.push_back(loss.item<float>());
      }
    }
    for (const ParameterRef& p : model.params()) keep(values, p.array()), keep(values, p.grad());
    EXPECT_EQ(optimizer.t(), 7 * kUpdates);
    EXPECT_EQ(cache.stats().replays, captured ? 4 : 0) << cache.stats().last_fallback;
    return values;
  };
  EXPECT_EQ(train(false), train(true));
}

// On a GPU the update of the first weights is part of the product that gives their gradient.
TEST_P(CaptureTest, TheRateOfEachCallCounts) {
  auto train = [&](bool captured, bool rewrite) {
    xp::random::seed(4);
    LargeLayers net;
    net.to_device(GetParam());
    optimizers::SGD optimizer(0.01);
    optimizer.setup(net);
    CaptureOptions options = test_options();
    options.rewrite = rewrite;
    CaptureCache cache(options);
    CaptureCache::Step step = [&](const Variables& in) {
      Variable loss = optimizer.update(net, in[0]);
      return Variables{loss, constant(net.first.W.grad())};
    };
    std::vector<float> values;
    for (int i = 0; i < 6; ++i) {
      optimizer.lr() = 0.01 * (i + 1);
      Variables in{constant(xp::random::normal(0, 1, {100, 784}, float32, GetParam()))};
      for (const Variable& y : captured ? cache.call(step, in) : step(in)) keep(values, y.array());
      keep(values, net.first.W.array());
    }
    EXPECT_EQ(cache.stats().replays, captured ? 3 : 0) << cache.stats().last_fallback;
    return values;
  };
  std::vector<float> eager = train(false, true);
  EXPECT_TRUE(train(true, true) == eager);
  EXPECT_TRUE(train(true, false) == eager);
}

// On a GPU each update of the first weights is part of the product that gives its gradient.
TEST_P(CaptureTest, UpdatesInProductsFollowOneAnother) {
  auto train = [&](bool captured) {
    xp::random::seed(6);
    LargeLayers net;
    net.to_device(GetParam());
    optimizers::SGD optimizer(0.01);
    optimizer.setup(net);
    CaptureCache cache(test_options());
    CaptureCache::Step step = [&](const Variables& in) {
      Variables losses;
      for (const Variable& x : in) losses.push_back(optimizer.update(net, x));
      return losses;
    };
    std::vector<float> values;
    for (int call = 0; call < 5; ++call) {
      Variables in;
      for (int i = 0; i < 3; ++i) {
        in.push_back(constant(xp::random::normal(0, 1, {100, 784}, float32, GetParam())));
      }
      for (const Variable& y : captured ? cache.call(step, in) : step(in)) keep(values, y.array());
    }
    for (const Array& array : {net.first.W.array(), net.first.W.grad(), net.second.W.array()}) {
      keep(values, array);
    }
    EXPECT_EQ(cache.stats().replays, captured ? 2 : 0) << cache.stats().last_fallback;
    return values;
  };
  EXPECT_EQ(train(false), train(true));
}

// Each call of dropout asks the host for two numbers: more than the arguments of a kernel hold.
TEST_P(CaptureTest, AStepMayAskForManyNumbers) {
  auto run = [&](bool captured) {
    xp::random::seed(5);
    CaptureCache cache(test_options());
    CaptureCache::Step step = [](const Variables& in) {
      Variable y = in[0];
      for (int t = 0; t < 300; ++t) y = F::dropout(y, 0.01);
      return Variables{y};
    };
    std::vector<std::vector<float>> results;
    Variables in{constant(xp::ones({500}, float32, GetParam()))};
    for (int i = 0; i < 5; ++i) {
      Variables y = captured ? cache.call(step, in) : step(in);
      results.push_back(y[0].array().to_vector<float>());
    }
    EXPECT_EQ(cache.stats().replays, captured ? 2 : 0) << cache.stats().last_fallback;
    return results;
  };
  std::vector<std::vector<float>> eager = run(false);
  EXPECT_NE(eager[3], eager[4]);
  EXPECT_EQ(eager, run(true));
}

TEST_P(CaptureTest, ResultsAreFreshMemory) {
  CaptureCache cache(test_options());
  CaptureCache::Step step = [](const Variables& in) { return Variables{in[0] * 2 + 1}; };
  std::vector<Array> results;
  for (int i = 0; i < 5; ++i) {
    Array x = xp::full({3}, static_cast<float>(i), float32, GetParam());
    results.push_back(cache.call(step, {constant(x)})[0].array());
  }
  for (int i = 0; i < 5; ++i) {
    float expected = static_cast<float>(2 * i + 1);
    EXPECT_EQ(results[static_cast<std::size_t>(i)].to_vector<float>(),
              (std::vector<float>(3, expected)));
  }
  EXPECT_EQ(cache.stats().replays, 2);
}

// What a library computes may depend on how its operands lie.
TEST_P(CaptureTest, InputsAndResultsKeepTheOrderOfTheirAxes) {
  Array plain = xp::arange(24, float32, GetParam()).reshape({2, 3, 4});
  Array turned = xp::arange(24, float32, GetParam()).reshape({2, 4, 3}).transpose({0, 2, 1});
  std::vector<Shape> seen;
  CaptureCache cache(test_options());
  auto step = [&](const Variables& in) {
    seen.push_back(in[0].array().strides());
    return Variables{in[0] * 2};
  };
  for (int i = 0; i < 6; ++i) {
    for (const Array& x :
         std::vector<Array>{plain, turned, turned[{ellipsis, Slice(none, none, 2)}]}) {
      Array got = cache.call(step, {constant(x)})[0].array();
      EXPECT_TRUE(xp::array_equal(got, x * 2)) << "call " << i;
      EXPECT_EQ(got.strides(), (x * 2).strides()) << "call " << i;
    }
  }
  EXPECT_EQ(cache.stats().recordings, 3);
  EXPECT_GT(cache.stats().replays, 6);
  for (std::size_t i = 0; i + 2 < seen.size(); i += 3) {
    EXPECT_EQ(seen[i], plain.strides());
    EXPECT_EQ(seen[i + 1], turned.strides());
  }
}

TEST_P(CaptureTest, AnyNumberOfArraysGoesInAndOut) {
  auto step = [](const Variables& in) {
    Variables results;
    for (std::size_t k = 0; k < in.size(); ++k) {
      results.push_back(in[k] * static_cast<float>(k) + in[in.size() - 1 - k]);
    }
    return results;
  };
  CaptureCache cache(test_options());
  for (int i = 0; i < 5; ++i) {
    Variables in;
    for (std::int64_t k = 0; k < 37; ++k) {
      in.push_back(constant(xp::full({k + 1, 1}, static_cast<float>(i + k), GetParam()) +
                            xp::zeros({1, 37 - k}, float32, GetParam())));
    }
    for (Variable& x : in) x = constant(x.array()[{Slice(0, 1), Slice(0, 1)}]);
    Variables got = cache.call(step, in), want = step(in);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_TRUE(xp::array_equal(got[k].array(), want[k].array())) << "result " << k;
    }
  }
  EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
}

TEST_P(CaptureTest, ReportsOfViewsHaveTheirElements) {
  Array x = xp::arange(24, float32, GetParam()).reshape({4, 6});
  CaptureCache cache(test_options());
  for (int i = 0; i < 5; ++i) {
    Reporter reporter;
    Observation observed;
    auto scope = reporter.scope(observed);
    cache.call(
        [](const Variables& in) {
          Variable y = in[0] * 2;
          report({{"part", y.array().T()[{Slice(1, 4), Slice(none, none, 2)}]}});
          return Variables{y};
        },
        {constant(x + i)});
    EXPECT_TRUE(xp::array_equal(observed.at("part"),
                                ((x + i) * 2).T()[{Slice(1, 4), Slice(none, none, 2)}]));
  }
  EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
}

TEST_P(CaptureTest, StepThatWaitsStaysEager) {
  CaptureCache cache(test_options());
  CaptureCache::Step step = [](const Variables& in) {
    float first = in[0].array()[0].item<float>();
    return Variables{in[0] * first};
  };
  for (int i = 1; i < 5; ++i) {
    Array x = xp::full({3}, static_cast<float>(i), float32, GetParam());
    Variable y = cache.call(step, {constant(x)})[0];
    EXPECT_EQ(y.array()[1].item<float>(), static_cast<float>(i * i));
  }
  EXPECT_EQ(cache.stats().replays, 0);
  EXPECT_EQ(cache.stats().fallbacks, 2);
  EXPECT_FALSE(cache.stats().last_fallback.empty());
}

TEST_P(CaptureTest, ExceptionInTheStepLeavesTheCacheUsable) {
  CaptureCache cache(test_options());
  bool fail = false;
  CaptureCache::Step step = [&](const Variables& in) {
    if (fail) throw ValueError("as asked");
    return Variables{in[0] + 1};
  };
  Variables in{constant(xp::ones({2}, float32, GetParam()))};
  cache.call(step, in);
  fail = true;
  EXPECT_THROW(cache.call(step, in), ValueError);
  EXPECT_EQ(ThreadState::current().recorder, nullptr);
  fail = false;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cache.call(step, in)[0].array()[0].item<float>(), 2.f);
  EXPECT_EQ(cache.stats().replays, 2);
}

TEST_P(CaptureTest, KeepsAtMostMaxSignatures) {
  CaptureOptions options = test_options();
  options.max_signatures = 2;
  CaptureCache cache(options);
  CaptureCache::Step step = [](const Variables& in) { return Variables{in[0] * in[0]}; };
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t n = 1; n <= 3; ++n) {
      Array x = xp::full({n}, 3.f, float32, GetParam());
      EXPECT_EQ(cache.call(step, {constant(x)})[0].array()[0].item<float>(), 9.f);
    }
  }
  EXPECT_EQ(cache.stats().replays, 0);  // each signature was evicted before its second call
  EXPECT_EQ(cache.stats().warmups, 9);
}

TEST_P(CaptureTest, KernelsMadeAtRunTimeAreReplayed) {
  CaptureCache cache(test_options());
  ReductionKernel largest("T x", "T y", "x", "max(a, b)", "y = a", "-1e30", "largest");
  auto scaled = fuse([](const Array& x, const Array& top) {
    return xp::exp(x - top) / xp::sum(xp::exp(x - top), 1, true);
  });
  CaptureCache::Step step = [&](const Variables& in) {
    const Array& x = in[0].array();
    Array y = scaled(x, largest(x, {.axis = 1, .keepdims = true}));
    return Variables{constant(y), constant(largest(y))};  // in parts, by way of scratch memory
  };
  for (int i = 0; i < 5; ++i) {
    Array x = xp::random::normal(0, i + 1, {300, 1000}, float32, GetParam());
    Variables results = cache.call(step, {constant(x)});
    Array e = xp::exp(x - x.max(1, true)), want = e / e.sum(1, true);
    const Array &got = results[0].array(), &top = results[1].array();
    // On the CPU the last bits of exp are those of the libm function that the compiler chose.
    bool near = x.device().is_cpu() && xp::allclose(got, want, 1e-6);
    EXPECT_TRUE(near || xp::array_equal(got, want)) << i;
    EXPECT_TRUE(xp::array_equal(top, got.max())) << i;
  }
  EXPECT_EQ(cache.stats().replays, 2) << cache.stats().last_fallback;
}

// Unlike a fused function's, the arrays of a captured step are real: who keeps one sees each
// replay.
TEST_P(CaptureTest, AnArrayThatOutlivesTheStepHoldsTheLatestValues) {
  Array kept;
  auto step = capture(
      [&](const Variable& x) {
        Variable y = x * 2;
        kept = y.array();
        return F::exp(y) + 1;
      },
      test_options());
  for (float value : {1.f, 2.f, 3.f, 4.f, 5.f}) {
    step(Variable(xp::full({5}, value, float32, GetParam())));
    EXPECT_TRUE(xp::array_equal(kept, xp::full({5}, 2 * value, float32, GetParam()))) << value;
  }
  EXPECT_EQ(step.stats().replays, 2);
}

TEST_P(CaptureTest, MemoryOfSomebodyElseIsWrittenInEachReplay) {
  CaptureCache cache(test_options());
  Array counts = xp::zeros({40}, float32, GetParam()),
        doubled = xp::zeros({40}, float32, GetParam());
  // Only the recording knows of these wrappers once the step is over.
  auto theirs = [](const Array& a) { return xp::wrap(a.data(), a.shape(), float32, a.device()); };
  CaptureCache::Step step = [&](const Variables& in) {
    Array count = theirs(counts), last = theirs(doubled);
    count += 1.f;                         // reads what the last run left
    last[Slice()] = in[0].array() * 2.f;  // leaves something that no operation reads
    return Variables{in[0] + 1.f};
  };
  for (int i = 1; i <= 5; ++i) {
    Variables result = cache.call(step, {constant(xp::full({40}, i, float32, GetParam()))});
    EXPECT_TRUE(xp::array_equal(result[0].array(), xp::full_like(counts, i + 1)));
    EXPECT_TRUE(xp::array_equal(counts, xp::full_like(counts, i))) << i;
    EXPECT_TRUE(xp::array_equal(doubled, xp::full_like(doubled, 2 * i))) << i;
  }
  EXPECT_EQ(cache.stats().replays, 2) << cache.stats().last_fallback;
}

std::string device_name(const ::testing::TestParamInfo<Device>& info) {
  return info.param.is_cpu() ? "cpu" : "cuda";
}
INSTANTIATE_TEST_SUITE_P(Devices, CaptureTest, ::testing::Values(cpu(), gpu(0)), device_name);

}  // namespace
}  // namespace rensa
