// Random numbers and arange on the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/core/philox.h"
#include "rensa/operations/arange/arange.h"
#include "rensa/operations/random/random.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::testing {
namespace {

using operations::Random;

constexpr long long kSeed = 77, kOffset = 1000;

void draw(Random op, const TestArray& out, long long offset = kOffset) {
  op.seed.integer = kSeed;
  op.offset.integer = offset;
  op.out = out.operand();
  op.run_cpu();
}

unsigned word(std::int64_t index) {
  return philox(kSeed, kOffset + static_cast<unsigned long long>(index / 4)).word[index % 4];
}

TEST(CpuRandom, UniformFollowsTheWords) {
  Random op("uniform", Random::Kind::uniform);
  op.a = -2;
  op.b = 3;
  TestArray f({5003}, float32), d({5003}, float64), h({5003}, float16);
  draw(op, f);
  draw(op, d);
  draw(op, h);
  for (std::int64_t i = 0; i < 5003; ++i) {
    float single = -2.0f + 5.0f * uniform_float(word(i));
    ASSERT_EQ(f.real(i), single);
    ASSERT_EQ(h.real(i), static_cast<float>(half_t(single)));
    ASSERT_EQ(d.real(i), -2.0 + 5.0 * uniform_double(word(2 * i), word(2 * i + 1)));
  }
}

TEST(CpuRandom, IntegersFollowTheWords) {
  Random op("randint", Random::Kind::integers);
  op.low = -5;
  op.span = 100;
  TestArray narrow({3001}, int32);
  draw(op, narrow);
  for (std::int64_t i = 0; i < 3001; ++i) {
    ASSERT_EQ(narrow.real(i), -5.0 + static_cast<double>(word(i) * 100ull >> 32));
  }
  op.low = 0;
  op.span = 1ull << 40;
  op.words = 2;
  TestArray wide({3001}, int64);
  draw(op, wide);
  for (std::int64_t i = 0; i < 3001; ++i) {
    unsigned long long both = static_cast<unsigned long long>(word(2 * i)) << 32 | word(2 * i + 1);
    ASSERT_EQ(wide.real(i), static_cast<double>(both >> 24));
  }
  op.span = 3ull << 45;
  op.words = 4;
  TestArray wider({3001}, int64);
  draw(op, wider);
  for (std::int64_t i = 0; i < 3001; ++i) {
    unsigned __int128 all = 0;
    for (std::int64_t j = 0; j < 4; ++j) all = all << 32 | word(4 * i + j);
    ASSERT_EQ(wider.real(i), static_cast<double>((all >> 48) * (3ull << 45) >> 80));
  }
}

TEST(CpuRandom, NormalIsBoxMuller) {
  Random op("normal", Random::Kind::normal);
  op.a = 1;
  op.b = 2;
  TestArray f({2051}, float32), d({2051}, float64);
  draw(op, f);
  draw(op, d);
  for (std::int64_t i = 0; i < 2051; ++i) {
    std::int64_t pair = i / 2 * 2;
    auto normal = [&](double u, double v) {
      double radius = std::sqrt(-2 * std::log(1 - u)), angle = 2 * M_PI * v;
      return 1 + 2 * radius * (i % 2 ? std::sin(angle) : std::cos(angle));
    };
    ASSERT_NEAR(f.real(i), normal(uniform_float(word(pair)), uniform_float(word(pair + 1))), 1e-5);
    ASSERT_NEAR(d.real(i),
                normal(uniform_double(word(2 * pair), word(2 * pair + 1)),
                       uniform_double(word(2 * pair + 2), word(2 * pair + 3))),
                1e-13);
  }
}

TEST(CpuRandom, NormalHasItsMoments) {
  TestArray x({400'000}, float32);
  draw(Random("normal", Random::Kind::normal), x);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(std::isfinite(x.real(i)));
    sum += x.real(i);
    squares += x.real(i) * x.real(i);
  }
  double n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 10 / std::sqrt(n));
}

TEST(CpuRandom, ThreadsAndLengthLeaveNoTrace) {
  for (Random::Kind kind : {Random::Kind::uniform, Random::Kind::normal}) {
    TestArray whole({100'001}, float32), start({1501}, float32);
    draw(Random("x", kind), start);
    for_thread_counts([&](int) {
      draw(Random("x", kind), whole);
      std::vector<char> head = whole.bytes();
      head.resize(1501 * 4);
      EXPECT_EQ(head, start.bytes());
    });
    // The offset counts counters, of four words each.
    TestArray later({1001}, float32);
    draw(Random("x", kind), later, kOffset + 125);
    for (std::int64_t i = 0; i < 1001; ++i) ASSERT_EQ(later.real(i), start.real(500 + i));
  }
}

TEST(CpuArange, CountsInEveryDtype) {
  for (Dtype d : all_dtypes()) {
    if (d == bool_) continue;
    for (Layout layout : {Layout::contiguous, Layout::spread, Layout::reversed}) {
      bool is_signed = dtype_kind(d) != 'u';
      TestArray out({9}, d, layout);
      operations::Arange op;
      op.start = is_signed ? Scalar(-4) : Scalar(4);
      op.step = 2;
      op.out = out.operand();
      op.run_cpu();
      for (std::int64_t i = 0; i < 9; ++i) {
        ASSERT_EQ(out.real(i), static_cast<double>((is_signed ? -4 : 4) + 2 * i)) << dtype_name(d);
      }
    }
  }
  TestArray out({5000}, float64);
  operations::Arange op;
  op.start = 0.5;
  op.step = -0.25;
  op.out = out.operand();
  op.run_cpu();
  for (std::int64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(out.real(i), 0.5 - 0.25 * static_cast<double>(i));
  }
}

}  // namespace
}  // namespace rensa::testing
