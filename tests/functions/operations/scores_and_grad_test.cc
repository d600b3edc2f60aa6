// A product, the loss's gradient of what it gives, and the gradient of its operand, as one
// operation and one after the other: the same bits, wherever the arrays lie.
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/device/launcher.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Scores {
  Array x, w, b, t, gy, y, gx, back;
  operations::ScoresAndGrad op;

  /// `skip` floats lie before x, w and the gradient of x.
  Scores(std::int64_t rows, std::int64_t classes, std::int64_t skip, bool has_back, bool gate,
         Device device)
      : op({}, {}) {
    auto placed = [&](std::int64_t lines, std::int64_t width) {
      Array all = xp::random::normal(0, 1, {skip + lines * width}, float32, device);
      return all[{Slice(skip, skip + lines * width)}].reshape({lines, width});
    };
    constexpr std::int64_t kUnits = 132;
    x = placed(rows, kUnits);
    w = placed(classes, kUnits);
    back = placed(rows, kUnits);
    b = xp::random::normal(0, 1, {classes}, float32, device);
    t = (xp::arange(rows) % (classes + 1) - 1).astype(int32).to(device);
    gy = xp::full({}, 0.5, float32, device);
    y = xp::zeros({rows, classes}, float32, device);
    gx = xp::zeros({rows, classes}, float32, device);
    op.product.a = x.operand();
    op.product.b = w.transpose().operand();
    op.product.bias = b.operand();
    op.product.c = y.operand();
    op.grad.x = y.operand();
    op.grad.t = t.operand();
    op.grad.gy = gy.operand();
    op.grad.gx = gx.operand();
    if (!has_back) return;
    op.back.a = gx.operand();
    op.back.b = w.operand();
    op.back.c = back.operand();
    op.back.alpha = 0.75;
    if (gate) op.back.gate = x.operand();
  }
};

TEST(ScoresAndGrad, HasTheBitsOfTheSteps) {
  for (Device device : testing::test_devices()) {
    for (std::int64_t rows : {1, 100, 300}) {
      for (std::int64_t classes : {2, 10, 16, 20}) {
        for (std::int64_t skip : {0, 1, 4}) {
          for (auto [has_back, gate] : {std::pair(false, false), {true, false}, {true, true}}) {
            SCOPED_TRACE((device.str() + " " + Shape{rows, classes, skip}.str()));
            Scores all(rows, classes, skip, has_back, gate, device);
            operations::ScoresAndGrad steps = all.op;
            launch(steps.product);
            launch(steps.grad);
            if (has_back) launch(steps.back);
            Array y = all.y.copy(), gx = all.gx.copy(), back = all.back.copy();
            for (Array* written : {&all.y, &all.gx}) written->fill(7);
            if (has_back) all.back.fill(7);
            launch(all.op);
            EXPECT_TRUE(xp::array_equal(all.y, y));
            EXPECT_TRUE(xp::array_equal(all.gx, gx));
            EXPECT_TRUE(xp::array_equal(all.back, back));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rensa
