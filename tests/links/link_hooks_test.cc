// Hooks of links: spectral normalization and weight standardization as Chainer's
// (tests/answers/links/hooks.py), and what a hook of one's own sees.
#include "rensa/links/link_hooks.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/stream.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/optional_parts.h"
#include "tests/recorded.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using link_hooks::SpectralNormalization;
using link_hooks::WeightStandardization;
using Recorded = std::map<std::string, Array>;
using Values = std::vector<float>;
using Names = std::vector<std::string>;

struct Case {
  const char* name;
  std::function<std::unique_ptr<Link>()> make;
};

template <class L> std::unique_ptr<Link> with(L link, auto hook) {
  link.add_hook(std::move(hook));
  return std::make_unique<L>(std::move(link));
}

const Case kCases[] = {
    {"SpectralNormalization of Linear",
     [] { return with(L::Linear(3, 2), SpectralNormalization()); }},
    {"SpectralNormalization of EmbedID",
     [] { return with(L::EmbedID(5, 3), SpectralNormalization()); }},
    {"SpectralNormalization of Convolution2D",
     [] { return with(L::Convolution2D(3, 4, 3, {.pad = 1}), SpectralNormalization()); }},
    {"SpectralNormalization of Deconvolution2D",
     [] { return with(L::Deconvolution2D(3, 2, 2), SpectralNormalization()); }},
    {"SpectralNormalization use_gamma factor n_power_iteration",
     [] {
       return with(L::Convolution2D(none, 4, 2),
                   SpectralNormalization(
                       {.n_power_iteration = 3, .eps = 1e-4, .use_gamma = true, .factor = 2.5}));
     }},
    {"WeightStandardization of Linear",
     [] { return with(L::Linear(none, 2), WeightStandardization()); }},
    {"WeightStandardization of Convolution2D",
     [] { return with(L::Convolution2D(3, 4, 3), WeightStandardization({.eps = 1e-3})); }},
};

/// The persistent "W_u" of a link; null where it has none.
Persistent* u_of(Link& link) {
  struct Find final : Visitor {
    void persistent(std::string_view name, Persistent& p) override {
      if (name == "W_u") found = &p;
    }
    Persistent* found = nullptr;
  } walk;
  link.members(walk);
  return walk.found;
}

std::map<std::string, Recorded> recorded() {
  std::map<std::string, Recorded> all;
  for (auto& [name, array] : testing::recorded_arrays("links/hooks.npz")) {
    std::size_t bar = name.find('|');
    all[name.substr(0, bar)].emplace(name.substr(bar + 1), array);
  }
  return all;
}

Array on(Device device, const Array& a) {
  return (dtype_kind(a.dtype()) == 'f' ? a.astype(float32) : a).to(device);
}

void begin(Link& link, const Recorded& answers, Device device) {
  link.to(device);
  for (const NamedParameter& named : link.namedparams()) {
    ASSERT_TRUE(answers.count("W" + named.path)) << named.path;
    named.parameter.initialize(answers.at("W" + named.path).shape());
    named.parameter.array().assign(on(named.parameter.device(), answers.at("W" + named.path)));
  }
  if (Persistent* u = u_of(link)) *u = on(device, answers.at("u"));
}

void expect_near(const Array& got, const Array& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  EXPECT_TRUE(xp::allclose(got.to_cpu().astype(float64), want, 2e-5, 2e-5))
      << what << ": " << got.str() << ", not " << want.str();
}

TEST(LinkHooks, AreChainers) {
  auto all = recorded();
  EXPECT_EQ(all.size(), std::size(kCases));
  for (Device device : testing::test_devices()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      const Recorded& answers = all.at(c.name);
      std::unique_ptr<Link> link = c.make();
      begin(*link, answers, device);
      for (int k = 0; k < 4; ++k) {
        std::string n = std::to_string(k);
        UsingConfig<bool> train(&Config::train, k < 3);
        Variable y = link->invoke({constant(on(device, answers.at("x" + n)))});
        expect_near(y.array(), answers.at("y" + n), "y" + n);
        link->cleargrads();
        F::sum(y * constant(on(device, answers.at("gy" + n)))).backward();
        for (const NamedParameter& named : link->namedparams()) {
          expect_near(named.parameter.grad(), answers.at("g" + n + named.path),
                      "g" + n + named.path);
          named.parameter.array() -= named.parameter.grad() * 0.1f;
        }
        if (Persistent* u = u_of(*link)) expect_near(*u, answers.at("u" + n), "u" + n);
      }
    }
  }
}

TEST(LinkHooks, AreReplayedBitForBit) {
  auto all = recorded();
  for (Device device : testing::test_devices()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      const Recorded& answers = all.at(c.name);
      auto run = [&](bool captured) {
        std::unique_ptr<Link> link = c.make();
        begin(*link, answers, device);
        optimizers::SGD optimizer(0.1);
        optimizer.setup(*link);
        auto step = [&](const Variable& x) {
          Variable loss = F::sum(F::square(link->invoke({x})));
          link->cleargrads();
          loss.backward();
          optimizer.update();
          return loss;
        };
        auto recording = capture(step, {.replay_lists = true});
        Values seen;
        for (int i = 0; i < 12; ++i) {
          Variable x = constant(on(device, answers.at("x" + std::to_string(i % 3))));
          seen.push_back((captured ? recording(x) : step(x)).item<float>());
        }
        for (const ParameterRef& p : link->params()) {
          for (float value : p.array().to_vector<float>()) seen.push_back(value);
        }
        if (captured) {
          EXPECT_GT(recording.stats().replays, 3) << recording.stats().last_fallback;
        }
        return seen;
      };
      EXPECT_EQ(run(true), run(false));
    }
  }
}

TEST(SpectralNormalization, MakesTheGreatestSingularValueOne) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  for (Device device : testing::test_devices()) {
    xp::random::seed(3);
    L::Linear link(none, 4, {.nobias = true});
    link.add_hook(SpectralNormalization({.n_power_iteration = 60, .eps = 1e-12})).to(device);
    Array x = xp::eye(6, float32, device);
    EXPECT_NEAR(xp::linalg::norm(link(x).array(), 2).item<float>(), 1, 1e-4);
    L::Linear scaled(6, 4, {.nobias = true});
    scaled.to(device);
    float greatest = xp::linalg::norm(scaled.W.array(), 2).item<float>();
    SpectralNormalization hook({.n_power_iteration = 60, .use_gamma = true});
    scaled.add_hook(std::move(hook));
    EXPECT_EQ(scaled.params().size(), 2u);
    EXPECT_NEAR(xp::linalg::norm(scaled(x).array(), 2).item<float>(), greatest, 1e-4);
  }
}

TEST(SpectralNormalization, IsPartOfTheLink) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  xp::random::seed(4);
  testing::TemporaryFolder folder;
  auto make = [] {
    L::Linear link(3, 2);
    link.add_hook(SpectralNormalization({.use_gamma = true}));
    return link;
  };
  L::Linear link = make();
  Array x = xp::random::uniform(-1, 1, {4, 3});
  (void)link(x);
  // A copy has a hook of its own.
  L::Linear copied(link);
  Values before = u_of(copied)->to_vector<float>();
  EXPECT_EQ(before, u_of(link)->to_vector<float>());
  (void)link(x), (void)link(x);
  EXPECT_EQ(u_of(copied)->to_vector<float>(), before);
  EXPECT_NE(u_of(link)->to_vector<float>(), before);
  // What moves goes on, what is read is there.
  L::Linear moved(std::move(link));
  serializers::save_npz(folder / "link.npz", moved);
  L::Linear read = make(), waits(none, 2);
  waits.add_hook(SpectralNormalization({.use_gamma = true}));
  serializers::load_npz(folder / "link.npz", read);
  serializers::load_npz(folder / "link.npz", waits);
  Values want = moved(x).array().to_vector<float>();
  EXPECT_EQ(read(x).array().to_vector<float>(), want);
  EXPECT_EQ(waits(x).array().to_vector<float>(), want);
  EXPECT_EQ(read.namedparams()[2].path, "/gamma");
  read.delete_hook("SpectralNormalization");
  EXPECT_EQ(read.params().size(), 2u);
  EXPECT_TRUE(xp::array_equal(read(x).array(), F::linear(x, read.W, read.b).array()));
}

TEST(SpectralNormalization, IsForgottenAndComesToTheSame) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    L::Linear link(3, 3);
    link.add_hook(SpectralNormalization()).to(device);
    L::Linear twin(link);
    Array x = xp::random::uniform(-1, 1, {4, 3}, float32, device);
    auto twice = [](const L::Linear& l, const Variable& v) { return l(F::tanh(l(v))); };
    for (int i = 0; i < 2; ++i) {
      link.cleargrads(), twin.cleargrads();
      F::sum(twice(link, x)).backward();
      F::sum(F::forget([&](const Variable& v) { return twice(twin, v); }, constant(x))).backward();
      EXPECT_EQ(twin.W.grad().to_vector<float>(), link.W.grad().to_vector<float>());
      EXPECT_EQ(u_of(twin)->to_vector<float>(), u_of(link)->to_vector<float>());
    }
  }
}

/// Notes what it is called with, and adds to b.
struct Watch : LinkHook {
  std::string label = "Watch";
  std::shared_ptr<std::vector<std::string>> seen;
  std::string name() const override { return label; }
  std::unique_ptr<LinkHook> clone() const override { return std::make_unique<Watch>(*this); }
  void added(const HookedLink& link) override { seen->push_back("added " + link.link.type_name()); }
  void deleted(const HookedLink&) override { seen->push_back("deleted"); }
  void forward_preprocess(HookedCall& call) override {
    seen->push_back(label + " before " + call.x()[0].shape().str());
    call.replace("b", call.parameter("b") + 1.f);
  }
  void forward_postprocess(HookedCall&, const Variable& y) override {
    seen->push_back(label + " after " + y.shape().str());
  }
};

TEST(LinkHook, IsCalledAroundTheForward) {
  auto seen = std::make_shared<std::vector<std::string>>();
  Watch first, second;
  first.seen = second.seen = seen;
  second.label = "Second";
  L::Linear link(2, 1, {.initialW = 0});
  link.add_hook(first);
  HasHooks& any = link;  // as who does not know its class has it
  any.add_hook(second.clone());
  link.add_hook(WeightStandardization());
  EXPECT_EQ(link.hook_names(),
            (std::vector<std::string>{"Watch", "Second", "WeightStandardization"}));
  EXPECT_EQ(link(xp::ones({3, 2})).array().to_vector<float>(), (Values{2, 2, 2}));
  EXPECT_EQ(link.b.array().to_vector<float>(), Values{0});
  link.delete_hook("Watch");
  EXPECT_EQ(*seen, (std::vector<std::string>{"added Linear", "added Linear", "Watch before (3, 2)",
                                             "Second before (3, 2)", "Watch after (3, 1)",
                                             "Second after (3, 1)", "deleted"}));
  // The parameters come back where the forward fails.
  EXPECT_THROW(link(xp::ones({3, 5})), ShapeError);
  EXPECT_EQ(link.b.array().to_vector<float>(), Values{0});
  EXPECT_TRUE(link.W.is_initialized());
}

TEST(LinkHook, OfAScopeSeesEveryLinkThatTakesHooks) {
  auto seen = std::make_shared<Names>();
  Watch own, outer, inner;
  own.seen = outer.seen = inner.seen = seen;
  outer.label = "Outer", inner.label = "Inner";
  L::Linear link(2, 1, {.initialW = 0});
  L::DepthwiseConvolution2D depthwise(1, 1, 1);
  L::LocalConvolution2D local(1, 1, {2, 2}, 1);
  link.add_hook(own);
  seen->clear();
  {
    LinkHookScope outer_scope(outer);
    {
      LinkHookScope inner_scope(inner);
      EXPECT_EQ(link(xp::ones({1, 2})).item<float>(), 3);
      // Hooks are the thread's.
      std::thread([&] { EXPECT_EQ(link(xp::ones({1, 2})).item<float>(), 1); }).join();
    }
    seen->resize(6);
    (void)depthwise(xp::ones({1, 1, 2, 2})), (void)local(xp::ones({1, 1, 2, 2}));
  }
  (void)depthwise(xp::ones({1, 1, 2, 2}));
  EXPECT_EQ(*seen, (Names{"Outer before (1, 2)", "Inner before (1, 2)", "Watch before (1, 2)",
                          "Outer after (1, 1)", "Inner after (1, 1)", "Watch after (1, 1)",
                          "Outer before (1, 1, 2, 2)", "Outer after (1, 1, 2, 2)",
                          "Outer before (1, 1, 2, 2)", "Outer after (1, 1, 2, 2)"}));
  EXPECT_EQ(link.b.array().to_vector<float>(), Values{0});
}

TEST(TimerHookOfLinks, TimesTheCallsOfLinks) {
  for (Device device : testing::test_devices()) {
    L::Linear link(2, 3), own(3, 1);
    L::EmbedID embed(4, 2);
    link.to(device), own.to(device), embed.to(device);
    Array ids = xp::zeros({5}, int32, device);
    link_hooks::TimerHook timer, of_link;
    own.add_hook(of_link);
    {
      LinkHookScope scope(timer);
      cuda::ForbidSync strict;
      (void)own(link(embed(ids)));
    }
    {
      LinkHookScope scope(timer);
      EXPECT_THROW((void)link(xp::ones({5, 7}, float32, device)), ShapeError);
    }
    (void)own(xp::ones({1, 3}, float32, device));
    auto summary = timer.summary();
    EXPECT_EQ(summary["Linear"].occurrence, 2);
    EXPECT_EQ(summary["EmbedID"].occurrence, 1);
    EXPECT_EQ(summary.size(), 2u);
    EXPECT_GT(summary["EmbedID"].elapsed_time, 0);
    EXPECT_NEAR(timer.total_time(),
                summary["Linear"].elapsed_time + summary["EmbedID"].elapsed_time, 1e-9);
    // What a link has is a handle to the hook that was added, also in a copy of the link.
    L::Linear copied(own);
    (void)copied(xp::ones({1, 3}, float32, device));
    EXPECT_EQ(of_link.call_history().size(), 3u);
    std::ostringstream report;
    of_link.print_report("auto", report);
    EXPECT_TRUE(report.str().starts_with("LinkName  ElapsedTime  Occurrence\nLinear "))
        << report.str();
  }
}

TEST(LinkHook, WhatDoesNotFitIsTold) {
  L::Linear link(2, 1);
  link.add_hook(WeightStandardization());
  EXPECT_THROW(link.add_hook(WeightStandardization()), ValueError);
  EXPECT_NO_THROW(link.add_hook(WeightStandardization({.name = "again"})));
  EXPECT_THROW(link.delete_hook("no"), ValueError);
  EXPECT_THROW(link.add_hook(SpectralNormalization({.weight_name = "V"})), ValueError);
  EXPECT_THROW(SpectralNormalization({.n_power_iteration = 0}), ValueError);
  EXPECT_THROW(L::Linear(2, 0).add_hook(SpectralNormalization()), ValueError);
  EXPECT_EQ(link.hook_names().size(), 2u);
}

TEST(ParameterLink, GivesItsParameter) {
  for (Device device : testing::test_devices()) {
    L::Parameter link(xp::arange(3, float32, device));
    EXPECT_EQ(link.namedparams()[0].path, "/W");
    EXPECT_EQ(link.W.device(), device);
    F::sum(link() * 2.f).backward();
    EXPECT_EQ(link.W.grad().to_vector<float>(), (Values{2, 2, 2}));
    L::Parameter copied(link);
    copied.W.array().fill(7);
    EXPECT_EQ(link().array().to_vector<float>(), (Values{0, 1, 2}));
  }
}

}  // namespace
}  // namespace rensa
