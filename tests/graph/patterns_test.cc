// Patterns over all layouts and shapes: relu's and a bias's gradients, a product's tanh, and the
// loss's gradient and SGD's update of what a product gives; the others are in plan_test.cc.
#include "rensa/graph/patterns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"
#include "rensa/functions/operations/update_parameters/product_and_update.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/graph/rewritten.h"

namespace rensa {
namespace {

using operations::ReluBiasGrad;
using testing::Case;
using testing::Rewritten;

int count_joined(const Rewritten& list) {
  return list.count<ReluBiasGrad>([](const ReluBiasGrad&) { return true; });
}

TEST(JoinBiasGrad, SumsOverAllButTheChannels) {
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array gy = c.numbers(), y = c.numbers();
    for (bool keepdims : {false, true}) {
      Rewritten list([&] {
        Array gz = xp::elementwise(ufunc::relu_grad, {gy, y});
        Axes axes = c.shape.ndim() == 2 ? Axes(0) : Axes{0, 2, 3};
        return Arrays{gz, xp::sum(gz, {.axis = axes, .keepdims = keepdims})};
      });
      bool last = c.channels_last || c.shape.ndim() == 2 || c.shape[2] == 1;
      EXPECT_EQ(list.recorded, 2u);
      EXPECT_EQ(count_joined(list), last);
      EXPECT_EQ(list.left(), last ? 1u : 2u);
    }
  }
}

TEST(JoinBiasGrad, OfConvolutionsOfAnyNumberOfAxes) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, bfloat16}) {
      for (const Shape& shape : {Shape{3, 8, 11}, Shape{3, 8, 5, 7}, Shape{2, 8, 4, 3, 5}}) {
        Case c = {device, dtype, shape, true};
        SCOPED_TRACE(c.describe());
        Shape kernel = Shape::filled(shape.ndim(), 1);
        kernel[0] = 24, kernel[1] = 8;
        Shape result = shape;
        result[1] = 24;
        Array gy = Case{device, dtype, result, true}.numbers();
        auto drawn = [&](const Shape& of) {
          return Variable(xp::random::normal(0, 1, of, float64, device).astype(dtype));
        };
        Variables v{Variable(c.numbers()), drawn(kernel), drawn({24})};
        Rewritten list([&] {
          Arrays results;
          Variable y = F::relu(F::convolution_nd(v[0], v[1], v[2]));
          for (const Variable& g : grad({y}, v, {constant(gy)})) results.push_back(g.array());
          return results;
        });
        EXPECT_EQ(count_joined(list), 1);
        EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
      }
    }
  }
}

// On a GPU, in float32, where the product is one of ours: one of a few rows, of a few columns, of
// small matrices. Rewritten holds the results against the eager ones, bit for bit.
TEST(JoinTanh, OfProductsByOurKernels) {
  auto joined = [](Device device, Dtype dtype, std::int64_t rows, std::int64_t in, std::int64_t out,
                   bool bias) {
    auto drawn = [&](const Shape& shape) {
      return xp::random::normal(0, 1, shape, float64, device).astype(dtype);
    };
    Array x = drawn({rows, in}), w = drawn({out, in}), b = drawn({out});
    Rewritten list([&] {
      Array h = bias ? xp::linear(x, w, b) : xp::matmul(x, w.T());
      return Arrays{F::tanh(constant(h)).array()};
    });
    EXPECT_EQ(list.recorded, 2u);
    int count = list.count<operations::Matmul>([](const operations::Matmul& product) {
      return product.activation == operations::Activation::tanh;
    });
    EXPECT_EQ(list.left(), 2u - static_cast<std::size_t>(count));
    return count == 1;
  };
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    for (bool bias : {false, true}) {
      EXPECT_EQ(joined(device, float32, 1, 256, 300, bias), device.is_cuda());
      EXPECT_EQ(joined(device, float32, 500, 256, 8, bias), device.is_cuda());
      EXPECT_EQ(joined(device, float32, 64, 100, 90, bias), device.is_cuda());
      EXPECT_FALSE(joined(device, float32, 700, 800, 900, bias));
      EXPECT_FALSE(joined(device, float64, 64, 100, 90, bias));
    }
    // A long sum, which is made in another order than a product's.
    EXPECT_FALSE(joined(device, float32, 1, 1 << 17, 1, false));
  }
}

// On a GPU, of any floating dtype, where the product is one of ours; not where others read what the
// product gives, or write the gate in between.
TEST(JoinGate, OfProductsByOurKernels) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto joined = [&](Dtype dtype, std::int64_t rows, std::int64_t in, std::int64_t out,
                      auto&& between) {
      auto drawn = [&](const Shape& shape) {
        return xp::random::normal(0, 1, shape, float64, device).astype(dtype);
      };
      Array gy = drawn({rows, in}), w = drawn({in, out}), h = drawn({rows, out});
      Rewritten list([&] {
        Array gate = h.copy(), gh = xp::matmul(gy, w);
        Array also = between(gh, gate);
        Array gz = xp::elementwise(ufunc::relu_grad, {gh, gate});
        return Arrays{gz, also, xp::sum(gz, {.axis = 0})};
      });
      return list.count<operations::Matmul>(
                 [](const operations::Matmul& product) { return product.gate.present(); }) == 1;
    };
    auto nothing = [](const Array&, const Array& gate) { return gate.sum(); };
    for (Dtype dtype : {float32, float16, bfloat16}) {
      EXPECT_EQ(joined(dtype, 100, 10, 1000, nothing), device.is_cuda());
      EXPECT_EQ(joined(dtype, 64, 100, 90, nothing), device.is_cuda());
      EXPECT_FALSE(joined(dtype, 700, 800, 900, nothing));
    }
    EXPECT_EQ(joined(float32, 1, 256, 300, nothing), device.is_cuda());
    EXPECT_FALSE(joined(float64, 64, 100, 90, nothing));
    EXPECT_FALSE(joined(float32, 100, 10, 1000, [](const Array& gh, const Array&) { return gh; }));
    EXPECT_FALSE(joined(float32, 100, 10, 1000, [](const Array&, Array gate) {
      gate += 1;
      return gate;
    }));
  }
}

/// The loss of a layer's scores, of relu's result where `relu`, and its gradients; `between` works
/// on the labels and the scores behind the product.
Rewritten scores(const Variables& v, Array labels, bool normalize, bool relu,
                 const std::function<void(Array&, Array)>& between = nullptr) {
  return Rewritten([&] {
    Array t = labels.copy();
    Variable y = F::linear(relu ? F::relu(v[0]) : v[0], v[1], v[2]);
    if (between) between(t, y.array());
    Variable loss = F::softmax_cross_entropy(y, constant(t), {.normalize = normalize});
    Arrays results{loss.array()};
    for (const Variable& g : grad({loss}, v)) results.push_back(g.array());
    return results;
  });
}
struct Joined {
  int scores, backs, gates;
  explicit Joined(const Rewritten& list) {
    auto count = [&](auto&& f) { return list.count<operations::ScoresAndGrad>(f); };
    scores = count([](const auto&) { return true; });
    backs = count([](const auto& both) { return both.has_back(); });
    gates = count([](const auto& both) { return both.has_back() && both.back.gate.present(); });
  }
  bool operator==(const Joined&) const = default;
  Joined(int s, int b, int g) : scores(s), backs(b), gates(g) {}
};
std::ostream& operator<<(std::ostream& out, const Joined& joined) {
  return out << joined.scores << " scores, " << joined.backs << " backs, " << joined.gates
             << " gates";
}

// On a GPU, where a product in float32 has whole rows: the same bits, for any labels.
TEST(JoinScoresGrad, OfFewClasses) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto joined = [&](Dtype dtype, std::int64_t rows, std::int64_t in, std::int64_t classes,
                      bool relu, Dtype label_dtype = int32, bool normalize = true) {
      auto drawn = [&](const Shape& shape) {
        return Variable(xp::random::normal(0, 1, shape, float64, device).astype(dtype));
      };
      Variables v{drawn({rows, in}), drawn({classes, in}), drawn({classes})};
      Array t =
          (xp::arange(rows) % (classes + 1) - 1).astype(label_dtype).to(device);  // -1: ignored
      return Joined(scores(v, t, normalize, relu));
    };
    int all = device.is_cuda() ? 1 : 0;
    const Joined none(0, 0, 0), without_gate(all, all, 0), with_gate(all, all, all);
    for (std::int64_t classes : {1, 2, 3, 4, 5, 8, 10, 13, 16}) {
      SCOPED_TRACE(classes);
      for (Dtype label_dtype : {int32, int64, int8}) {
        bool normalize = label_dtype != int64;
        EXPECT_EQ(joined(float32, 100, 1300, classes, true, label_dtype, normalize), with_gate);
        EXPECT_EQ(joined(float32, 100, 1000, classes, true, label_dtype, normalize), with_gate);
        EXPECT_EQ(joined(float32, 402, 1300, classes, true, label_dtype, normalize), with_gate);
        EXPECT_EQ(joined(float32, 301, 129, classes, true, label_dtype, normalize), with_gate);
        EXPECT_EQ(joined(float32, 1001, 132, classes, false, label_dtype, normalize), without_gate);
        for (std::int64_t rows : {1, 7, 20}) joined(float32, rows, 300, classes, true, label_dtype);
      }
    }
    EXPECT_EQ(joined(float32, 100, 300, 17, true), none);
    EXPECT_EQ(joined(float16, 100, 300, 10, true), none);
    EXPECT_EQ(joined(float32, 5000, 300, 10, true), none);  // the loss's shift serves the gradient
  }
}

TEST(JoinScoresGrad, NotWhatIsMadeBehindTheProduct) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto drawn = [&](const Shape& shape) {
      return Variable(xp::random::normal(0, 1, shape, float32, device));
    };
    Variables v{drawn({300, 260}), drawn({10, 260}), drawn({10})};
    Array t = (xp::arange(300) % 10).astype(int32).to(device);
    auto joined = [&](const std::function<void(Array&, Array)>& between) {
      return Joined(scores(v, t, true, false, between));
    };
    int all = device.is_cuda() ? 1 : 0;
    const Joined none(0, 0, 0), both(all, all, 0);
    EXPECT_EQ(joined(nullptr), both);
    EXPECT_EQ(joined([](Array&, Array y) { y.sum(); }), both);
    EXPECT_EQ(joined([](Array& labels, Array) { labels += 0; }), none);
    EXPECT_EQ(joined([](Array&, Array y) { y *= 2; }), none);
    // What the gradient of the product's operand is made of, changed or read on the way.
    enum Way { plain, weights, gate, other_gate, read };
    auto with_back = [&](Way way) {
      Array x = xp::maximum(v[0].array(), xp::zeros({}, float32, device)), w = v[1].array();
      return Joined(Rewritten([&] {
        Array used = w.copy(), h = x.copy(), other = h.copy(), between;
        Variable y(xp::linear(h, used, v[2].array()));
        Array g = grad({F::softmax_cross_entropy(y, constant(t))}, {y})[0].array();
        if (way == weights) used *= 2;
        if (way == gate) h *= 2;
        Array gh = xp::matmul(g, used);
        if (way == read) between = gh.sum();
        Array gz = xp::elementwise(ufunc::relu_grad, {gh, way == other_gate ? other : h});
        return way == read ? Arrays{g, gz, between} : Arrays{g, gz};
      }));
    };
    EXPECT_EQ(with_back(plain), Joined(all, all, all));
    EXPECT_EQ(with_back(weights), Joined(all, 0, 0));
    EXPECT_EQ(with_back(gate).backs, 0);
    EXPECT_EQ(with_back(other_gate), Joined(all, 0, 0));
    EXPECT_EQ(with_back(read), Joined(all, all, 0));  // relu's gradient is a pass of its own
    // The loss's gradient, made behind the product.
    Rewritten weighted([&] {
      Variable y = F::linear(v[0], v[1], v[2]);
      Array g = y.array().sum();
      return Arrays{
          grad({F::softmax_cross_entropy(y, constant(t))}, {y}, {constant(g)})[0].array()};
    });
    EXPECT_EQ(Joined(weighted), none);
  }
}

/// A step of a net of three layers by SGD, but for what `way` says.
struct Step {
  enum Way {
    plain,
    gradient_of_x,     // made beside, of the first weights
    weights_read,      // behind their gradient
    gradient_changed,  // behind the product
    other_rule,
    perhaps_not,  // with a number that says whether anything is updated
    two_sets,
  };
  Device device;
  std::int64_t samples;
  Way way = plain;

  Rewritten rewritten() const {
    auto drawn = [&](const Shape& shape, double scale) {
      return xp::random::normal(0, scale, shape, float32, device);
    };
    Array x = drawn({samples, 784}, 1), t = (xp::arange(samples) % 10).astype(int32).to(device);
    Arrays weights{drawn({1000, 784}, 0.05), drawn({1000, 1000}, 0.05), drawn({10, 1000}, 0.05)};
    Array enabled = xp::ones({1}, float64, device);
    return Rewritten([&] {
      Variables v;
      for (const Array& w : weights) v.emplace_back(w.copy());
      Variable h(x.copy());
      if (way == gradient_of_x) v.push_back(h);
      for (std::size_t k = 0; k < 3; ++k) h = F::linear(k > 0 ? F::relu(h) : h, v[k]);
      Variables gradients = grad({F::softmax_cross_entropy(h, constant(t))}, v);
      Arrays results;
      for (const Variable& g : gradients) results.push_back(g.array());
      if (way == weights_read) results.push_back(v[0].array().sum());
      if (way == gradient_changed) results[0] *= 2;
      update(v, results, enabled);
      for (const Variable& w : v) results.push_back(w.array());
      return results;
    });
  }

 private:
  void update(const Variables& v, const Arrays& gradients, const Array& enabled) const {
    operations::UpdateParameters update(
        "SGD", way == other_rule ? UpdateRuleId::rounded_copy : UpdateRuleId::sgd);
    update.set_size = 1;
    update.hyperparameters.emplace_back().real = 0.25;
    if (way == two_sets) update.hyperparameters.emplace_back().real = 0.5;
    if (way == perhaps_not) update.enabled = enabled.operand();
    for (std::size_t k = 0; k < 3; ++k) {
      operations::UpdateTarget& target = update.targets.emplace_back();
      target.parameter = v[k].array().operand();
      target.gradient = gradients[k].operand();
      target.set = way == two_sets && k == 0 ? 1 : 0;
    }
    launch(update);
  }
};

// On a GPU that has such kernels, with the gradient that nothing but the update waits for.
TEST(JoinUpdate, OfTheFirstWeights) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto joined = [&](std::int64_t samples, Step::Way way) {
      Rewritten list = Step{device, samples, way}.rewritten();
      int all = list.count<operations::ProductAndUpdate>([](const auto&) { return true; });
      int of_first = list.count<operations::ProductAndUpdate>([](const auto& both) {
        return both.product.c.view.shape == Shape{1000, 784};
      });
      EXPECT_EQ(all, of_first);
      int updated = list.count<operations::UpdateParameters>(
          [](const auto& update) { return !update.targets.empty(); });
      EXPECT_GT(updated, 0);
      return all;
    };
    int some = testing::has_large_tiles(device) ? 1 : 0;
    EXPECT_EQ(joined(100, Step::plain), some);
    EXPECT_EQ(joined(100, Step::two_sets), some);
    if (device.is_cuda()) {
      EXPECT_EQ(joined(1024, Step::plain), some);
      EXPECT_EQ(joined(7, Step::plain), 0);
    }
    for (Step::Way way : {Step::gradient_of_x, Step::weights_read, Step::gradient_changed,
                          Step::other_rule, Step::perhaps_not}) {
      EXPECT_EQ(joined(100, way), 0) << way;
    }
    for (UseTf32 tf32 : {UseTf32(true), UseTf32::x3()}) {
      UsingConfig<UseTf32> scope(&Config::tf32, tf32);
      int so = testing::has_large_tiles(device, tf32) ? 1 : 0;
      EXPECT_EQ(joined(100, Step::plain), so);
      if (device.is_cuda()) {
        EXPECT_EQ(joined(1024, Step::plain), so);
      }
    }
  }
}

// Sums over fewer axes or more, of other elements, in another dtype.
TEST(JoinBiasGrad, OtherSumsStay) {
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {4, 12, 6, 6}, true};
    Array gy = c.numbers(), y = c.numbers();
    auto joins = [&](auto&& sum) {
      return count_joined(Rewritten([&] {
        Array gz = xp::elementwise(ufunc::relu_grad, {gy, y});
        return Arrays{gz, sum(gz)};
      }));
    };
    EXPECT_EQ(joins([](const Array& gz) { return xp::sum(gz, {.axis = {0, 2, 3}}); }), 1);
    EXPECT_EQ(joins([](const Array& gz) { return xp::sum(gz, {.axis = {0, 2}}); }), 0);
    EXPECT_EQ(joins([](const Array& gz) { return xp::sum(gz, {.axis = {0, 1, 2}}); }), 0);
    EXPECT_EQ(joins([](const Array& gz) { return xp::sum(gz); }), 0);
    EXPECT_EQ(joins([](const Array& gz) { return xp::max(gz, {.axis = {0, 2, 3}}); }), 0);
    EXPECT_EQ(joins([](const Array& gz) {
                return xp::sum(gz[{Slice(0, 2)}], {.axis = {0, 2, 3}});
              }),
              0);
    EXPECT_EQ(joins([](const Array& gz) {
                return xp::sum(gz, {.axis = {0, 2, 3}, .dtype = float64});
              }),
              0);
    EXPECT_EQ(joins([](const Array& gz) {
                Array places = xp::zeros({12, 2}, float32, gz.device());
                Array column = places[{Slice(), 0}];
                return xp::sum(gz, {.axis = {0, 2, 3}, .out = column});
              }),
              0);
  }
}

// On a GPU that is a chain, which passes the sum by.
TEST(JoinBiasGrad, WhatAnElementwiseOperationMakesStays) {
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {4, 12, 6, 6}, true};
    Array gy = c.numbers(), y = c.numbers();
    Rewritten list([&] {
      Array gz = xp::elementwise(ufunc::relu_grad, {gy * 2.f, y});
      return Arrays{gz, xp::sum(gz, {.axis = {0, 2, 3}})};
    });
    EXPECT_EQ(count_joined(list), 0);
  }
}

}  // namespace
}  // namespace rensa
