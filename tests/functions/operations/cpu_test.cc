// The operations of a training step on the CPU: loss, accuracy, gradients and updates.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/philox.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/dropout/dropout.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/reduce/reduce.h"
#include "rensa/operations/transfer/transfer.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::testing {
namespace {

struct Loss {
  TestArray x, t, shift, loss, count;
  Loss(std::int64_t n, std::int64_t classes, Dtype d, Dtype label_dtype)
      : x({n, classes}, d),
        t({n}, label_dtype),
        shift({n, 2}, d == float64 ? float64 : float32),
        loss({}, d),
        count({}, float32) {
    x.fill(1);
    for (std::int64_t i = 0; i < n; ++i) t.set(i, static_cast<double>(i * 7 % classes));
  }
  operations::SoftmaxCrossEntropy operation(bool normalize = true) const {
    operations::SoftmaxCrossEntropy op;
    op.normalize = normalize;
    op.x = x.operand();
    op.t = t.operand();
    op.shift = shift.operand();
    op.loss = loss.operand();
    op.count = count.operand();
    return op;
  }
  // Of every row.
  std::vector<double> log_sums() const {
    std::int64_t classes = x.view().shape[1];
    std::vector<double> sums(static_cast<std::size_t>(x.view().shape[0]));
    for (std::int64_t i = 0; i < x.size(); ++i) {
      sums[static_cast<std::size_t>(i / classes)] += std::exp(x.real(i));
    }
    for (double& sum : sums) sum = std::log(sum);
    return sums;
  }
};

double tolerance(Dtype d) {
  return d == float64 ? 1e-13 : d == float32 ? 2e-6 : d == float16 ? 1e-2 : 8e-2;
}

TEST(CpuSoftmaxCrossEntropy, ForwardAndBackward) {
  for (Dtype d : {float32, float64, float16, bfloat16}) {
    for (Dtype label_dtype : {int32, int64, uint8}) {
      for (auto [n, classes] : {std::pair{1, 1}, {5, 3}, {100, 10}, {3, 2000}, {700, 33}}) {
        Loss s(n, std::min(classes, label_dtype == uint8 ? 200 : classes), d, label_dtype);
        std::int64_t width = s.x.view().shape[1];
        bool ignores = label_dtype != uint8 && n > 2;
        if (ignores) s.t.set(1, -1);
        std::vector<double> log_sums = s.log_sums();
        auto log_softmax = [&](std::int64_t i, std::int64_t j) {
          return s.x.real(i * width + j) - log_sums[static_cast<std::size_t>(i)];
        };
        for (bool normalize : {true, false}) {
          s.operation(normalize).run_cpu();
          double total = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < width; ++j) {
              double y = s.x.real(i * width + j) - s.shift.real(2 * i) - s.shift.real(2 * i + 1);
              ASSERT_NEAR(y, log_softmax(i, j), 5 * tolerance(d == float64 ? d : float32));
            }
            auto label = static_cast<std::int64_t>(s.t.real(i));
            if (label >= 0) total -= log_softmax(i, label);
          }
          double count = normalize ? n - (ignores ? 1 : 0) : n;
          EXPECT_EQ(s.count.real(0), count);
          EXPECT_NEAR(s.loss.real(0), total / count, 5 * tolerance(d));

          TestArray gy({}, d), gx({n, width}, d);
          gy.set(0, 2);
          operations::SoftmaxCrossEntropyGrad grad;
          grad.x = s.x.operand();
          grad.shift = s.shift.operand();
          grad.t = s.t.operand();
          grad.count = s.count.operand();
          grad.gy = gy.operand();
          grad.gx = gx.operand();
          grad.run_cpu();
          TestArray again({n, width}, d);
          operations::SoftmaxCrossEntropyGrad alone = grad;
          alone.normalize = normalize;
          alone.shift = alone.count = {};
          alone.gx = again.operand();
          alone.run_cpu();
          for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < width; ++j) {
              ASSERT_EQ(again.real(i * width + j), gx.real(i * width + j));
            }
            auto label = static_cast<std::int64_t>(s.t.real(i));
            for (std::int64_t j = 0; j < width; ++j) {
              double want = (std::exp(log_softmax(i, j)) - (j == label)) * 2 / count;
              if (label < 0) want = 0;
              ASSERT_NEAR(gx.real(i * width + j), want, 2 * tolerance(d));
            }
          }
        }
      }
    }
  }
}

TEST(CpuSoftmaxCrossEntropy, BadLabels) {
  for (int bad : {10, 12, -2}) {
    Loss s(4, 10, float32, int32);
    s.t.set(2, bad);
    try {
      s.operation().run_cpu();
      FAIL();
    } catch (const IndexError& e) {
      EXPECT_EQ(std::string(e.what()), "softmax_cross_entropy: label " + std::to_string(bad) +
                                           " is out of bounds for 10 classes");
    }
  }
}

TEST(CpuSoftmaxCrossEntropy, AllIgnored) {
  Loss s(3, 4, float32, int32);
  for (int i = 0; i < 3; ++i) s.t.set(i, -1);
  s.operation().run_cpu();
  EXPECT_EQ(s.loss.real(0), 0);
  EXPECT_EQ(s.count.real(0), 1);
}

TEST(CpuDropout, DropsByTheWords) {
  constexpr long long kSeed = 77, kOffset = 1000;
  auto word = [](std::int64_t i) {
    return philox(kSeed, kOffset + static_cast<unsigned long long>(i / 4)).word[i % 4];
  };
  for (Dtype d : {float32, float64, float16}) {
    TestArray in({3000}, d), out({3000}, d);
    in.fill(1);
    operations::Dropout op;
    op.ratio = 0.25;
    op.seed.integer = kSeed;
    op.offset.integer = kOffset;
    op.in = in.operand();
    op.out = out.operand();
    op.run_cpu();
    int dropped = 0;
    for (std::int64_t i = 0; i < 3000; ++i) {
      bool kept = uniform_float(word(i)) >= 0.25f;
      dropped += !kept;
      double tolerance = d == float16 ? 5e-3 : 1e-6;
      ASSERT_NEAR(out.real(i), kept ? in.real(i) / 0.75 : 0, tolerance);
    }
    EXPECT_NEAR(dropped, 750, 120);
  }
}

TEST(CpuAccuracy, CountsRowsWhoseGreatestIsTheLabel) {
  for (Dtype d : {float32, float16, float64}) {
    TestArray y({4, 3}, d), t({4}, int32), share({}, d);
    const double rows[4][3] = {{1, 5, 2}, {7, 7, 0}, {0, 1, 2}, {3, 2, 1}};
    const int labels[] = {1, 0, 0, 0};
    for (std::int64_t i = 0; i < 12; ++i) y.set(i, rows[i / 3][i % 3]);
    for (int i = 0; i < 4; ++i) t.set(i, labels[i]);
    operations::Accuracy op;
    op.y = y.operand();
    op.t = t.operand();
    op.accuracy = share.operand();
    op.run_cpu();
    EXPECT_EQ(share.real(0), 0.75);
    op.has_ignore_label = true;
    op.ignore_label = 1;
    op.run_cpu();
    EXPECT_NEAR(share.real(0), 2.0 / 3, d == float16 ? 1e-3 : 1e-7);
  }
}

TEST(CpuReluBiasGrad, IsTheTwoOperationsInOne) {
  for (Dtype d : {float32, float16}) {
    for (auto [n, m] : {std::pair{100, 1000}, {7, 3}, {500, 1}, {1, 33}}) {
      TestArray gy({n, m}, d), y({n, m}, d), gz({n, m}, d), gb({m}, d), sums({1, m}, d);
      gy.fill(1);
      y.fill(2);
      operations::ReluBiasGrad op;
      op.gy = gy.operand();
      op.y = y.operand();
      op.gz = gz.operand();
      op.gb = gb.operand();
      op.run_cpu();
      for (std::int64_t i = 0; i < n * m; ++i) {
        ASSERT_EQ(gz.real(i), y.real(i) > 0 ? gy.real(i) : 0);
      }
      operations::Reduce sum("sum", reduction::sum);
      sum.axes = 1;
      sum.compute = d;
      sum.in = gz.operand();
      sum.out = sums.operand();
      sum.run_cpu();
      EXPECT_EQ(gb.bytes(), sums.bytes());
      op.gz = gy.operand();  // in place
      op.run_cpu();
      EXPECT_EQ(gy.bytes(), gz.bytes());
    }
  }
}

TEST(CpuUpdate, RulesOverManyTargets) {
  struct Rule {
    UpdateRuleId id;
    int states, hyperparameters;
  };
  const double h[] = {0.1, 0.3, 0.01, 1e-3, 1, 0.05};
  for (Rule rule : {Rule{UpdateRuleId::sgd, 0, 1}, Rule{UpdateRuleId::momentum_sgd, 1, 2},
                    Rule{UpdateRuleId::adam, 2, 6}}) {
    for (Dtype d : {float32, float64, float16}) {
      operations::UpdateParameters op("update", rule.id);
      op.set_size = rule.hyperparameters;
      for (int i = 0; i < rule.hyperparameters; ++i) op.hyperparameters.emplace_back().real = h[i];
      std::vector<TestArray> arrays;
      for (const Shape& shape :
           {Shape{10}, Shape{}, Shape{0}, Shape{300, 257}, Shape{0}, Shape{3}}) {
        operations::UpdateTarget target;
        for (int k = 0; k < 2 + rule.states; ++k) {
          TestArray& array = arrays.emplace_back(shape, d);
          array.fill(static_cast<std::uint64_t>(k));
          for (std::int64_t i = 0; k == 3 && i < array.size(); ++i) {  // a sum of squares
            array.set(i, std::abs(array.real(i)));
          }
        }
        const TestArray* first =
            arrays.data() + arrays.size() - static_cast<std::size_t>(2 + rule.states);
        target.parameter = first[0].operand();
        target.gradient = first[1].operand();
        for (int k = 0; k < rule.states; ++k) target.states.push_back(first[2 + k].operand());
        op.targets.push_back(target);
      }
      auto width = static_cast<std::size_t>(rule.states) + 2;
      std::vector<std::vector<double>> before;
      for (const TestArray& array : arrays) {
        std::vector<double>& values = before.emplace_back();
        for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(array.real(i));
      }
      op.run_cpu();
      for (std::size_t a = 0; a < arrays.size(); a += width) {
        for (std::size_t i = 0; i < before[a].size(); ++i) {
          double p = before[a][i], g = before[a + 1][i], s0 = 0, s1 = 0;
          if (rule.id == UpdateRuleId::sgd) p -= h[0] * g;
          if (rule.id == UpdateRuleId::momentum_sgd) {
            s0 = h[1] * before[a + 2][i] - h[0] * g;
            p += s0;
          }
          if (rule.id == UpdateRuleId::adam) {
            s0 = before[a + 2][i] + h[1] * (g - before[a + 2][i]);
            s1 = before[a + 3][i] + h[2] * (g * g - before[a + 3][i]);
            p -= h[4] * (h[0] * s0 / (std::sqrt(s1) + h[3]) + h[5] * p);
          }
          auto at = static_cast<std::int64_t>(i);
          double close = 20 * tolerance(d);
          ASSERT_NEAR(arrays[a].real(at), p, close * (1 + std::abs(p)));
          EXPECT_EQ(arrays[a + 1].real(at), g);
          const double states[] = {s0, s1};
          for (int k = 0; k < rule.states; ++k) {
            ASSERT_NEAR(arrays[a + 2 + static_cast<std::size_t>(k)].real(at), states[k], close);
          }
        }
      }
    }
  }
}

TEST(CpuTransfer, Copies) {
  TestArray in({1000, 70}, float32), out({1000, 70}, float32);
  in.fill(1);
  operations::Transfer op;
  op.in = in.operand();
  op.out = out.operand();
  op.run_cpu();
  EXPECT_EQ(in.bytes(), out.bytes());
}

}  // namespace
}  // namespace rensa::testing
