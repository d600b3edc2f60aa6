// A product, the loss's gradient of what it gives, and the gradient of its operand, as one
// operation and one after the other: the same bits, whatever the numbers and labels, wherever the
// arrays lie.
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/device/launcher.h"
#include "tests/graph/rewritten.h"

namespace rensa {
namespace {

struct Scores {
  Array x, w, b, t, gy, y, gx, back;
  operations::ScoresAndGrad op;

  /// `skip` floats lie before x, w and the gradient of x.
  Scores(std::int64_t rows, std::int64_t units, std::int64_t classes, std::int64_t skip,
         Dtype labels, Device device)
      : op({}, {}) {
    auto placed = [&](std::int64_t lines, std::int64_t width) {
      Array all = xp::random::normal(0, 1, {skip + lines * width}, float32, device);
      return all[{Slice(skip, skip + lines * width)}].reshape({lines, width});
    };
    x = placed(rows, units);
    w = placed(classes, units);
    back = placed(rows, units);
    b = xp::random::normal(0, 1, {classes}, float32, device);
    // Ignored ones, and beyond the classes.
    t = (xp::arange(rows) % (classes + 3) - 2).astype(labels).to(device);
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
  }
  void add_back(bool gate) {
    op.back.a = gx.operand();
    op.back.b = w.operand();
    op.back.c = back.operand();
    op.back.alpha = -0.75;
    if (gate) op.back.gate = x.operand();
  }
  /// Holds the operation against its steps.
  void check() {
    operations::ScoresAndGrad steps = op;
    launch(steps.product);
    launch(steps.grad);
    if (op.has_back()) launch(steps.back);
    std::string of_y = testing::bytes_of(y), of_gx = testing::bytes_of(gx),
                of_back = testing::bytes_of(back);
    y.fill(7);
    gx.fill(7);
    if (op.has_back()) back.fill(7);
    launch(op);
    EXPECT_TRUE(testing::bytes_of(y) == of_y);
    EXPECT_TRUE(testing::bytes_of(gx) == of_gx);
    EXPECT_TRUE(testing::bytes_of(back) == of_back);
  }
};

TEST(ScoresAndGrad, HasTheBitsOfTheSteps) {
  for (Device device : testing::test_devices()) {
    // Of up to 1024 units a thread has some of a row once, or of unaligned ones of up to 256.
    for (auto [rows, units] :
         {std::pair(1, 132), {100, 132}, {100, 1000}, {100, 1300}, {301, 132}}) {
      for (std::int64_t classes : {2, 10, 16, 20}) {
        for (std::int64_t skip : {0, 1, 4}) {
          for (auto [has_back, gate] : {std::pair(false, false), {true, false}, {true, true}}) {
            SCOPED_TRACE((device.str() + " " + Shape{rows, units, classes, skip}.str()));
            Scores all(rows, units, classes, skip, classes == 10 ? int64 : int32, device);
            if (has_back) all.add_back(gate);
            all.op.grad.normalize = skip != 4;
            if (rows > 1) {
              EXPECT_EQ(all.op.product.has_rows(), device.is_cuda() && classes <= 16);
            }
            all.check();
          }
        }
      }
    }
  }
}

TEST(ScoresAndGrad, OfWhatIsNoNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    for (std::int64_t rows : {30, 301}) {
      SCOPED_TRACE(rows);
      Scores all(rows, 132, 10, 0, int32, device);
      all.add_back(true);
      all.x[{3, 5}].fill(std::numeric_limits<float>::quiet_NaN());
      all.x[{7, 0}].fill(kInfinity);
      all.x[{11, 0}].fill(-kInfinity);
      all.x[{Slice(20, 24)}].fill(0);
      all.b[{4}].fill(-kInfinity);
      all.check();
      all.b.fill(-kInfinity);
      all.check();
    }
  }
}

}  // namespace
}  // namespace rensa
