// All times of a recurrent layer as one operation: what it gives, and what it keeps for a gradient.
#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/device/launcher.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::RecurrentCell;
using operations::RecurrentSteps;

constexpr std::int64_t kTimes = 4, kRows = 3;

/// Operands, and in `y`, `kept` and `gates` what is to become of them.
struct Layer {
  RecurrentCell cell;
  bool backward;
  Array weight, bias, h, c, gates, y, kept;

  Layer(RecurrentCell cell, bool backward, std::int64_t n) : cell(cell), backward(backward) {
    auto random = [](const Shape& shape) {
      return xp::random::uniform(-1, 1, shape, float32, cpu()).astype(float64);
    };
    weight = random({parts() * n, n}), bias = random({parts() * n});
    h = random({kRows, n}), c = random({kRows, n});
    gates = random({kTimes, kRows, parts() * n});
    y = xp::zeros({kTimes, kRows, n}, float64, cpu()), kept = xp::zeros_like(y);
  }
  bool is_lstm() const { return cell == RecurrentCell::lstm; }
  bool is_gru() const { return cell == RecurrentCell::gru; }
  std::int64_t parts() const { return is_lstm() ? 4 : is_gru() ? 3 : 1; }

  /// What the operation makes of them on a device.
  Layer run(Device device) const {
    Layer made = *this;
    for (Array* a :
         {&made.weight, &made.bias, &made.h, &made.c, &made.gates, &made.y, &made.kept}) {
      *a = a->astype(float32).to(device);
    }
    std::int64_t n = h.shape(1);
    RecurrentSteps op(cell);
    op.backward = backward;
    op.weight = made.weight.operand(), op.h = made.h.operand();
    if (is_gru()) op.bias = made.bias.operand();
    if (is_lstm()) op.c = made.c.operand();
    Array gates = made.gates.reshape({-1, parts() * n}), y = made.y.reshape({-1, n}),
          kept = made.kept.reshape({-1, n});
    op.gates = gates.operand(), op.y = y.operand();
    if (is_lstm() || is_gru()) op.kept = kept.operand();
    launch(op);
    return made;
  }

  /// The same in float64, time by time.
  void follow() {
    Array last = h, memory = c;
    for (std::int64_t i = 0; i < kTimes; ++i) {
      std::int64_t t = backward ? kTimes - 1 - i : i;
      Array u = xp::matmul(last, weight.transpose());
      if (is_gru()) u = u + bias;
      Array x = gates[{t}];
      if (is_lstm()) {
        Array a = xp::tanh(part(x, 0) + part(u, 0)), in = sigmoid(part(x, 1) + part(u, 1)),
              f = sigmoid(part(x, 2) + part(u, 2)), o = sigmoid(part(x, 3) + part(u, 3));
        memory = a * in + f * memory, last = o * xp::tanh(memory);
        keep(t, memory, {a, in, f, o});
      } else if (is_gru()) {
        Array r = sigmoid(part(x, 1) + part(u, 0)), z = sigmoid(part(x, 2) + part(u, 1)),
              made = xp::tanh(part(x, 0) + r * part(u, 2));
        last = (1 - z) * made + z * last;
        keep(t, part(u, 2), {made, r, z});
      } else {
        last = cell == RecurrentCell::tanh ? xp::tanh(x + u) : xp::maximum(x + u, 0);
      }
      xp::copyto(y[{t}], last);
    }
  }

 private:
  Array part(const Array& a, std::int64_t k) const {
    std::int64_t n = h.shape(1);
    return a[{Slice(), Slice(k * n, (k + 1) * n)}];
  }
  static Array sigmoid(const Array& a) { return 1 / (1 + xp::exp(-a)); }
  void keep(std::int64_t t, const Array& beside, const std::vector<Array>& of_parts) {
    xp::copyto(kept[{t}], beside);
    xp::copyto(gates[{t}], xp::concatenate(of_parts, 1));
  }
};

void expect_close(const Array& got, const Array& want, const char* what) {
  Array off = xp::abs(got.to(cpu()).astype(float64) - want);
  EXPECT_LE(off.max().item<double>(), 1e-5 * (1 + xp::abs(want).max().item<double>())) << what;
}

TEST(RecurrentSteps, AreThoseOfTheFormulas) {
  xp::random::seed(3);
  for (Device device : testing::test_devices()) {
    for (RecurrentCell cell :
         {RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::tanh, RecurrentCell::relu}) {
      for (std::int64_t n : {1, 5, 32, 40, 64}) {
        for (bool backward : {false, true}) {
          SCOPED_TRACE(device.str() + ", cell " + std::to_string(static_cast<int>(cell)) + ", " +
                       std::to_string(n) + (backward ? " backward" : ""));
          Layer layer(cell, backward, n);
          layer.weight *= 1 / std::sqrt(static_cast<double>(n));
          Layer got = layer.run(device);
          layer.follow();
          expect_close(got.y, layer.y, "y");
          expect_close(got.kept, layer.kept, "kept");
          expect_close(got.gates, layer.gates, "gates");
        }
      }
    }
  }
}

}  // namespace
}  // namespace rensa
