// Parameters: shapes that come late, devices, and the modes of copying.
#include "rensa/autograd/parameter.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;
Values values(const Array& a) { return a.to_vector<float>(); }

TEST(Parameter, TakesItsShapeLate) {
  Parameter p(Initializer(2));
  EXPECT_TRUE(p.defined());
  EXPECT_FALSE(p.is_initialized());
  EXPECT_THROW(p.array(), ValueError);
  EXPECT_THROW(F::relu(p), ValueError);
  p.cleargrad();  // nothing to clear, and no error
  p.initialize({2, 3});
  EXPECT_EQ(p.shape(), (Shape{2, 3}));
  EXPECT_EQ(values(p.array()), Values(6, 2));
  EXPECT_FALSE(p.grad().defined());
  p.initialize({7});  // no-op
  EXPECT_EQ(p.shape(), (Shape{2, 3}));
  F::sum(F::square(p)).backward();
  EXPECT_EQ(values(p.grad()), Values(6, 4));
}

TEST(Parameter, FromValues) {
  Array source = xp::array({1.f, 2.f});
  Parameter p{Initializer(source)};
  EXPECT_TRUE(p.is_initialized());
  source.fill(9);
  EXPECT_EQ(values(p.array()), (Values{1, 2}));
  EXPECT_THROW(Parameter(Initializer(source), {3}), ShapeError);
  Parameter integers{Initializer(xp::array({1, 2}))};
  EXPECT_EQ(integers.dtype(), float32);
  Parameter doubles{Initializer(xp::array({1.0, 2.0}))};
  EXPECT_EQ(doubles.dtype(), float64);
}

TEST(Parameter, NeedsAnInitializer) { EXPECT_THROW(Parameter{Initializer()}, ValueError); }

TEST(Parameter, DtypeFollowsTheConfiguration) {
  UsingConfig half(&Config::dtype, float16);
  Parameter p(Initializer(1), {2});
  EXPECT_EQ(p.dtype(), float16);
  EXPECT_EQ(Parameter(Initializer(1).precise(), {2}).dtype(), float16);
}

TEST(Parameter, DtypeIsTheInitializersWhereThatHasOne) {
  using initializers::Normal;
  EXPECT_EQ(Parameter(Normal{.scale = 1, .dtype = float64}, {2}).dtype(), float64);
  EXPECT_EQ(Parameter(Initializer(Normal{}).of(bfloat16), {2}).dtype(), bfloat16);
  EXPECT_EQ(Parameter(Initializer(xp::array({1.0})).of(float32), {1}).dtype(), float32);
}

TEST(Parameter, DtypesOfMixedOnes) {
  for (auto [mixed, narrow] : {std::pair{mixed16, float16}, {mixed_bf16, bfloat16}}) {
    UsingConfig in(&Config::dtype, mixed);
    EXPECT_EQ(get_dtype(), narrow);
    EXPECT_EQ(get_dtype(std::nullopt, float32), float32);
    EXPECT_EQ(get_dtype(float64, float32), float64);
    EXPECT_EQ(Parameter(Initializer(1), {2}).dtype(), narrow);
    EXPECT_EQ(Parameter(Initializer(1).precise(), {2}).dtype(), float32);
    EXPECT_EQ(Parameter(Initializer(1).precise().of(float64), {2}).dtype(), float64);
  }
  EXPECT_EQ(get_dtype(std::nullopt, float64), float32);
  EXPECT_FALSE(mixed16 == DefaultDtype(float16));
  EXPECT_TRUE(mixed16 == float16);
}

TEST(Parameter, CopyModes) {
  int fills = 0;
  Parameter p(Initializer([&fills](const Array& out) { out.fill(++fills); }), {2});
  p.set_grad(xp::ones({2}));
  Parameter deep(p);
  p.array().fill(50);
  EXPECT_EQ(values(deep.array()), (Values{1, 1}));
  EXPECT_FALSE(deep.grad().defined());
  {
    CopyModeScope scope(CopyMode::share);
    Parameter shared(p);
    EXPECT_EQ(shared.array().storage(), p.array().storage());
    EXPECT_NE(shared.node(), p.node());
    EXPECT_FALSE(shared.grad().defined());
  }
  {
    CopyModeScope scope(CopyMode::init);
    Parameter fresh(p);
    EXPECT_EQ(values(fresh.array()), (Values{2, 2}));
  }
  Parameter late(Initializer(3));
  Parameter late_copy(late);
  late.initialize({1});
  EXPECT_FALSE(late_copy.is_initialized());
  late_copy.initialize({4});
  EXPECT_EQ(late.shape(), (Shape{1}));
  Parameter none, none_copy(none);
  EXPECT_FALSE(none_copy.defined());
}

TEST(Persistent, CopyModes) {
  Persistent p(xp::array({1.f, 2.f}));
  Persistent deep(p);
  EXPECT_NE(deep.storage(), p.storage());
  CopyModeScope scope(CopyMode::share);
  Persistent shared(p);
  EXPECT_EQ(shared.storage(), p.storage());
}

TEST(Parameter, MovingKeepsTheHandle) {
  Parameter p(Initializer(1), {2});
  ParameterRef ref = p.ref();
  Parameter moved = std::move(p);
  EXPECT_EQ(ref.body(), moved.body());
}

TEST(Parameter, ToDevice) {
  for (Device device : testing::test_devices()) {
    Parameter late(Initializer(1)), p(Initializer(1), {2});
    p.set_grad(xp::ones({2}));
    late.to_device(device);
    p.to_device(device);
    EXPECT_EQ(late.device(), device);
    late.initialize({3});
    EXPECT_EQ(late.array().device(), device);
    EXPECT_EQ(p.array().device(), device);
    EXPECT_EQ(p.grad().device(), device);
    F::sum(p * late[0]).backward();
    EXPECT_EQ(values(p.grad()), (Values{2, 2}));
  }
}

TEST(Parameter, WithoutAnInitializerIsNoParameter) {
  Parameter p;
  EXPECT_FALSE(p.is_initialized());
  const std::pair<const char*, std::function<void()>> uses[] = {
      {"initialize", [&] { p.initialize({2}); }},
      {"to", [&] { p.to(cpu()); }},
      {"device", [&] { (void)p.device(); }},
      {"update_enabled", [&] { (void)p.update_enabled(); }},
      {"set_update_enabled", [&] { p.set_update_enabled(false); }},
      {"update_rule", [&] { (void)p.update_rule(); }},
      {"has_update_rule", [&] { (void)p.has_update_rule(); }},
      {"set_update_rule", [&] { p.set_update_rule(nullptr); }},
  };
  for (const auto& [name, use] : uses) {
    EXPECT_EQ(testing::thrown<ValueError>(use).rfind(std::string(name) + ": ", 0), 0u) << name;
  }
}

TEST(Parameter, HasNoUpdateRuleBeforeSetup) {
  L::Linear model(3, 2);
  EXPECT_FALSE(model.b.has_update_rule());
  std::string text = testing::thrown<ValueError>([&] { (void)model.b.update_rule(); });
  EXPECT_NE(text.find("has none yet"), std::string::npos) << text;
  EXPECT_NE(text.find("setup"), std::string::npos) << text;
  optimizers::SGD optimizer;
  optimizer.setup(model);
  EXPECT_TRUE(model.b.has_update_rule());
  EXPECT_EQ(model.b.update_rule()->t, 0);
}

TEST(Parameter, CopydataMakesTheArray) {
  Parameter to(Initializer(0)), from(Initializer(4), {2});
  to.copydata(from);
  EXPECT_EQ(values(to.array()), (Values{4, 4}));
  EXPECT_NE(to.array().storage(), from.array().storage());
}

// Under the thread sanitizer: naming writes nothing that the other thread reads.
TEST(Parameter, SeveralThreadsMayNameThoseOfOneModel) {
  const L::Linear model(3, 2);
  std::vector<NamedParameter> here, there;
  std::thread other([&] { there = model.namedparams(); });
  here = model.namedparams();
  other.join();
  ASSERT_EQ(here.size(), 2u);
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(here[0].path, there[0].path);
}

}  // namespace
}  // namespace rensa
