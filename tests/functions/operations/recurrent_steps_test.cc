// All times of a recurrent layer as one operation: what it gives, and what it keeps for a gradient.
#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/operations/recurrent_steps/teams.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::RecurrentCell;
using operations::RecurrentSteps;

constexpr std::int64_t kTimes = 4;

/// Operands, and in `y`, `kept` and `gates` what is to become of them.
struct Layer {
  RecurrentCell cell;
  bool backward;
  std::int64_t directions;
  Array weight, bias, h, c, gates, y, kept;

  /// Of `rows` sequences in each direction.
  Layer(RecurrentCell cell, bool backward, std::int64_t n, std::int64_t rows,
        std::int64_t directions)
      : cell(cell), backward(backward), directions(directions) {
    auto random = [](const Shape& shape) {
      return xp::random::uniform(-1, 1, shape, float32, cpu()).astype(float64);
    };
    rows *= directions;
    weight = random({directions, parts() * n, n}) / std::sqrt(static_cast<double>(n));
    bias = random({directions, parts() * n});
    h = random({rows, n}), c = random({rows, n});
    gates = random({kTimes, rows, parts() * n});
    y = xp::zeros({kTimes, rows, n}, float64, cpu()), kept = xp::zeros_like(y);
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
    op.backward = backward, op.directions = directions;
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
    for (std::int64_t d = 0; d < directions; ++d) follow(d);
  }

 private:
  /// Those of one direction.
  void follow(std::int64_t d) {
    Slice ours(d, none, directions);
    Array last = h[{ours}], memory = c[{ours}];
    for (std::int64_t i = 0; i < kTimes; ++i) {
      std::int64_t t = backward ? kTimes - 1 - i : i;
      Array u = xp::matmul(last, weight[{d}].transpose());
      if (is_gru()) u = u + bias[{d}];
      Array x = gates[{t, ours}];
      if (is_lstm()) {
        Array a = xp::tanh(part(x, 0) + part(u, 0)), in = sigmoid(part(x, 1) + part(u, 1)),
              f = sigmoid(part(x, 2) + part(u, 2)), o = sigmoid(part(x, 3) + part(u, 3));
        memory = a * in + f * memory, last = o * xp::tanh(memory);
        keep(t, ours, memory, {a, in, f, o});
      } else if (is_gru()) {
        Array r = sigmoid(part(x, 1) + part(u, 0)), z = sigmoid(part(x, 2) + part(u, 1)),
              made = xp::tanh(part(x, 0) + r * part(u, 2));
        last = (1 - z) * made + z * last;
        keep(t, ours, part(u, 2), {made, r, z});
      } else {
        last = cell == RecurrentCell::tanh ? xp::tanh(x + u) : xp::maximum(x + u, 0);
      }
      xp::copyto(y[{t, ours}], last);
    }
  }
  Array part(const Array& a, std::int64_t k) const {
    std::int64_t n = h.shape(1);
    return a[{Slice(), Slice(k * n, (k + 1) * n)}];
  }
  static Array sigmoid(const Array& a) { return 1 / (1 + xp::exp(-a)); }
  void keep(std::int64_t t, const Slice& ours, const Array& beside,
            const std::vector<Array>& of_parts) {
    xp::copyto(kept[{t, ours}], beside);
    xp::copyto(gates[{t, ours}], xp::concatenate(of_parts, 1));
  }
};

void expect_close(const Array& got, const Array& want, const char* what) {
  Array off = xp::abs(got.to(cpu()).astype(float64) - want);
  EXPECT_LE(off.max().item<double>(), 1e-5 * (1 + xp::abs(want).max().item<double>())) << what;
}

struct Size {
  std::int64_t units, rows, directions = 1;
};

// Few units are one block's of a GPU; of more, blocks have some each (teams.h): units and sequences
// that fill their tiles and that do not, several tiles for a team, rows that are no vectors.
TEST(RecurrentSteps, AreThoseOfTheFormulas) {
  const Size sizes[] = {{1, 3},    {5, 3},       {32, 3},  {40, 3},   {64, 3},
                        {5, 3, 2}, {65, 1},      {96, 16}, {130, 20}, {200, 37, 2},
                        {512, 64}, {512, 60, 2}, {650, 20}};
  xp::random::seed(3);
  for (Device device : testing::test_devices()) {
    for (RecurrentCell cell :
         {RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::tanh, RecurrentCell::relu}) {
      for (auto [units, rows, directions] : sizes) {
        bool few = units * rows < 10000;
        if (!few && device.is_cpu()) continue;  // nothing that fewer have not
        if (device.is_cuda() &&
            !RecurrentSteps::fits(device, cell, rows * directions, units, directions)) {
          continue;
        }
        for (bool backward : {false, true}) {
          SCOPED_TRACE(fmt::format("{}, cell {}, {} units, {} rows, {} directions{}", device.str(),
                                   static_cast<int>(cell), units, rows, directions,
                                   backward ? ", backward" : ""));
          Layer layer(cell, backward, units, rows, directions);
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

// An H100 takes a long short-term memory of 650 units, and 512 of 64 sequences in both directions.
TEST(RecurrentSteps, BlocksShareALayerOfSomeHundredUnits) {
  constexpr int kProcessors = 132, kShared = 227 * 1024;
  auto teams = [](int parts, std::int64_t rows, std::int64_t units, std::int64_t directions = 1) {
    return RecurrentTeams(parts, rows, units, directions, kProcessors, kShared).teams;
  };
  EXPECT_EQ(teams(4, 64, 512), 4);
  EXPECT_EQ(teams(4, 128, 512, 2), 2);
  EXPECT_EQ(teams(4, 20, 650), 2);
  EXPECT_EQ(teams(1, 64, 1024), 2);
  EXPECT_EQ(teams(1, 16, 1800), 1);
  EXPECT_EQ(teams(1, 16, 1850), 0);  // shared memory
  EXPECT_EQ(teams(4, 16, 730), 0);
  EXPECT_EQ(teams(4, 16 * 8, 512), 4);  // two tiles a team
  EXPECT_EQ(teams(4, 16 * 8 + 1, 512), 0);
  EXPECT_EQ(RecurrentTeams(4, 64, 512, 1, 16, kShared).teams, 0);
  EXPECT_FALSE(RecurrentSteps::fits(cpu(), RecurrentCell::lstm, 64, 512, 1));
}

}  // namespace
}  // namespace rensa
