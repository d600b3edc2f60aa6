// Activations: what tables of values do not show.
#include "rensa/functions/activation.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/reduction_functions.h"
#include "rensa/graph/capture.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Activation, RreluDrawsSlopesInTrainingAlone) {
  for (Device device : testing::test_devices()) {
    Array x = xp::full({1000}, -1.f, float32, device), r;
    Variable y = F::rrelu(x, 0.25, 0.5, {.return_r = &r});
    EXPECT_TRUE(xp::array_equal(y.array(), -r));
    EXPECT_GE(xp::min(r).item<float>(), 0.25f);
    EXPECT_LT(xp::max(r).item<float>(), 0.5f);
    EXPECT_LT(xp::min(r).item<float>(), 0.3f);
    EXPECT_GT(xp::max(r).item<float>(), 0.45f);
    UsingConfig<bool> testing(&Config::train, false);
    EXPECT_TRUE(xp::array_equal(F::rrelu(x, 0.25, 0.5).array(), x * 0.375f));
    EXPECT_TRUE(xp::array_equal(F::rrelu(x, 0.25, 0.5, {.return_r = &r}).array(), x * 0.375f));
    EXPECT_EQ(r.to_vector<float>()[0], 0.375f);
  }
}

// Drawn in one kernel, of a view by another way: the slopes are those of uniform() in both.
TEST(Activation, RreluOfDrawnSlopes) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      for (std::int64_t n : {1, 6, 1000, 70001}) {
        Array x = xp::random::normal(0, 1, {2, n}, float32, device).astype(dtype);
        for (const Array& a : std::vector<Array>{x, x[{ellipsis, Slice(none, none, 2)}], x.T()}) {
          xp::random::GeneratorState state = xp::random::get_random_state(device);
          Array want = xp::random::uniform(0.25, 0.5, a.shape(), float32, device).astype(dtype);
          xp::random::GeneratorState after = xp::random::get_random_state(device);
          xp::random::set_random_state(state, device);
          Array r;
          Variable v(a), y = F::rrelu(v, 0.25, 0.5, {.return_r = &r});
          EXPECT_EQ(xp::random::get_random_state(device), after);
          EXPECT_TRUE(xp::array_equal(r, want));
          EXPECT_TRUE(xp::array_equal(y.array(), xp::where(a < 0, want * a, a)));
          Variable given = F::rrelu(constant(a), 0.25, 0.5, {.r = want});
          EXPECT_TRUE(xp::array_equal(y.array(), given.array()));
          y.set_grad(xp::full_like(y.array(), 2));
          y.backward();
          EXPECT_TRUE(xp::array_equal(v.grad(), xp::where(a < 0, want * 2, xp::full_like(a, 2))));
        }
      }
    }
  }
}

TEST(Activation, RreluIsOneKernelAndReplaysDrawAnew) {
  for (Device device : testing::test_devices()) {
    Array x = xp::random::normal(0, 1, {5, 77}, float32, device).astype(bfloat16);
    Recording recording;
    {
      RecorderScope scope(&recording);
      (void)F::rrelu(constant(x));
    }
    EXPECT_EQ(recording.operations.size(), 1u);
    auto step = [](const Variables& in) {
      Variable v(in[0].array()), y = F::rrelu(v);
      y.set_grad(y.array());
      y.backward();
      return Variables{constant(y.array()), constant(v.grad())};
    };
    CaptureCache cache({.replay_lists = true});
    std::vector<std::vector<Array>> captured, eager;
    for (bool is_captured : {true, false}) {
      xp::random::seed(3);
      for (int i = 0; i < 6; ++i) {
        Variables in{constant(x)}, out = is_captured ? cache.call(step, in) : step(in);
        (is_captured ? captured : eager).push_back({out[0].array().copy(), out[1].array().copy()});
      }
    }
    for (std::size_t i = 0; i < eager.size(); ++i) {
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_TRUE(xp::array_equal(captured[i][k], eager[i][k])) << i << " " << k;
      }
      EXPECT_TRUE(i == 0 || !xp::array_equal(eager[i][0], eager[i - 1][0]));
    }
    EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
  }
}

// exp of such numbers is infinite, or zero: neither must come out, or be divided by.
TEST(Activation, LargeNumbersHaveFiniteValuesAndGradients) {
  using Function = Variable (*)(const Variable&);
  const std::vector<std::pair<const char*, Function>> functions = {
      {"sigmoid", [](const Variable& x) { return F::sigmoid(x); }},
      {"softplus", [](const Variable& x) { return F::softplus(x); }},
      {"tanh", [](const Variable& x) { return F::tanh(x); }},
      {"elu", [](const Variable& x) { return F::elu(x); }},
      {"selu", [](const Variable& x) { return F::selu(x); }},
      {"gelu", [](const Variable& x) { return F::gelu(x); }},
      {"swish", [](const Variable& x) { return x * F::sigmoid(x); }},
      {"softmax", [](const Variable& x) { return F::softmax(x); }},
      {"log_softmax", [](const Variable& x) { return F::log_softmax(x); }},
      {"logsumexp", [](const Variable& x) { return F::logsumexp(x, 1); }},
  };
  for (Device device : testing::test_devices()) {
    for (const auto& [name, function] : functions) {
      for (Dtype dtype : {float32, float64, bfloat16, float16}) {
        SCOPED_TRACE(std::string(name) + " " + std::string(dtype_name(dtype)) + " on " +
                     device.str());
        Variable x(xp::array({{1000., -1000., 0., 1000.}, {-1000., -1000., -1000., -1000.}}, device)
                       .astype(dtype));
        Variable y = function(x);
        EXPECT_TRUE(xp::isfinite(y.array()).all().item<bool>()) << y;
        y.set_grad(xp::ones_like(y.array()));
        y.backward();
        EXPECT_TRUE(xp::isfinite(x.grad()).all().item<bool>()) << x.grad();
      }
    }
  }
}

TEST(Activation, EachOfTheGreatestHasMaxoutsGradient) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::array({{1.f, 1.f, 0.f, 2.f}}).to(device));
    F::maxout(x, 2).sum().backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 1, 0, 1}));
  }
}

// One kernel each way, into the halves of one array.
TEST(Activation, HalvesAreNotCopied) {
  for (Device device : testing::test_devices()) {
    for (auto function : {F::crelu, F::glu}) {
      Variable x(xp::ones({4, 6}, float32, device));
      Recording recording;
      {
        RecorderScope scope(&recording);
        Variable y = function(x, 1);
        y.set_grad(y.array());
        y.backward();
      }
      std::string names;
      for (const auto& operation : recording.operations)
        names += operation->name() + std::string(" ");
      EXPECT_EQ(recording.operations.size(), 2u) << names;
    }
  }
}

// Rows that a warp keeps, that a block keeps, and longer ones; whole vectors and not; along an axis
// that is not the last.
TEST(Activation, SoftmaxHasAGradientOfOneKernelThatIsTheComposedOne) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16, bfloat16}) {
      for (auto [shape, axis] : std::vector<std::pair<Shape, int>>{{{9, 1}, 1},
                                                                   {{9, 7}, 1},
                                                                   {{9, 1000}, 1},
                                                                   {{3, 5000}, 1},
                                                                   {{2, 20001}, 1},
                                                                   {{2, 24, 5}, 1},
                                                                   {{0, 3}, 1},
                                                                   {{3, 0}, 1}}) {
        for (auto function : {F::softmax, F::log_softmax}) {
          Variable x(xp::random::normal(0, 1, shape, float32, device).astype(dtype));
          Variable y = function(x, axis);
          Array gy = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
          y.set_grad(gy);
          Recording recording;
          {
            RecorderScope scope(&recording);
            y.backward();
          }
          std::size_t launches = x.size() == 0 ? 0 : 1;
          if (shape.ndim() == 2) {
            EXPECT_EQ(recording.operations.size(), launches) << shape.str();
          }
          Array once = x.grad();
          Variable again = function(x, axis);
          again.set_grad(gy);
          x.cleargrad();
          again.backward({.enable_double_backprop = true});
          double tolerance = dtype == float64 ? 1e-13 : dtype == float32 ? 2e-5 : 4e-2;
          EXPECT_TRUE(
              xp::allclose(once.astype(float64), x.grad().astype(float64), tolerance, tolerance))
              << dtype_name(dtype) << ' ' << shape.str() << ' ' << device;
        }
      }
    }
  }
}

TEST(Activation, ErrorsNameWhatDoesNotFit) {
  Variable x(xp::ones({2, 3, 5}));
  for (auto function : {F::prelu, F::swish}) {
    std::string text = testing::thrown<ShapeError>([&] { function(x, xp::ones({5})); });
    EXPECT_NE(text.find("(5,)"), std::string::npos) << text;
    EXPECT_NE(text.find("(2, 3, 5)"), std::string::npos) << text;
    EXPECT_THROW(function(x, xp::ones({2, 3, 5})), ShapeError);
    EXPECT_THROW(function(xp::ones({}), xp::ones({})), ShapeError);
    EXPECT_EQ(function(x, xp::ones({3, 5})).shape(), x.shape());
  }
  EXPECT_THROW(F::maxout(x, 2), ShapeError);
  EXPECT_THROW(F::maxout(x, 0), ValueError);
  EXPECT_THROW(F::maxout(x, 1, 3), IndexError);
  EXPECT_THROW(F::glu(x), ShapeError);
  EXPECT_THROW(F::glu(x, 3), IndexError);
  EXPECT_THROW(F::crelu(x, -4), IndexError);
  EXPECT_THROW(F::rrelu(x, 0.5, 0.25), ValueError);
  EXPECT_THROW(F::rrelu(x, 0.25, 1), ValueError);
  EXPECT_THROW(F::rrelu(x, 0.25, 0.5, {.r = xp::ones({5})}), ShapeError);
}

}  // namespace
}  // namespace rensa
