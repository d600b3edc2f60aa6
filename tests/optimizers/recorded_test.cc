// Optimizers and hooks against 50 updates by Chainer's (tests/answers/make_optimizer_cases.py).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "rensa/array/io.h"
#include "rensa/links/link.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using namespace optimizers;
using namespace optimizer_hooks;

struct Two : Chain<Two> {
  Parameter a, b;
  Two(Dtype dtype, Device device)
      : a(Initializer(xp::array({1.0, -2.0, 0.5}).astype(dtype))),
        b(Initializer(xp::full({2, 2}, 3.0, dtype))) {
    to_device(device);
  }
  void members(Visitor& v) override { v("a", a), v("b", b); }
};

struct Row {
  const char* name;
  std::function<Optimizer()> make;
};

template <class... Hooks> std::function<Optimizer()> hooked(Hooks... hooks) {
  return [=] {
    Optimizer sgd = SGD(0.1);
    (sgd.add_hook(hooks), ...);
    return sgd;
  };
}

/// The hooks of one parameter's kind that Chainer has, and the optimizers with Chainer's defaults.
std::vector<Row> rows() {
  return {
      {"SGD", [] { return SGD(); }},
      {"MomentumSGD", [] { return MomentumSGD(); }},
      {"CorrectedMomentumSGD", [] { return CorrectedMomentumSGD(); }},
      {"NesterovAG", [] { return NesterovAG(); }},
      {"Adam", [] { return Adam(); }},
      {"AdamW", [] { return AdamW(); }},
      {"AMSGrad", [] { return AMSGrad(); }},
      {"AdaBound", [] { return AdaBound(); }},
      {"AMSBound", [] { return AMSBound(); }},
      {"AdaGrad", [] { return AdaGrad(); }},
      {"AdaDelta", [] { return AdaDelta(); }},
      {"RMSprop", [] { return RMSprop(); }},
      {"RMSpropGraves", [] { return RMSpropGraves(); }},
      {"SMORMS3", [] { return SMORMS3(); }},
      {"MSVAG", [] { return MSVAG(); }},
      {"AdamW eta=0.5 weight_decay_rate=0.02",
       [] { return AdamW({.alpha = 0.01, .eta = 0.5, .weight_decay_rate = 0.02}); }},
      {"Adam amsgrad adabound",
       [] {
         return Adam(
             {.alpha = 0.05, .amsgrad = true, .adabound = true, .final_lr = 0.02, .gamma = 0.5});
       }},
      {"RMSprop eps_inside_sqrt",
       [] { return RMSprop({.alpha = 0.9, .eps = 0.01, .eps_inside_sqrt = true}); }},
      {"MSVAG weight_decay_rate=0.02",
       [] { return MSVAG({.beta = 0.8, .eta = 0.5, .weight_decay_rate = 0.02}); }},
      {"WeightDecay", hooked(WeightDecay(0.05))},
      {"Lasso", hooked(Lasso(0.05))},
      {"GradientClipping", hooked(GradientClipping(0.8))},
      {"GradientHardClipping", hooked(GradientHardClipping(-0.4, 0.6))},
      {"GradientLARS", hooked(GradientLARS(0.01, 0.05))},
      {"GradientLARS of small parameters", hooked(GradientLARS(4, 0.05))},
      {"WeightDecay and GradientClipping", hooked(WeightDecay(0.05), GradientClipping(0.8))},
  };
}

/// The gradient of each element at update `t` (1 is the first), as the script has it.
Array gradient(const ParameterRef& p, int t) {
  std::vector<double> g(static_cast<std::size_t>(p.size()));
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = std::sin(static_cast<double>(i) + 0.37 * t) + 0.1 * static_cast<double>(i);
  }
  return xp::array(g).reshape(p.shape()).astype(p.dtype()).to(p.device());
}

using Values = std::vector<double>;

Values joined(const Array& a, const Array& b) {
  Values values = a.to_vector<double>(), more = b.to_vector<double>();
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << " element " << i;
  }
}

class RecordedUpdates : public ::testing::Test {
 protected:
  Values recorded(const std::string& key) const { return file_[key].to_vector<double>(); }
  std::size_t count_of(const std::string& head) const {
    std::size_t n = 0;
    for (const std::string& key : file_.files()) n += key.starts_with(head);
    return n;
  }
  xp::NpzFile file_ = xp::load_npz(testing::data_file("optimizers.npz"));
};

TEST_F(RecordedUpdates, AreChainers) {
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : {std::pair{float32, 3e-6}, {float16, 2e-3}}) {
      for (const Row& row : rows()) {
        SCOPED_TRACE(std::string(row.name) + " " + dtype_name(dtype).data() + " on " +
                     device.str());
        Two model(dtype, device);
        Optimizer optimizer = row.make();
        if (dtype == float16) optimizer.use_fp32_update();
        optimizer.setup(model);
        Values seen;
        for (int t = 1; t <= 50; ++t) {
          for (const ParameterRef& p : model.params()) p.set_grad(gradient(p, t));
          optimizer.update();
          if (t != 1 && t != 10 && t != 50) continue;
          Values now = joined(model.a.array(), model.b.array());
          seen.insert(seen.end(), now.begin(), now.end());
        }
        std::string head = std::string(row.name) + "|";
        expect_near(seen, recorded(head + dtype_name(dtype).data()), tolerance, "parameters");
        if (dtype == float16) continue;
        std::vector<UpdateState> states = optimizer.state()->algorithm->states();
        for (std::size_t i = 0; i < states.size(); ++i) {
          expect_near(joined(model.a.update_rule()->states[i], model.b.update_rule()->states[i]),
                      recorded(head + "state/" + states[i].name), 1e-5, states[i].name);
        }
        EXPECT_EQ(count_of(head + "state/"), states.size());
      }
    }
  }
}

TEST_F(RecordedUpdates, HaveARowEach) {
  std::set<std::string> recorded, known;
  for (const std::string& key : file_.files()) recorded.insert(key.substr(0, key.find('|')));
  for (const Row& row : rows()) known.insert(row.name);
  EXPECT_EQ(recorded, known);
}

TEST_F(RecordedUpdates, DefaultsAreChainers) {
  for (const Row& row : rows()) {
    std::string head = std::string(row.name) + "|hyperparam/";
    for (const std::string& key : file_.files()) {
      if (!key.starts_with(head)) continue;
      std::string name = key.substr(head.size());
      EXPECT_EQ(row.make().attribute(name), recorded(key)[0]) << row.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace rensa
