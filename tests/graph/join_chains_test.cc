// Joined chains of recorded lists against the lists as they were recorded.
#include "rensa/graph/join_chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "rensa/array/math.h"
#include "rensa/array/pointwise.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/plan.h"
#include "rensa/graph/rewrite.h"
#include "rensa/operations/pointwise/recurrent_rows.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Whether both hold the same bits. Of math functions a CPU's compiler chooses among libm's
/// versions, whose last bits differ; some rows have no logarithm of such numbers.
bool same(const Array& got, const Array& want, bool math) {
  if (math && got.device().is_cpu()) return xp::allclose(got, want, 1e-5, 1e-6, true);
  auto bytes = [](const Array& a) {
    Array host = a.ascontiguous().get();
    return std::string(static_cast<const char*>(host.data()),
                       static_cast<std::size_t>(host.nbytes()));
  };
  return bytes(got) == bytes(want);
}

/// What a program works on: arrays that it was given, and those that it made.
struct Memory {
  std::vector<Array> given, made;
  std::vector<Array> copies() const {
    std::vector<Array> result;
    for (const Array& a : given) result.push_back(a.copy());
    for (const Array& a : made) result.push_back(a.copy());
    return result;
  }
};

class JoinChains : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) {
      RENSA_NEEDS_GPUS(1);
    }
  }
  Device device() const { return GetParam(); }
  Array numbers(const Shape& shape, Dtype dtype = float32) const {
    return xp::random::normal(0, 4, shape, float64, device()).astype(dtype);
  }

  /// Records `program`, joins its chains, runs what is left on what the program was given, and
  /// holds all memory against the first run's, bit for bit. Returns what was joined;
  /// `operations_left` is the length of the list then.
  template <class Program>
  JoinedChains check(Memory& memory, Program&& program, bool math = false) {
    memory.made.clear();
    std::vector<Array> before;
    for (const Array& a : memory.given) before.push_back(a.copy());
    Recording recording;
    ThreadState::current().recorder = &recording;
    program(memory);
    ThreadState::current().recorder = nullptr;
    EXPECT_EQ(recording.failure(), "");
    std::vector<Array> want = memory.copies();
    JoinedChains joined = rewrite(recording);
    if (device().is_cpu()) joined = join_chains(recording);
    EXPECT_EQ(joined.failure, "");
    operations_left = recording.operations.size();
    Plan plan = make_plan(recording, true);
    for (std::size_t k = 0; k < before.size(); ++k) memory.given[k].assign(before[k]);
    for (Array& a : memory.made) a.fill(0);
    for (const auto& operation : recording.operations) launch(*operation);
    std::vector<Array> got = memory.copies();
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_TRUE(same(got[k], want[k], math)) << "array " << k;
    }
    return joined;
  }

  std::size_t operations_left = 0;
};

TEST_P(JoinChains, AChainIsOneKernelAndWritesOneArray) {
  for (Dtype dtype : {float32, float64, float16, int32, complex64}) {
    Memory memory{{numbers({3, 1001}, dtype)}, {}};
    JoinedChains joined = check(memory, [](Memory& m) {
      const Array& x = m.given[0];
      m.made = {(x * 2 + x) * x - 7};
    });
    EXPECT_EQ(joined.kernels, 1) << dtype_name(dtype);
    EXPECT_EQ(joined.operations, 4);
    EXPECT_EQ(operations_left, 1u);
  }
}

TEST_P(JoinChains, WhatOthersReadIsWritten) {
  Memory memory{{numbers({40, 50}), numbers({50})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    Array twice = m.given[0] * 2;
    Array shifted = twice + m.given[1];  // along the rows
    Array sums = twice.sum(0);           // ends the chain: it waits for `twice`
    Array positive = shifted > 0;
    m.made = {sums, xp::where(positive, twice, shifted)};
  });
  EXPECT_EQ(joined.operations, 4);
  EXPECT_EQ(joined.kernels, 2);
  EXPECT_EQ(operations_left, 3u);
}

TEST_P(JoinChains, NothingIsMovedPastWhatItNeeds) {
  Memory memory{{numbers({30, 30})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    Array a = m.given[0] * 2;
    Array sum = a.sum();
    m.made = {a - sum};  // reads both
  });
  EXPECT_EQ(joined.kernels, 0);
  // Memory that is written in between, and read before.
  joined = check(memory, [](Memory& m) {
    Array a = m.given[0] * 2;
    m.given[0].assign(xp::matmul(a, a));
    m.made = {a + 1};
  });
  EXPECT_EQ(joined.kernels, 0);
}

TEST_P(JoinChains, InPlace) {
  Memory memory{{numbers({999}), numbers({999})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    Array &sum = m.given[0], &x = m.given[1];
    sum += x;
    sum *= 3;
    m.made = {sum + x};
    sum -= 1;
    x += sum;
  });
  EXPECT_EQ(joined.kernels, 1);
  EXPECT_EQ(joined.operations, 5);
}

TEST_P(JoinChains, ViewsThatOverlapOddlyStayApart) {
  Memory memory{{numbers({1001}), numbers({40, 40})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    Array head = m.given[0][Slice(0, 1000)], tail = m.given[0][Slice(1, 1001)];
    head += 1;
    tail *= 2;                               // 999 elements of it are head's
    m.made = {m.given[1] + m.given[1].T()};  // not in the order of memory
    m.given[1] += 1;                         // which the transpose was to see as it had been
  });
  EXPECT_EQ(joined.kernels, 0);
  // Chains but for one operand, of which another thread has an element.
  joined = check(memory, [](Memory& m) {
    Array head = m.given[0][Slice(0, 1000)], tail = m.given[0][Slice(1, 1001)];
    Array twice = head * 2;
    tail += twice;
  });
  EXPECT_EQ(joined.kernels, 0);
  joined = check(memory, [](Memory& m) {
    Array head = m.given[0][Slice(0, 1000)], tail = m.given[0][Slice(1, 1001)];
    head += 1;
    m.made = {head * 3 + tail};
  });
  EXPECT_EQ(joined.operations, 2);  // head += 1 and head * 3
}

TEST_P(JoinChains, ConversionsAndBoolsOnTheWay) {
  Memory memory{{numbers({777}), numbers({777}, float16), numbers({777}, int32)}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    const Array &x = m.given[0], &half = m.given[1], &i = m.given[2];
    Array mixed = (x + half).astype(float16) * half;  // rounded in between
    m.made = {xp::logical_and(mixed > 1, i < 3), (mixed.astype(float64) * i).astype(bfloat16)};
  });
  EXPECT_EQ(joined.kernels, 1);
  EXPECT_EQ(operations_left, 1u);
}

TEST_P(JoinChains, ForwardAndBackwardOfElementwiseFunctions) {
  Memory memory{{numbers({65, 33}), numbers({65, 33})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    Variable x(m.given[0], true);
    Variable y = 0.5f * x * (1 + F::absolute(x + 0.25f * x * x * x));
    y.set_grad(m.given[1]);
    y.backward();
    m.made = {y.array(), x.grad()};
  });
  EXPECT_GT(joined.operations, 15);
  EXPECT_EQ(operations_left, 1u);
}

TEST_P(JoinChains, PointwiseRows) {
  Memory memory{{numbers({65, 33}), numbers({65, 33})}, {}};
  auto activations = [](Memory& m) {
    Variable x(m.given[0], true);
    Variable y = F::gelu(F::sigmoid(x) * F::leaky_relu(x, 0.3));
    y.set_grad(m.given[1]);
    y.backward();
    m.made = {y.array(), x.grad()};
  };
  JoinedChains joined = check(memory, activations, true);
  EXPECT_EQ(joined.kernels, 1);
  EXPECT_EQ(operations_left, 1u);
  // Several outputs, which nobody needs but what comes after.
  auto cell = [](Memory& m) {
    const Array &x = m.given[0], &c = m.given[1];
    Array i = x + 1, o = x * 0.5f;
    std::vector<xp::ElementwiseArgument> inputs{c, x, i, 0.25, o};
    std::vector<Array> y = detail::pointwise(pointwise::lstm, inputs);
    m.made = {y[1] * y[0], y[1] - c};
  };
  joined = check(memory, cell, true);
  EXPECT_EQ(joined.kernels, 1);
  EXPECT_EQ(joined.operations, 5);
  EXPECT_EQ(operations_left, 1u);
  // Every row there is, of numbers from 1 to 2, for which no difference loses most of its digits
  // (that of erfcx's gradient does from 4 on).
  auto all = [](Memory& m) {
    for (const PointwiseRow* row : pointwise::all_rows()) {
      Array x = xp::minimum(xp::abs(m.given[0]) * 0.25f, 1) + 1;
      Array y = xp::minimum(xp::abs(m.given[1]) * 0.125f, 1) + 1;
      std::vector<xp::ElementwiseArgument> inputs;
      for (int k = 0; k < row->inputs; ++k) inputs.emplace_back(k % 2 == 0 ? x : y);
      for (const Array& result : detail::pointwise(*row, inputs)) m.made.push_back(result * 2);
    }
  };
  EXPECT_GE(check(memory, all, true).operations,
            4 * static_cast<int>(std::size(pointwise::all_rows())));
  // One of several outputs that writes where it reads stays apart from what it works with.
  auto in_place = [](Memory& m) {
    Array &c = m.given[0], h = xp::empty_like(c);
    Array before = c * 2;
    std::vector<xp::ElementwiseArgument> inputs{c, before, 0.5, 0.25, before};
    detail::pointwise_into(pointwise::lstm, inputs, std::vector<Array>{c, h});
    m.made = {before, h, c * 2};
  };
  EXPECT_EQ(check(memory, in_place).kernels, 0);
}

// Gates that lie side by side in a sum, of which each is read by itself.
TEST_P(JoinChains, ViewsOfASumAreSumsOfViews) {
  Memory memory{{numbers({9, 4 * 17}), numbers({9, 4 * 17}), numbers({9, 17})}, {}};
  auto gate = [](const Array& x, int k) { return x.reshape({9, 17, 4})[{Slice(), Slice(), k}]; };
  auto cell = [&](Memory& m, const Array& x, int last) {
    std::vector<xp::ElementwiseArgument> inputs{m.given[2]};
    for (int k : {0, 1, 2, last}) inputs.emplace_back(gate(x, k));
    m.made = detail::pointwise(pointwise::lstm, inputs);
  };
  auto joined = [&](const char* what, auto&& program) {
    SCOPED_TRACE(what);
    return check(memory, program, true).operations;
  };
  EXPECT_EQ(joined("gates of a sum", [&](Memory& m) { cell(m, m.given[0] + m.given[1], 3); }), 2);
  EXPECT_EQ(operations_left, 1u);
  EXPECT_EQ(joined("a number beside", [&](Memory& m) { cell(m, m.given[0] * 0.5f, 3); }), 2);
  EXPECT_EQ(joined("not all of it is read", [&](Memory& m) { cell(m, m.given[0] + 1, 2); }), 2);
  auto twice = [&](Memory& m) {
    Array x = m.given[0] + m.given[1];
    cell(m, x, 3);
    m.made.push_back(x.sum({.axis = 0}));
  };
  EXPECT_EQ(joined("somebody else reads it", twice), 0);
  auto rows = [&](Memory& m) { cell(m, m.given[0] + m.given[1][0], 3); };
  EXPECT_EQ(joined("a row that is broadcast", rows), 0);
  auto kept = [&](Memory& m) {
    Array x = m.given[0] + m.given[1];
    cell(m, x, 3);
    m.made.push_back(x);
  };
  EXPECT_EQ(joined("it is kept", kept), 0);
}

TEST_P(JoinChains, TheGradientOfWhatGoesWithTheStepIsNotWritten) {
  Array x = numbers({40, 50}), seed = numbers({40, 50}), copy = xp::empty_like(x);
  for (bool outlives : {false, true}) {
    Recording recording;
    Variable kept;
    {
      RecorderScope scope(&recording);
      Variable leaf(x, true), y = F::tanh(leaf * leaf);
      y.set_grad(seed);
      y.backward();
      copy.assign(leaf.grad());
      if (outlives) kept = leaf;
    }
    recording.give_back_memory();
    rewrite(recording);
    if (device().is_cpu()) join_chains(recording);
    ASSERT_EQ(recording.operations.size(), 1u);
    auto is_write = [](const Access& access) { return access.write; };
    EXPECT_EQ(std::ranges::count_if(accesses(*recording.operations[0]), is_write),
              outlives ? 2 : 1);
    // The effects that are left: the seed's and y's gradients have gone with y.
    EXPECT_EQ(recording.actions.size(), outlives ? 1u : 0u);
  }
}

// A step that holds the last handle of memory which it updates from run to run.
TEST_P(JoinChains, WhatIsCarriedOverIsWritten) {
  Array state = numbers({100}), x = numbers({100}), y;
  const Storage* memory = state.storage().get();
  std::vector<double> want = (state * 0.5f).to_vector<double>();
  Recording recording;
  ThreadState::current().recorder = &recording;
  Array first = state;
  state = Array();
  first *= 0.5f;
  y = first + x;
  first = Array();
  ThreadState::current().recorder = nullptr;
  rewrite(recording);
  if (device().is_cpu()) join_chains(recording);
  ASSERT_EQ(recording.operations.size(), 1u);
  bool written = false;
  for (const Access& use : accesses(*recording.operations[0])) {
    written = written || (use.write && use.storage == memory);
  }
  EXPECT_TRUE(written);
}

TEST_P(JoinChains, AnyByteButZeroIsTrue) {
  Array bytes = xp::remainder(xp::arange(600, int64, device()), 5).astype(uint8);
  Memory memory{{bytes.view(bool_), bytes, numbers({600})}, {}};
  JoinedChains joined = check(memory, [](Memory& m) {
    const Array &flags = m.given[0], &bytes = m.given[1], &x = m.given[2];
    m.made = {(flags == (bytes > 0)).astype(float32) * x, flags.astype(int32) + 1};
  });
  EXPECT_EQ(joined.kernels, 2);
}

// Arrays and parts of them, read and written in random order, with sums and products in between.
TEST_P(JoinChains, RandomPrograms) {
  int programs = device().is_cpu() ? 6 : 25;  // each is compiled
  std::int64_t joined = 0;
  for (int seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    Memory memory;
    for (int k = 0; k < 3; ++k) memory.given.push_back(numbers({24, 24}));
    memory.given.push_back(numbers({24}));
    auto run = [&](Memory& m) {
      std::mt19937 random(static_cast<unsigned>(seed));
      auto below = [&](std::size_t n) { return random() % n; };
      std::vector<Array> all(m.given.begin(), m.given.begin() + 3);
      auto any = [&]() -> Array& { return all[below(all.size())]; };
      for (int step = 0; step < 24; ++step) {
        Array a = any(), b = any();
        switch (below(9)) {
          case 0: all.push_back(a + b); break;
          case 1: all.push_back(a * 0.5 - b); break;
          case 2: all.push_back(xp::minimum(a, b) + m.given[3]); break;
          case 3: any() += a; break;
          case 4: any() *= 0.25; break;
          case 5: all.push_back(xp::abs(a)); break;
          case 6: all.push_back(xp::broadcast_to(a.sum(0, true) * 0.1, {24, 24}) + b); break;
          case 7: any()[Slice(0, 12)] += xp::sqrt(xp::abs(a))[Slice(0, 12)]; break;
          default: all.push_back(xp::matmul(a, b) * 0.01);
        }
      }
      for (std::size_t k = 3; k < all.size(); k += 1 + below(4)) m.made.push_back(all[k]);
    };
    joined += check(memory, run).operations;
  }
  EXPECT_GT(joined, 4 * programs);
}

INSTANTIATE_TEST_SUITE_P(Devices, JoinChains, ::testing::Values(cpu(), gpu(0)),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

}  // namespace
}  // namespace rensa
