// The patterns around normalizations: the rewritten list against the recorded one, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/graph/plan.h"
#include "rensa/graph/rewrite.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::Elementwise;
using operations::Normalize;

std::string bytes_of(const Array& array) {
  Array host = array.ascontiguous().get();
  return {static_cast<const char*>(host.data()), static_cast<std::size_t>(host.nbytes())};
}

struct Case {
  Device device;
  Dtype dtype;
  Shape shape;
  bool channels_last;

  std::string describe() const {
    return device.str() + " " + std::string(dtype_name(dtype)) + " " + shape.str() +
           (channels_last ? " channels last" : "");
  }
  Array numbers() const {
    Array x = xp::random::normal(0, 1, shape, float64, device).astype(dtype);
    return channels_last && x.ndim() > 2 ? F::channels_last(x) : x;
  }
  /// One for each channel.
  Array weights(double mean, Dtype of = float32) const {
    return xp::random::normal(mean, 1, {shape[1]}, float64, device).astype(of);
  }
};

/// Whole vectors of channels, none, more elements than a thread has at once, no places.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16, bfloat16, float64}) {
      for (const Shape& shape : {Shape{2, 16, 5, 5}, Shape{3, 7, 4, 4}, Shape{4, 24, 17, 13},
                                 Shape{2, 3, 1, 1}, Shape{5, 11}, Shape{300, 40}}) {
        for (bool last : {false, true}) {
          if (!last || shape.ndim() > 2) all.push_back({device, dtype, shape, last});
        }
      }
    }
  }
  return all;
}

using Program = std::function<Arrays()>;

class Rewritten {
 public:
  /// Records the program, rewrites the list and runs it; what it gives is held against what the
  /// program gave.
  explicit Rewritten(const Program& program) {
    ThreadState::current().recorder = &recording_;
    Arrays results = program();
    ThreadState::current().recorder = nullptr;
    recorded = recording_.operations.size();
    std::vector<std::string> want;
    for (const Array& result : results) want.push_back(bytes_of(result));
    rewrite(recording_);
    Plan plan = make_plan(recording_, true);
    for (Array& result : results) result.fill(0);
    for (const auto& operation : recording_.operations) launch(*operation);
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_TRUE(bytes_of(results[k]) == want[k]) << "result " << k;
    }
  }

  std::size_t left() const { return recording_.operations.size(); }
  template <class Kind, class Is> int count(const Is& is) const {
    int found = 0;
    for (const auto& operation : recording_.operations) {
      auto* kind = dynamic_cast<const Kind*>(operation.get());
      found += kind && is(*kind);
    }
    return found;
  }
  int count_relu() const {
    return count<Normalize>([](const Normalize& op) { return op.relu && !op.gy.present(); });
  }

  std::size_t recorded;  // operations

 private:
  Recording recording_;
};

Array normalized(const Array& x, const Array& gamma, const Array& beta) {
  return F::batch_normalization(constant(x), constant(gamma), constant(beta)).array();
}
Array relu(const Array& x) { return xp::elementwise(ufunc::relu, {x}); }

TEST(JoinNormalizeRelu, ReluIsPartOfThePass) {
  no_backprop_mode off;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten list([&] { return Arrays{relu(normalized(x, gamma, beta))}; });
    EXPECT_EQ(list.recorded, 3u);
    EXPECT_EQ(list.left(), 2u);
    EXPECT_EQ(list.count_relu(), 1);
  }
}

TEST(JoinNormalizeRelu, TheResidualIsAddedInThePass) {
  no_backprop_mode off;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1, c.dtype),
          beta = c.weights(0, c.dtype);
    for (bool behind : {false, true}) {
      Rewritten list([&] {
        Array h = normalized(x, gamma, beta);
        return Arrays{relu(behind ? r + h : h + r)};
      });
      EXPECT_EQ(list.recorded, 4u);
      EXPECT_EQ(list.left(), 2u);
      EXPECT_EQ(list.count_relu(), 1);
    }
  }
}

TEST(JoinNormalizeRelu, OfOtherNormalizations) {
  no_backprop_mode off;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1, c.dtype),
          beta = c.weights(0, c.dtype);
    Array mean = c.weights(0, c.dtype), var = xp::absolute(c.weights(2, c.dtype));
    Rewritten list([&] {
      Variable fixed = F::fixed_batch_normalization(constant(x), constant(gamma), constant(beta),
                                                    constant(mean), constant(var));
      Variable groups =
          F::group_normalization(constant(x), c.shape[1], constant(gamma), constant(beta));
      return Arrays{F::relu(fixed).array(), F::relu(constant(r) + groups).array()};
    });
    EXPECT_EQ(list.count_relu(), 2);
  }
}

// A block's residual that is normalized too: one of both stays.
TEST(JoinNormalizeRelu, OfTwoThatAreAddedOneTakesTheOther) {
  no_backprop_mode off;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten list([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h + normalized(r, beta, gamma))};
    });
    EXPECT_EQ(list.recorded, 6u);
    EXPECT_EQ(list.left(), 4u);
    EXPECT_EQ(list.count_relu(), 1);
  }
}

TEST(JoinNormalizeRelu, NotANumberStays) {
  no_backprop_mode off;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), gamma = c.weights(1), beta = c.weights(0), y;
    x[{0, 1}].fill(NAN);
    Rewritten list([&] { return Arrays{y = relu(normalized(x, gamma, beta))}; });
    EXPECT_EQ(list.count_relu(), 1);
    EXPECT_TRUE(xp::isnan(y[{0, 1}]).all().item<bool>());
    EXPECT_FALSE(xp::isnan(y[{0, 0}]).any().item<bool>());
  }
}

TEST(JoinNormalizeRelu, WhatOthersReadIsWritten) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, true};
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten normalized_twice_read([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h), h.sum(0)};
    });
    EXPECT_EQ(normalized_twice_read.count_relu(), 0);
    Rewritten sum_twice_read([&] {
      Array s = normalized(x, gamma, beta) + r;
      return Arrays{relu(s), s.sum(0)};
    });
    EXPECT_EQ(sum_twice_read.count_relu(), 0);
    Rewritten added_to_itself([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h + h)};
    });
    EXPECT_EQ(added_to_itself.count_relu(), 0);
    Array kept;
    Rewritten held([&] {
      kept = normalized(x, gamma, beta);
      return Arrays{relu(kept), kept};
    });
    EXPECT_EQ(held.count_relu(), 0);
  }
}

TEST(JoinNormalizeRelu, NothingIsReadAfterItHasChanged) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, false};
    Array x = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    auto run = [&](bool changes_residual, bool changes_beta) {
      return Rewritten([&, r = c.numbers(), b = beta.copy()]() mutable {
               Array residual = r * 1.5f, offset = b * 1.5f;
               Array s = normalized(x, gamma, offset) + residual;
               if (changes_residual) residual *= 2.f;
               if (changes_beta) offset *= 2.f;
               return Arrays{relu(s), residual, offset};
             })
          .count_relu();
    };
    EXPECT_EQ(run(false, false), 1);
    EXPECT_EQ(run(true, false), 0);
    EXPECT_EQ(run(false, true), 0);
  }
}

// Broadcast, and of another order in memory.
TEST(JoinNormalizeRelu, ResidualsThatLieOtherwiseStayApart) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, true};
    Array x = c.numbers(), r = c.numbers().ascontiguous(), gamma = c.weights(1),
          beta = c.weights(0);
    Rewritten turned([&] { return Arrays{relu(normalized(x, gamma, beta) + r)}; });
    EXPECT_EQ(turned.count_relu(), 0);
    Array row = r[{0, 0}].copy();
    Rewritten broadcast([&] { return Arrays{relu(normalized(x, gamma, beta) + row)}; });
    EXPECT_EQ(broadcast.count_relu(), 0);
    Rewritten wider([&] { return Arrays{relu(normalized(x, gamma, beta) + r.astype(float64))}; });
    EXPECT_EQ(wider.count_relu(), 0);
  }
}

}  // namespace
}  // namespace rensa
