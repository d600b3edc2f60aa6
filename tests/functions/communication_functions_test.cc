// Collectives in graphs: gradients and those of gradients, against what they are by hand.
#include "rensa/functions/communication_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/linear.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

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

// One computation over all ranks: backward starts on each, from its loss or its delegate.
constexpr BackwardOptions kTwice{.enable_double_backprop = true};

Variable leaf_delegate() { return Variable(xp::zeros({0})); }
/// The gradient that is there, taken away for the next backward.
Variable taken_gradient(const Variable& x) {
  Variable gx = x.grad_var();
  x.cleargrad();
  return gx;
}

TEST(CommunicationFunctions, Gather) {
  for (int size : {1, 2, 4}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      int root = size - 1;
      double w = c.rank() + 1;
      Variable x(numbers(c.rank()), true);
      Variables ys = F::gather(c, x, root);
      Variable start;
      if (c.rank() == root) {  // the sum of (r + 1) x_r^3, but for rank 0's
        ASSERT_EQ(ys.size(), static_cast<std::size_t>(size));
        start = F::sum(F::sin(constant(numbers(0))));
        for (int r = 0; r < size; ++r) {
          const Variable& y = ys[static_cast<std::size_t>(r)];
          EXPECT_EQ(values(y.array()), values(numbers(r)));
          if (r > 0 || size == 1) start = start + F::sum(y * y * y) * (r + 1.0);
        }
      } else {
        ASSERT_EQ(ys.size(), 1u);
        start = ys[0];
        EXPECT_EQ(start.shape(), (Shape{0}));
      }
      bool used = c.rank() > 0 || size == 1;
      start.backward(kTwice);
      Variable gx = taken_gradient(x);
      EXPECT_TRUE(xp::allclose(gx.array(), (used ? 3 * w : 0) * x.array() * x.array()));
      // The sum of all ranks' gx^2: 9 w^2 x^4.
      F::sum(gx * gx).backward();
      Array cube = x.array() * x.array() * x.array();
      EXPECT_TRUE(xp::allclose(x.grad(), (used ? 36 * w * w : 0) * cube));
    });
  }
}

// Gradients that depend on nothing are differentiated by all ranks all the same.
TEST(CommunicationFunctions, GatherOfWhatIsLinear) {
  testing::run_ranks(2, [](const Communicator& c) {
    Variable x(numbers(c.rank()), true);
    Variables ys = F::gather(c, x);
    Variable start = c.rank() == 0 ? F::sum(ys[0] + 2.0 * ys[1]) : ys[0];
    start.backward(kTwice);
    Variable gx = taken_gradient(x);
    F::sum(gx * x).backward();
    EXPECT_EQ(values(x.grad()), std::vector<double>(4, c.rank() + 1.0));
  });
}

TEST(CommunicationFunctions, Scatter) {
  for (int size : {1, 2, 4}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      int root = size / 2;
      double w = c.rank() + 1;
      Variables xs;
      for (int r = 0; r < size && c.rank() == root; ++r) xs.emplace_back(numbers(r), true);
      if (c.rank() != root) xs.push_back(leaf_delegate());
      Variable y = F::scatter(c, xs, root);
      EXPECT_EQ(values(y.array()), values(numbers(c.rank())));
      (F::sum(y * y * y) * w).backward(kTwice);
      if (c.rank() != root) return taken_gradient(xs[0]).backward();
      Variable squares = constant(xp::zeros({}, float64));
      for (int r = 0; r < size; ++r) {
        Variable gx = taken_gradient(xs[static_cast<std::size_t>(r)]);
        EXPECT_TRUE(xp::allclose(gx.array(), 3 * (r + 1.0) * numbers(r) * numbers(r)));
        squares = squares + F::sum(gx * gx);
      }
      squares.backward();
      for (int r = 0; r < size; ++r) {
        Array x = numbers(r), want = 36.0 * (r + 1) * (r + 1) * x * x * x;
        EXPECT_TRUE(xp::allclose(xs[static_cast<std::size_t>(r)].grad(), want));
      }
    });
  }
  // Nothing has to be given, and what is given needs no gradient.
  testing::run_ranks(2, [](const Communicator& c) {
    Variables xs;
    if (c.rank() == 0) xs = {constant(numbers(0)), Variable(numbers(1), true)};
    Variable y = F::scatter(c, xs);
    F::sum(y * y).backward();
    if (c.rank() == 0) {
      EXPECT_TRUE(xp::allclose(xs[1].grad(), 2 * numbers(1)));
    }
  });
}

// Each rank squares what the one before gives it: x^(2^(size - 1)) on the last.
TEST(CommunicationFunctions, AChainOfMessages) {
  for (int size : {2, 4}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      int last = size - 1;
      double n = 1 << last;
      Variable x(numbers(0) * 0.5, true), d = leaf_delegate();
      Variable y = x;
      if (c.rank() > 0) {
        Variable came = F::recv(c, c.rank() - 1, d);
        y = came * came;
      }
      Variable start = c.rank() < last ? F::send(c, y, c.rank() + 1) : F::sum(y);
      EXPECT_EQ(start.shape(), c.rank() < last ? Shape{0} : Shape{});
      start.backward(kTwice);
      if (c.rank() > 0) {
        EXPECT_EQ(d.grad().shape(), (Shape{0}));
        return taken_gradient(d).backward();
      }
      Variable gx = taken_gradient(x);
      EXPECT_TRUE(xp::allclose(gx.array(), n * xp::power(x.array(), n - 1)));
      F::sum(gx).backward();
      EXPECT_TRUE(xp::allclose(x.grad(), n * (n - 1) * xp::power(x.array(), n - 2)));
    });
  }
}

TEST(CommunicationFunctions, ANetworkOverTwoRanks) {
  L::Linear first(4, 6), second(6, 3);
  Variable x = constant((xp::arange(20, float32) * 7.f % 11.f - 5.f).reshape({5, 4}));
  Variable t = constant(xp::arange(5, int64) % 3);
  F::softmax_cross_entropy(second(F::relu(first(x))), t).backward();
  testing::run_ranks(2, [&](const Communicator& comm) {
    L::Linear l1 = first, l2 = second;
    if (comm.rank() == 0) {
      Variable sent = F::send(comm, F::relu(l1(x)), 1);
      sent.backward();  // waits for the gradient
      EXPECT_TRUE(xp::allclose(l1.W.grad(), first.W.grad()));
    } else {
      Variable loss = F::softmax_cross_entropy(l2(F::recv(comm, 0)), t);
      loss.backward();  // sends it
      EXPECT_TRUE(xp::allclose(l2.W.grad(), second.W.grad()));
    }
  });
}

TEST(CommunicationFunctions, ANetworkOverTwoGpus) {
  RENSA_NEEDS_GPUS(2);
  L::Linear first(4, 6), second(6, 3);
  Variable x = constant((xp::arange(20, float32) * 7.f % 11.f - 5.f).reshape({5, 4}));
  Variable t = constant(xp::arange(5, int64) % 3);
  F::softmax_cross_entropy(second(F::relu(first(x))), t).backward();
  testing::run_ranks_on_gpus(2, [&](const Communicator& comm) {
    const L::Linear& whole = comm.rank() == 0 ? first : second;
    L::Linear l = whole;
    l.to_device(comm.device());
    if (comm.rank() == 0) {
      F::send(comm, F::relu(l(x.to(comm.device()))), 1).backward();
    } else {
      Variable h = F::recv(comm, 0);
      EXPECT_EQ(h.device(), comm.device());
      F::softmax_cross_entropy(l(h), t.to(comm.device())).backward();
    }
    // Gradients of samples nearly cancel here and there.
    EXPECT_TRUE(xp::allclose(l.W.grad().to(cpu()), whole.W.grad(), 1e-5, 1e-6));
  });
}

TEST(CommunicationFunctions, ThereAndBack) {
  for (bool linear : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      if (c.rank() == 1) {
        Variable d = leaf_delegate(), u = F::recv(c, 0, d);
        F::send(c, linear ? 3.0 * u : u * u, 0).backward(kTwice);
        return taken_gradient(d).backward();
      }
      Variable x(numbers(0), true);
      Variable z = F::recv(c, 1, F::send(c, x, 1));
      Array a = x.array();
      EXPECT_TRUE(xp::allclose(z.array(), linear ? 3 * a : a * a));
      F::sum(linear ? z : z * z).backward(kTwice);
      Variable gx = taken_gradient(x);
      EXPECT_TRUE(xp::allclose(gx.array(), linear ? xp::full({4}, 3., float64) : 4 * a * a * a));
      F::sum(linear ? gx * x : gx * gx).backward();
      Array want = linear ? xp::full({4}, 3., float64) : 96 * xp::power(a, 5);
      EXPECT_TRUE(xp::allclose(x.grad(), want));
    });
  }
}

TEST(CommunicationFunctions, MessagesInOrder) {
  // Of an x without a gradient the receiver's backward sends one all the same.
  testing::run_ranks(2, [](const Communicator& c) {
    if (c.rank() == 0) {
      Variable a(numbers(1), true);
      Variable first = F::send(c, a, 1);
      Variables rest = F::pseudo_connect(first, {constant(numbers(2)), a});
      EXPECT_EQ(values(rest[1].array()), values(a.array()));
      Variable second = F::send(c, rest[0], 1);
      (F::sum(second) + F::sum(F::cast(rest[1], float32))).backward();
      EXPECT_TRUE(xp::allclose(a.grad(), 2 * numbers(1) * numbers(2) + 1));
    } else {
      Variable a = F::recv(c, 0), b = F::recv(c, 0, a);
      F::sum(a * a * b).backward();
    }
  });
  // Gradients that come in another order.
  testing::run_ranks(2, [](const Communicator& c) {
    if (c.rank() == 0) {
      Variable a(numbers(1), true), b(numbers(2), true);
      Variable first = F::send(c, a, 1), second = F::send(c, b, 1);
      EXPECT_THAT(testing::thrown<ValueError>([&] { first.backward(); }),
                  HasSubstr("F::pseudo_connect"));
    } else {
      Variable a = F::recv(c, 0), b = F::recv(c, 0);
      F::sum(b).backward();
    }
  });
}

TEST(CommunicationFunctions, WhatHasNoGradient) {
  testing::run_ranks(2, [](const Communicator& c) {
    Variable labels(xp::arange(3) + c.rank());
    Variables all = F::gather(c, labels);
    EXPECT_FALSE(all[0].requires_grad());
    if (c.rank() == 0) {
      EXPECT_EQ(values(all[1].array()), (std::vector<double>{1, 2, 3}));
    }
  });
  testing::run_ranks(2, [](const Communicator& c) {
    if (c.rank() == 0) {
      c.send(numbers(0), 1);
    } else {
      EXPECT_THAT(testing::thrown<ValueError>([&] { F::recv(c, 0); }),
                  HasSubstr("Communicator::send"));
    }
  });
  testing::run_ranks(1, [](const Communicator& c) {
    Variable x(numbers(0), true);
    EXPECT_THROW(F::scatter(c, {x, x}), ShapeError);
    EXPECT_THROW(F::gather(c, x, 1), IndexError);
    EXPECT_THROW(F::send(c, x, 0), ValueError);
    EXPECT_THROW(F::recv(c, 0), ValueError);
  });
  testing::run_ranks(2, [](const Communicator& c) {
    Variable x(numbers(0), true);
    if (c.rank() == 1) {
      EXPECT_THROW(F::scatter(c, {x, x}), ShapeError);
    }
  });
}

// --- Parts of one computation ---

Array grid() { return (xp::arange(24, float64) * 7. % 11. * 0.1 - 0.5).reshape({3, 8}); }
double factor(int rank) { return 0.5 + rank; }

/// The gradient of `loss` by x, and that of the sum of its squares.
std::pair<Array, Array> two_gradients(const std::function<Variable(const Variable&)>& loss) {
  Variable x(grid(), true);
  Variable gx = grad({loss(x)}, {x}, {}, true)[0];
  return {gx.array(), grad({F::sum(gx * gx)}, {x})[0].array()};
}

void expect_equal(const std::pair<Array, Array>& got, const std::pair<Array, Array>& want) {
  EXPECT_TRUE(xp::allclose(got.first, want.first));
  EXPECT_TRUE(xp::allclose(got.second, want.second));
}

TEST(CommunicationFunctions, ToPartsAndTheirSum) {
  for (int size : {1, 2, 4}) {
    auto want = two_gradients([&](const Variable& x) {
      Variable y = F::tanh(x * factor(0));
      for (int r = 1; r < size; ++r) y = y + F::tanh(x * factor(r));
      return F::sum(y * y * y);
    });
    testing::run_ranks(size, [&](const Communicator& c) {
      auto got = two_gradients([&](const Variable& x) {
        Variable part = F::tanh(F::to_parts(c, x) * factor(c.rank()));
        Variable y = F::sum_of_parts(c, part);
        EXPECT_TRUE(size > 1 || xp::array_equal(y.array(), part.array()));
        return F::sum(y * y * y);
      });
      expect_equal(got, want);
    });
  }
}

TEST(CommunicationFunctions, PartsAlongAnAxis) {
  for (int size : {1, 2, 4}) {
    for (int axis : {1, -1}) {
      auto want = two_gradients([&](const Variable& x) {
        Variables parts = F::split_axis(x, size, 1);
        for (int r = 0; r < size; ++r) {
          Variable& part = parts[static_cast<std::size_t>(r)];
          part = F::exp(part * factor(r));
        }
        Variable y = F::concat(parts, 1);
        return F::sum(y * y * constant(grid()));
      });
      testing::run_ranks(size, [&](const Communicator& c) {
        auto got = two_gradients([&](const Variable& x) {
          Variable part = F::part_of(c, x, axis);
          EXPECT_EQ(part.shape(), (Shape{3, 8 / size}));
          Variable y = F::join_parts(c, F::exp(part * factor(c.rank())), axis);
          return F::sum(y * y * constant(grid()));
        });
        expect_equal(got, want);
      });
    }
  }
  testing::run_ranks(2, [](const Communicator& c) {
    std::string text = testing::thrown<ShapeError>([&] { F::part_of(c, Variable(grid()), 0); });
    EXPECT_THAT(text, HasSubstr("3 elements"));
    EXPECT_THAT(text, HasSubstr("2 ranks"));
    EXPECT_THROW(F::part_of(c, Variable(grid()), 2), IndexError);
    EXPECT_THROW(F::join_parts(c, Variable(grid()), -3), IndexError);
    Variable uneven(xp::ones({2, c.rank() + 3}));
    text = testing::thrown<CommunicationError>([&] { F::join_parts(c, uneven, 1); });
    EXPECT_THAT(text, HasSubstr("(2, 3)"));
    EXPECT_THAT(text, HasSubstr("(2, 4)"));
  });
}

// Rank r sends q + 1 elements to rank q, and so does each.
std::vector<std::int64_t> sent_to(int size) {
  std::vector<std::int64_t> counts;
  for (int q = 0; q < size; ++q) counts.push_back(q + 1);
  return counts;
}

TEST(CommunicationFunctions, AllToAllV) {
  for (int size : {1, 2, 3}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      std::vector<std::int64_t> sent = sent_to(size);
      std::vector<std::int64_t> received(static_cast<std::size_t>(size), c.rank() + 1);
      // Element k for rank q of rank r: 100 r + 10 q + k.
      std::vector<double> given, came;
      for (int q = 0; q < size; ++q) {
        for (int k = 0; k <= q; ++k) given.push_back(100 * c.rank() + 10 * q + k);
        for (int k = 0; k <= c.rank(); ++k) came.push_back(100 * q + 10 * c.rank() + k);
      }
      Variable x(xp::array(given, float64));
      Variable y = F::alltoallv(c, x, sent, received);
      EXPECT_EQ(values(y.array()), came);
      Variable loss = F::sum(y * y * y);
      backward({loss}, {.enable_double_backprop = true});
      EXPECT_TRUE(xp::array_equal(x.grad(), x.array() * x.array() * 3.0));
      Variable gx = x.grad_var();
      x.cleargrad();
      backward({F::sum(gx)});
      EXPECT_TRUE(xp::array_equal(x.grad(), x.array() * 6.0));
    });
  }
}

// What each rank knows the sizes of beforehand is part of recorded steps.
TEST(CommunicationFunctions, SizesThatAreKnownAreRecorded) {
  for (int size : {1, 2, 3}) {
    testing::run_ranks(size, [&](const Communicator& c) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(size), 2);
      auto step = [&](const Variables& in) {
        Variable swapped = F::alltoallv(c, in[0], counts, counts);
        return Variables{F::join_parts(c, F::tanh(swapped).reshape({size, 2}), 1)};
      };
      CaptureCache cache({.replay_lists = true});
      for (int i = 0; i < 4; ++i) {
        Variable x = constant(xp::arange(2 * size, float32) * 0.1f + float(c.rank() + i));
        EXPECT_TRUE(xp::array_equal(cache.call(step, {x})[0].array(), step({x})[0].array()));
      }
      EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
    });
  }
}

}  // namespace
}  // namespace rensa
