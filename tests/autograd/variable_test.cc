// Variables, function nodes and backward: what flows where, and what lives how long.
#include "rensa/autograd/variable.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rensa/array/cuda_names.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/parameter.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;

Array floats(const Values& values) { return xp::array(values); }
Values values(const Array& a) { return a.to_vector<float>(); }

/// y = 2 x, counting its backward calls and the targets asked for.
class Twice final : public FunctionNode {
 public:
  explicit Twice(int* calls) : FunctionNode("twice"), calls_(calls) {}
  Arrays forward(const Arrays& x) override { return {x[0] * 2}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    ++*calls_;
    return {gy[0] * 2};
  }

 private:
  int* calls_;
};

/// (a, b) -> (a + b, a * b).
class SumAndProduct final : public FunctionNode {
 public:
  SumAndProduct() : FunctionNode("sum_and_product") {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({1, 0});
    return {x[0] + x[1], x[0] * x[1]};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs(), gx;  // b, a
    for (int i : targets) {
      Variable g = gy[0];
      if (gy[1].defined()) {
        Variable product = gy[1] * kept[static_cast<std::size_t>(i)];
        g = g.defined() ? g + product : product;
      }
      gx.push_back(g);
    }
    return gx;
  }
};

TEST(Variable, IsAHandle) {
  Variable a(floats({1, 2}));
  Variable b = a;
  a.set_grad(floats({3, 4}));
  EXPECT_EQ(values(b.grad()), (Values{3, 4}));
  b.cleargrad();
  EXPECT_FALSE(a.grad().defined());
  EXPECT_TRUE(a.requires_grad());
  EXPECT_EQ(a.shape(), (Shape{2}));
  std::ostringstream text;
  text << a;
  EXPECT_EQ(text.str().substr(0, 9), "variable(");
}

TEST(Variable, PrintsItsNameItsValuesAndItsCreator) {
  Variable a(floats({1, 2}));
  EXPECT_EQ(a.str(), "variable([1., 2.])");
  EXPECT_EQ(F::square(a).str(), "variable([1., 4.], creator=square)");
  a.body()->name = "W";
  EXPECT_EQ(a.str(), "variable W([1., 2.])");
  EXPECT_EQ(Variable().str(), "variable(undefined)");
  EXPECT_EQ(Parameter(Initializer(0)).str(), "variable(not initialized)");
  EXPECT_EQ(F::exp(Variable(xp::zeros({2, 2}))).str(),
            "variable([[1., 1.],\n          [1., 1.]], creator=exp)");
  std::ostringstream text;
  text << a;
  EXPECT_EQ(text.str(), a.str());
}

TEST(Variable, ComparisonsGiveArraysOfBool) {
  for (Device device : testing::test_devices()) {
    Variable a(xp::array({1.f, 2.f, 3.f}, device)), b(xp::array({3.f, 2.f, 1.f}, device));
    using Bools = std::vector<bool>;
    auto bools = [](const Array& x) { return x.to_vector<bool>(); };
    EXPECT_EQ(bools(a == b), (Bools{false, true, false}));
    EXPECT_EQ(bools(a != b), (Bools{true, false, true}));
    EXPECT_EQ(bools(a < b), (Bools{true, false, false}));
    EXPECT_EQ(bools(a <= b), (Bools{true, true, false}));
    EXPECT_EQ(bools(a > b), (Bools{false, false, true}));
    EXPECT_EQ(bools(a >= b), (Bools{false, true, true}));
    EXPECT_EQ(bools(a > 1.5), (Bools{false, true, true}));
    EXPECT_EQ(bools(2 == a), (Bools{false, true, false}));
    EXPECT_EQ(bools(a == b.array()), (Bools{false, true, false}));
    EXPECT_EQ(bools(b.array() < a), (Bools{false, false, true}));
    // A mask for F::where, with gradients on both sides.
    Variable chosen = F::sum(F::where(a > b, a, -1 * b));
    chosen.backward();
    EXPECT_EQ(values(a.grad()), (Values{0, 0, 1}));
    EXPECT_EQ(values(b.grad()), (Values{-1, -1, 0}));
  }
}

template <class T>
concept AddsInPlace = requires(T& a) {
  a += 1;
};

TEST(Variable, InPlaceOperatorsGoOnWithAnotherVariable) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::array({1.f, 2.f}, device)), y = x, old = x;
    y += x;                               // 2 x
    y *= x;                               // 2 x^2
    y -= 1;                               // 2 x^2 - 1
    y /= 2;                               // x^2 - 1/2
    y *= xp::array({1.f, 10.f}, device);  // of an array
    EXPECT_EQ(values(x.array()), (Values{1, 2}));
    EXPECT_EQ(old.body(), x.body());
    EXPECT_EQ(values(y.array()), (Values{0.5, 35}));
    F::sum(y).backward();
    EXPECT_EQ(values(x.grad()), (Values{2, 40}));
    EXPECT_EQ((+x).body(), x.body());
  }
  static_assert(AddsInPlace<Variable> && !AddsInPlace<Parameter> && !AddsInPlace<ParameterRef>);
}

TEST(Variable, ShapesAsOfArrays) {
  Variable x(xp::arange(6, float32).reshape({1, 2, 3}));
  EXPECT_EQ(x.squeeze().shape(), (Shape{2, 3}));
  EXPECT_EQ(x.squeeze(0).shape(), (Shape{2, 3}));
  EXPECT_EQ(x.expand_dims(-1).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(x.ravel().shape(), (Shape{6}));
  EXPECT_EQ(x.flatten().shape(), (Shape{6}));
  EXPECT_EQ(x.swapaxes(0, -1).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(x.broadcast_to({4, 2, 3}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(x.astype(float64).dtype(), float64);
  Array weights = xp::arange(6, float64).reshape({3, 2, 1});
  F::sum(x.astype(float64).swapaxes(0, 2) * weights).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 2, 4, 1, 3, 5}));
}

TEST(Variable, MovesByGivingAnother) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({2}));
    Variable there = x.to(device);
    EXPECT_EQ(there.device(), device);
    EXPECT_EQ(there.body() == x.body(), device.is_cpu());
    F::sum(there * 3).backward();
    EXPECT_EQ(values(x.grad()), (Values{3, 3}));
    EXPECT_EQ(x.grad().device(), cpu());
    EXPECT_EQ(there.to_cpu().device(), cpu());
  }
}

TEST(Variable, UndefinedThrows) {
  Variable v;
  EXPECT_FALSE(v.defined());
  EXPECT_THROW(v.array(), ValueError);
  EXPECT_THROW(v.grad(), ValueError);
  EXPECT_THROW(v.backward(), ValueError);
  EXPECT_THROW(F::relu(v), ValueError);
  EXPECT_THROW(Variable{Array()}, ValueError);
}

TEST(Variable, IntegersRequireNoGradient) {
  Variable t(xp::array({1, 2}));
  EXPECT_FALSE(t.requires_grad());
  Variable y = t + 1;
  EXPECT_EQ(y.creator(), nullptr);
}

TEST(Variable, SetGradChecks) {
  Variable a(floats({1, 2}));
  EXPECT_THROW(a.set_grad(floats({1, 2, 3})), ShapeError);
  EXPECT_THROW(a.set_grad(xp::ones({2}, float64)), DtypeError);
  a.set_grad(floats({1, 2}));
  a.set_grad(Array());
  EXPECT_FALSE(a.grad().defined());
}

TEST(Variable, SetGradChecksTheDevice) {
  RENSA_NEEDS_GPUS(1);
  Variable a(floats({1, 2}));
  EXPECT_THROW(a.set_grad(floats({1, 2}).to(gpu(0))), DeviceError);
}

TEST(Backward, StartsFromOneAndAccumulates) {
  Variable x(floats({3}));
  Variable y = x * x;
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{6}));
  Variable z = x * 10;
  z.backward();
  EXPECT_EQ(values(x.grad()), (Values{16}));
  EXPECT_FALSE(z.grad().defined());
}

TEST(Backward, SeveralElementsNeedAGradient) {
  Variable x(floats({1, 2}));
  Variable y = x * 3;
  EXPECT_THROW(y.backward(), ValueError);
  y.set_grad(floats({1, 10}));
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{3, 30}));
  EXPECT_FALSE(y.grad().defined());
}

TEST(Backward, LossScaleMultipliesTheSeed) {
  Variable x(floats({3}));
  (x * 2).backward({.loss_scale = 8});
  EXPECT_EQ(values(x.grad()), (Values{16}));
}

TEST(Backward, IntermediateGradientsAreKeptOnRequest) {
  Variable x(floats({3}));
  Variable h = x * 2, y = h * h;
  y.backward();
  EXPECT_FALSE(h.grad().defined());
  x.cleargrad();
  y.backward({.retain_grad = true});
  EXPECT_EQ(values(h.grad()), (Values{12}));
  EXPECT_EQ(values(y.grad()), (Values{1}));
  EXPECT_EQ(values(x.grad()), (Values{24}));
}

TEST(Backward, FollowsRanks) {
  // x feeds a short and a long path; Twice must run once, with the sum of both.
  int calls = 0;
  Variable x(floats({1}));
  Variable h = apply<Twice>({x}, &calls)[0];
  Variable y = h * 3 + ((h + 1) * 2 + 1) * 5;
  y.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values(x.grad()), (Values{26}));
}

TEST(Backward, SeveralOutputs) {
  Variable a(floats({2})), b(floats({5}));
  Variables y = apply<SumAndProduct>({a, b});
  (y[0] * 10 + y[1]).backward();
  EXPECT_EQ(values(a.grad()), (Values{15}));
  EXPECT_EQ(values(b.grad()), (Values{12}));
  a.cleargrad();
  b.cleargrad();
  y[1].backward();  // the first output is left out
  EXPECT_EQ(values(a.grad()), (Values{5}));
  a.cleargrad();
  b.cleargrad();
  y[0].set_grad(floats({1}));
  backward(y);  // both at once
  EXPECT_EQ(values(a.grad()), (Values{6}));
}

TEST(Backward, NobodysLeafCostsNothing) {
  int calls = 0;
  Variable w(floats({2}));
  Variable loss = apply<Twice>({Variable(floats({3}))}, &calls)[0] * w;
  loss.backward();
  EXPECT_EQ(values(w.grad()), (Values{6}));
  EXPECT_EQ(calls, 0);
  Variable x(floats({3}));
  loss = apply<Twice>({x}, &calls)[0] * w;
  loss.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values(x.grad()), (Values{4}));
}

TEST(Backward, ConstantsGetNoGradient) {
  Variable x(floats({3})), c = constant(floats({4}));
  (x * c).backward();
  EXPECT_EQ(values(x.grad()), (Values{4}));
  EXPECT_FALSE(c.grad().defined());
  EXPECT_FALSE((c * c).requires_grad());
}

TEST(Backward, LeafGradientsShareNoMemory) {
  Variable a(floats({1, 2})), b(floats({3, 4}));
  F::sum(a + b).backward();
  ASSERT_TRUE(a.grad().is_contiguous());
  a.grad() *= 5;
  EXPECT_EQ(values(a.grad()), (Values{5, 5}));
  EXPECT_EQ(values(b.grad()), (Values{1, 1}));
  Variable c(floats({1, 2})), y = c + 0;
  Array seed = floats({1, 2});
  y.set_grad(seed);
  y.backward();
  seed *= 100;
  EXPECT_EQ(values(c.grad()), (Values{1, 2}));
}

TEST(Backward, RejectsGradientsThatDoNotFit) {
  class Bad final : public FunctionNode {
   public:
    explicit Bad(Array g) : FunctionNode("bad"), g_(std::move(g)) {}
    Arrays forward(const Arrays& x) override { return {x[0].sum()}; }
    Variables backward(const Indexes&, const Variables&) override { return {constant(g_)}; }

   private:
    Array g_;
  };
  Variable x(floats({1, 2}));
  EXPECT_THROW(apply<Bad>({x}, floats({1}))[0].backward(), ShapeError);
  EXPECT_THROW(apply<Bad>({x}, xp::ones({2}, float64))[0].backward(), DtypeError);
  try {
    apply<Bad>({x}, floats({1}))[0].backward();
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("bad"), std::string::npos) << e.what();
  }
}

TEST(Backward, NoBackpropModeLinksNothing) {
  Variable x(floats({3}));
  {
    no_backprop_mode scope;
    Variable y = x * 2;
    EXPECT_EQ(y.creator(), nullptr);
    EXPECT_THROW(y.backward(), ValueError);
    EXPECT_FALSE(x.grad().defined());
    force_backprop_mode inner;
    EXPECT_NE((x * 2).creator(), nullptr);
  }
  EXPECT_NE((x * 2).creator(), nullptr);
}

TEST(Backward, NothingToGoBackTo) {
  Parameter w(Initializer(1), {});
  auto text = [](const Variable& y) { return testing::thrown<ValueError>([&] { y.backward(); }); };
  auto holds = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  holds(text(Variable(xp::array({3}))), "a dtype without gradients");
  holds(text(constant(xp::ones({})) * 2), "no gradient");
  holds(text(Variable(xp::ones({}))), "no function gave");
  Variable unlinked;
  {
    no_backprop_mode off;
    unlinked = w * 2;
  }
  holds(text(unlinked), "no_backprop_mode");
  EXPECT_FALSE(w.grad().defined());
  EXPECT_THROW(backward({}), ValueError);
  // One of several that has no graph is left aside.
  backward({w * 3, constant(xp::ones({}))});
  EXPECT_EQ(w.grad().item<float>(), 3);
}

TEST(Backward, SecondDerivative) {
  Variable x(floats({3}));
  Variable y = x * x * x;
  y.backward({.enable_double_backprop = true});
  Variable gx = x.grad_var();
  EXPECT_EQ(values(gx.array()), (Values{27}));
  x.cleargrad();
  gx.backward();
  EXPECT_EQ(values(x.grad()), (Values{18}));
}

TEST(Backward, ThirdDerivativeThroughForgottenOutputs) {
  // exp keeps its output, which nobody else holds.
  Variable x(floats({0.5f}));
  Variable y = F::exp(x * 2) + 0;
  for (int i = 0; i < 3; ++i) {
    y = grad({y}, {x}, {}, true)[0];
  }
  EXPECT_NEAR(y.item<float>(), 8 * std::exp(1.0), 1e-4);
}

TEST(Variable, ItsDeviceIsThatOfItsArray) {
  for (Device device : testing::test_devices()) {
    Variable host(xp::ones({2}, float32, cpu())), there(xp::ones({2}, float32, device));
    EXPECT_EQ(cuda::get_device_from_array(host, there).is_dummy(), device.is_cpu());
    EXPECT_EQ(cuda::get_device_from_array(there, host.array()), cuda::first_gpu({device}));
    DeviceScope on(cuda::get_device_from_array(there));
    EXPECT_EQ(xp::empty({1}).device(), device);
  }
}

TEST(Backward, DebugModeFindsNan) {
  UsingConfig<bool> debug(&Config::debug, true);
  Variable x(floats({-1}));
  std::string text = testing::thrown<ValueError>([&] { F::log(x * 2); });
  EXPECT_EQ(text.rfind("log: NaN in the forward result of this function: ", 0), 0U) << text;
  EXPECT_NE(text.find("; on the way leaf -> multiply -> log"), text.npos) << text;

  Variable zero(floats({0}));
  zero.body()->name = "z";
  Variable y = F::sqrt(zero) * 0;  // 0 / 0 on the way back
  text = testing::thrown<ValueError>([&] { y.backward(); });
  EXPECT_EQ(text.rfind("sqrt: NaN in the gradient of this function: ", 0), 0U) << text;
  EXPECT_NE(text.find("; on the way z -> sqrt"), text.npos) << text;

  Variable long_way = x;
  for (int i = 0; i < 9; ++i) long_way = -long_way;
  text = testing::thrown<ValueError>([&] { F::sqrt(long_way * long_way * -1); });
  EXPECT_NE(text.find("on the way ... -> negative"), text.npos) << text;
}

// Masks are made of them.
TEST(Backward, DebugModeLetsInfinitiesPass) {
  UsingConfig<bool> debug(&Config::debug, true);
  Variable x(floats({0, 1}));
  EXPECT_EQ(values(F::log(x).array()), (Values{-INFINITY, 0}));
}

TEST(Backward, NodeIsAppliedOnce) {
  int calls = 0;
  auto node = std::make_shared<Twice>(&calls);
  Variable x(floats({1}));
  node->apply({x});
  EXPECT_THROW(node->apply({x}), ValueError);
}

TEST(Grad, LeavesGradientsAlone) {
  Variable x(floats({2})), w(floats({5})), other(floats({1}));
  Variable h = x * w, y = h * h;
  Variables g = grad({y}, {x, h, other});
  EXPECT_EQ(values(g[0].array()), (Values{100}));
  EXPECT_EQ(values(g[1].array()), (Values{20}));
  EXPECT_FALSE(g[2].defined());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  Variables scaled = grad({y}, {x}, {constant(floats({3}))});
  EXPECT_EQ(values(scaled[0].array()), (Values{300}));
  EXPECT_THROW(grad({y}, {x}, {constant(floats({1, 2}))}), ShapeError);
}

TEST(Grad, VisitsOnlyThePaths) {
  int calls = 0;
  Variable x(floats({2})), z(floats({3}));
  Variable y = x * apply<Twice>({z}, &calls)[0];
  EXPECT_EQ(values(grad({y}, {x})[0].array()), (Values{6}));
  EXPECT_EQ(calls, 0);
}

TEST(Unchain, CutsTheGraph) {
  Variable x(floats({2}));
  Variable h = x * 3, y = h * h;
  h.unchain();
  y.backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(values(h.grad()), (Values{12}));
}

TEST(Unchain, BackwardCutsAllBelow) {
  Variable x(floats({2}));
  Variable h = x * 3, y = h * h;
  y.unchain_backward();
  EXPECT_EQ(y.creator(), nullptr);
  EXPECT_EQ(h.creator(), nullptr);
  EXPECT_THROW(y.backward({}), ValueError);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Lifetime, GraphDiesWithItsOutputs) {
  Variable x(xp::ones({4}));
  std::weak_ptr<FunctionNode> function;
  StoragePtr memory;
  {
    Variable y = F::exp(x);
    function = y.creator();
    memory = y.array().storage();
    EXPECT_FALSE(function.expired());
    Variable z = y * 2;
    y = {};
    EXPECT_FALSE(function.expired());  // z's graph holds it
  }
  EXPECT_TRUE(function.expired());
  EXPECT_EQ(memory->use_count(), 1);
}

TEST(Lifetime, KeepsOnlyWhatWasAskedFor) {
  Variable x(xp::ones({4}));
  StoragePtr sum_memory, product_memory;
  Variable y;
  {
    Variable a = x + 1, b = a * 2;  // neither keeps its input
    sum_memory = a.array().storage();
    product_memory = b.array().storage();
    y = b * b;  // keeps b
  }
  EXPECT_EQ(sum_memory->use_count(), 1);
  EXPECT_GT(product_memory->use_count(), 1);
  y = {};
  EXPECT_EQ(product_memory->use_count(), 1);
}

TEST(Lifetime, BackwardFreesIntermediateGradients) {
  Variable x(xp::ones({4}));
  Variable y = F::sum(F::exp(F::exp(x)));
  y.backward();
  EXPECT_EQ(x.grad().storage()->use_count(), 2);  // x's, and the one at hand
}

TEST(Lifetime, DoubleBackpropMakesNoCycle) {
  StoragePtr memory;
  {
    Variable x(xp::ones({4}));
    Variable y = F::sum(F::exp(x) * x);
    y.backward({.enable_double_backprop = true});
    memory = x.array().storage();
    EXPECT_NE(x.grad_var().creator(), nullptr);
  }
  EXPECT_EQ(memory->use_count(), 1);
}

TEST(Lifetime, LongChainsDoNotRecurse) {
  constexpr int kLength = 100000;
  Variable x(floats({1}));
  Variable y = x;
  for (int i = 0; i < kLength; ++i) y = y + 1;
  EXPECT_EQ(y.rank(), kLength);
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{1}));
  Variable z = y;
  y = {};
  z.unchain_backward();
  z = {};
  for (int i = 0; i < kLength; ++i) x = x + 1;
  x = {};  // taken down at once
}

TEST(Device, RunsOnTheInputsDevice) {
  for (Device device : testing::test_devices()) {
    class MakesAnArray final : public FunctionNode {
     public:
      MakesAnArray() : FunctionNode("makes_an_array") {}
      Arrays forward(const Arrays& x) override { return {x[0] + xp::ones({2})}; }
      Variables backward(const Indexes&, const Variables& gy) override {
        return {gy[0] * constant(xp::ones({2}))};
      }
    };
    Variable x(xp::ones({2}, float32, device));
    Variable y = F::sum(apply<MakesAnArray>({x})[0]);
    y.backward();
    EXPECT_EQ(x.grad().device(), device);
    EXPECT_EQ(y.item<float>(), 4);
  }
}

TEST(Variable, AddgradAndCopydata) {
  Variable a(floats({1, 2})), b(floats({3, 4}));
  a.addgrad(b);
  EXPECT_FALSE(a.grad().defined());
  b.set_grad(floats({5, 6}));
  a.addgrad(b);
  EXPECT_EQ(values(a.grad()), (Values{5, 6}));
  EXPECT_NE(a.grad().storage(), b.grad().storage());
  a.addgrad(b);
  EXPECT_EQ(values(a.grad()), (Values{10, 12}));
  StoragePtr memory = a.array().storage();
  a.copydata(b);
  EXPECT_EQ(values(a.array()), (Values{3, 4}));
  EXPECT_EQ(a.array().storage(), memory);
  EXPECT_THROW(a.copydata(Variable(floats({1}))), ShapeError);
}

}  // namespace
}  // namespace rensa
