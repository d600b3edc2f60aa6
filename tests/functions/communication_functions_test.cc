// Collectives in graphs: gradients and those of gradients, against what they are by hand.
#include "rensa/functions/communication_functions.h"

#include <gtest/gtest.h>

#include <functional>

#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Array numbers(int rank) { return xp::arange(4, float64) * 0.5 + (1.0 + rank); }
std::vector<double> values(const Array& a) { return a.to_vector<double>(); }

/// The sum over the ranks of f(rank), in each place.
Array over_ranks(int size, const std::function<Array(int)>& f) {
  Array sum = f(0);
  for (int r = 1; r < size; ++r) sum = sum + f(r);
  return sum;
}

// Each rank has loss_r = sum(w_r * f(x)^2), w_r = rank + 1: gradients of the sum of all losses.
TEST(CommunicationFunctions, AllReduce) {
  for (int size : {1, 2, 4}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      double w = c.rank() + 1, all = size * (size + 1) / 2.0;
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
        double share = op == ReduceOp::sum ? 1 : 1.0 / size;
        Variable x(numbers(c.rank()), true);
        Variable y = F::allreduce(c, x, op);
        Array sum = over_ranks(size, numbers) * share;
        EXPECT_EQ(values(y.array()), values(sum));
        Variable gx = grad({F::sum(y * y) * w}, {x}, {}, true)[0];
        EXPECT_TRUE(xp::allclose(gx.array(), 2 * all * share * sum));
        // d/dx of sum over ranks of sum(gx): each gx is 2 all share y.
        Variable ggx = grad({F::sum(gx)}, {x})[0];
        EXPECT_TRUE(
            xp::allclose(ggx.array(), xp::full({4}, 2 * all * share * share * size, float64)));
      }
      EXPECT_THROW(F::allreduce(c, Variable(numbers(0)), ReduceOp::max), NotImplementedError);
    });
  }
}

TEST(CommunicationFunctions, Broadcast) {
  testing::run_ranks(3, [](const Communicator& c) {
    Variable x(numbers(c.rank()), true);
    Variable y = F::bcast(c, x, 1);
    EXPECT_EQ(values(y.array()), values(numbers(1)));
    double w = c.rank() + 1;
    Variable gx = grad({F::sum(y * y) * w}, {x}, {}, true)[0];
    Array want = c.rank() == 1 ? 12 * numbers(1) : xp::zeros({4}, float64);
    EXPECT_TRUE(xp::allclose(gx.array(), want));
    Variable ggx = grad({F::sum(gx)}, {x})[0];
    EXPECT_TRUE(xp::allclose(ggx.array(), xp::full({4}, c.rank() == 1 ? 12 : 0, float64)));
  });
  testing::run_ranks(2, [](const Communicator& c) {
    Variable x(xp::ones({c.rank() + 2}), true);
    if (c.rank() == 1) {
      EXPECT_THROW(F::bcast(c, x, 0), ShapeError);
    } else {
      F::bcast(c, x, 0);
    }
  });
}

TEST(CommunicationFunctions, AllGatherAndAllToAll) {
  testing::run_ranks(3, [](const Communicator& c) {
    double w = c.rank() + 1;
    Variable x(numbers(c.rank()), true);
    Variables all = F::allgather(c, x);
    ASSERT_EQ(all.size(), 3u);
    Variable loss = constant(xp::zeros({}, float64));
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(values(all[static_cast<std::size_t>(r)].array()), values(numbers(r)));
      loss = loss + F::sum(F::exp(all[static_cast<std::size_t>(r)])) * w;
    }
    loss.backward();
    EXPECT_TRUE(xp::allclose(x.grad(), 6.0 * F::exp(constant(numbers(c.rank()))).array()));
  });
  testing::run_ranks(3, [](const Communicator& c) {
    // Rank r gives rank s an array of s + 1 elements.
    Variables xs;
    for (int s = 0; s < 3; ++s)
      xs.emplace_back(xp::full({s + 1}, 10.0 * c.rank() + s, float64), true);
    Variables ys = F::alltoall(c, xs);
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(values(ys[static_cast<std::size_t>(r)].array()),
                std::vector<double>(static_cast<std::size_t>(c.rank() + 1), 10.0 * r + c.rank()));
    }
    // Of what came one is not used: its gradient is zero where it came from.
    auto next = static_cast<std::size_t>((c.rank() + 1) % 3);
    Variable loss = F::sum(ys[next] * ys[next]);
    loss.backward();
    for (int s = 0; s < 3; ++s) {
      bool used = (s + 1) % 3 == c.rank();
      EXPECT_EQ(values(xs[static_cast<std::size_t>(s)].grad()),
                std::vector<double>(static_cast<std::size_t>(s + 1),
                                    used ? 2 * (10.0 * c.rank() + s) : 0.0));
    }
  });
}

}  // namespace
}  // namespace rensa
