// Reductions of the CPU backend against simple loops.
#include "rensa/operations/reduce/cpu_reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rensa/core/reduction_rows.h"
#include "rensa/operations/reduce/reduce.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::testing {
namespace {

Shape kept_shape(const Shape& shape, unsigned axes) {
  Shape kept = shape;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (axes >> i & 1) kept[i] = 1;
  }
  return kept;
}

TestArray reduce(Reduction reduction, const TestArray& in, unsigned axes,
                 Layout layout = Layout::contiguous) {
  UfuncTypes types = reduction_types(reduction, in.view().dtype);
  TestArray out(kept_shape(in.view().shape, axes), types.output, layout);
  operations::Reduce op(reduction_info(reduction).name, reduction);
  op.axes = axes;
  op.compute = types.compute;
  op.in = in.operand();
  op.out = out.operand();
  op.run_cpu();
  return out;
}

// The elements of `in` that go into output `index`, in C order.
std::vector<std::complex<double>> inputs_of(const TestArray& in, unsigned axes,
                                            std::int64_t index) {
  const Shape& shape = in.view().shape;
  Shape kept = kept_shape(shape, axes);
  std::vector<std::complex<double>> values;
  for (std::int64_t i = 0; i < in.size(); ++i) {
    std::int64_t rest = i, output = 0, scale = 1;
    for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
      if (kept[axis] > 1) output += rest % shape[axis] * scale;
      scale *= kept[axis];
      rest /= shape[axis];
    }
    if (output == index) values.push_back(in.get(i));
  }
  return values;
}

std::complex<double> expected(Reduction reduction,
                              const std::vector<std::complex<double>>& values) {
  std::complex<double> sum = 0, prod = 1, squares = 0, count = 0;
  std::size_t greatest = 0, least = 0;
  bool any = false, all = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    prod *= values[i];
    squares += values[i] * values[i];
    any |= values[i] != 0.0;
    count += values[i] != 0.0;
    all &= values[i] != 0.0;
    if (values[i].real() > values[greatest].real()) greatest = i;
    if (values[i].real() < values[least].real()) least = i;
  }
  if (reduction == reduction::sum) return sum;
  if (reduction == reduction::prod) return prod;
  if (reduction == reduction::mean) return sum / static_cast<double>(values.size());
  if (reduction == reduction::max) return values[greatest];
  if (reduction == reduction::min) return values[least];
  if (reduction == reduction::any) return any;
  if (reduction == reduction::all) return all;
  if (reduction == reduction::sum_of_squares) return squares;
  if (reduction == reduction::count_nonzero) return count;
  if (reduction == reduction::nansum) return sum;
  if (reduction == reduction::nanprod) return prod;
  if (reduction == reduction::nanmax) return values[greatest];
  if (reduction == reduction::nanmin) return values[least];
  if (reduction == reduction::nanmean) return sum / static_cast<double>(values.size());
  if (reduction_info(reduction).rule == ReductionRule::deviations) {
    double mean = sum.real() / static_cast<double>(values.size()), total = 0;
    for (std::complex<double> x : values) total += (x.real() - mean) * (x.real() - mean);
    if (reduction == reduction::deviations) return total;
    double variance = total / static_cast<double>(values.size());
    return reduction == reduction::variance ? variance : std::sqrt(variance);
  }
  if (reduction == reduction::norm) return std::sqrt(squares);
  if (reduction == reduction::argmax) return static_cast<double>(greatest);
  return static_cast<double>(least);
}

bool takes(Reduction reduction, Dtype d) {
  ReductionRule rule = reduction_info(reduction).rule;
  char kind = dtype_kind(d);
  switch (rule) {
    case ReductionRule::sum:
    case ReductionRule::mean:
    case ReductionRule::count: return true;
    case ReductionRule::nan_mean:
    case ReductionRule::nan_sum: return kind == 'f' || kind == 'c';
    case ReductionRule::nan_order: return kind == 'f';
    default: return kind != 'c';
  }
}

void check(Reduction reduction, const TestArray& in, unsigned axes, Layout out_layout) {
  TestArray out = reduce(reduction, in, axes, out_layout);
  double epsilon = out.view().dtype == bfloat16 ? 0.01 : out.view().dtype == float16 ? 0.002 : 1e-5;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::complex<double> want = expected(reduction, inputs_of(in, axes, i)), got = out.get(i);
    if (out.view().dtype == float16 && std::abs(want) > 65504) continue;  // a prod beyond float16
    ASSERT_LE(std::abs(got - want), epsilon * std::abs(want))
        << reduction_info(reduction).name << " of " << in.view().describe() << " axes " << axes
        << " at " << i << ": " << got << " for " << want;
  }
}

TEST(CpuReduce, EveryReductionDtypeAndAxis) {
  for (Reduction reduction : all_reductions()) {
    bool position = reduction_info(reduction).rule == ReductionRule::position;
    for (Dtype d : all_dtypes()) {
      if (!takes(reduction, d)) continue;
      for (Layout layout : kLayouts) {
        TestArray in({3, 5, 4}, d, layout);
        in.fill(static_cast<std::uint64_t>(reduction.number()));
        for (unsigned axes = 1; axes < 8; ++axes) {
          if (position && (axes & (axes - 1)) != 0) continue;
          check(reduction, in, axes, layout);
        }
      }
    }
  }
}

// Sizes around the borders of leaves, tiles and blocks.
TEST(CpuReduce, Sizes) {
  for (const Shape& shape : {Shape{1}, Shape{15}, Shape{16}, Shape{63}, Shape{64}, Shape{65},
                             Shape{1023}, Shape{1025}, Shape{2, 1500}, Shape{1500, 2},
                             Shape{130, 3}, Shape{3, 257}, Shape{257, 129}, Shape{5, 7, 300}}) {
    for (Dtype d : {float32, int32, float16}) {
      for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::spread}) {
        TestArray in(shape, d, layout);
        in.fill(4);
        for (unsigned axes = 1; axes < 1u << shape.ndim(); ++axes) {
          TestArray out = reduce(reduction::sum, in, axes);
          for (std::int64_t i : {std::int64_t{0}, out.size() / 2, out.size() - 1}) {
            double want = expected(reduction::sum, inputs_of(in, axes, i)).real();
            double tolerance = d == float16 ? 2e-3 * std::abs(want) : 1e-9;
            ASSERT_NEAR(out.real(i), want, tolerance) << in.view().describe() << axes;
          }
        }
      }
    }
  }
}

TEST(CpuReduce, LongSumsAreAccurate) {
  constexpr std::int64_t kSize = 3'000'000;
  TestArray ones({kSize}, float32);
  for (std::int64_t i = 0; i < kSize; ++i) reinterpret_cast<float*>(ones.at(0))[i] = 0.1f;
  double want = kSize * static_cast<double>(0.1f);
  EXPECT_NEAR(reduce(reduction::sum, ones, 1).real(0), want, 1e-6 * want);
  // The same as a tall matrix whose columns are summed.
  TestArray tall({kSize / 3, 3}, float32);
  for (std::int64_t i = 0; i < kSize; ++i) reinterpret_cast<float*>(tall.at(0))[i] = 0.1f;
  EXPECT_NEAR(reduce(reduction::sum, tall, 1).real(2), want / 3, 1e-6 * want);
}

TEST(CpuReduce, ThreadsLeaveNoTrace) {
  for (const Shape& shape :
       {Shape{1'000'003}, Shape{400'000, 3}, Shape{700, 800}, Shape{3, 400'000}}) {
    TestArray in(shape, float32);
    std::mt19937 random(3);
    for (std::int64_t i = 0; i < in.size(); ++i)
      in.set(i, static_cast<double>(random()) * 1e-9 + 0.1);
    for (unsigned axes = 1; axes < 1u << shape.ndim(); ++axes) {
      std::vector<char> first;
      for_thread_counts([&](int threads) {
        std::vector<char> bytes = reduce(reduction::sum, in, axes).bytes();
        if (threads == 1) first = bytes;
        EXPECT_EQ(bytes, first) << shape.str() << " " << axes << " on " << threads;
      });
    }
  }
}

TEST(CpuReduce, NothingToReduce) {
  TestArray in({3, 0}, float32);
  EXPECT_EQ(reduce(reduction::sum, in, 2).real(2), 0);
  EXPECT_EQ(reduce(reduction::prod, in, 2).real(0), 1);
  EXPECT_TRUE(std::isnan(reduce(reduction::mean, in, 2).real(0)));
  EXPECT_EQ(reduce(reduction::all, in, 2).real(0), 1);
  EXPECT_EQ(reduce(reduction::any, in, 2).real(0), 0);
  EXPECT_EQ(reduce(reduction::sum, in, 1).size(), 0);
}

TEST(CpuReduce, NanIsGreatestAndLeast) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t n : {5, 3000}) {
    for (Dtype d : {float32, float64, float16}) {
      TestArray x({n}, d);
      x.fill(1);
      x.set(n - 2, nan);
      EXPECT_TRUE(std::isnan(reduce(reduction::max, x, 1).real(0)));
      EXPECT_TRUE(std::isnan(reduce(reduction::min, x, 1).real(0)));
      EXPECT_EQ(reduce(reduction::argmax, x, 1).real(0), static_cast<double>(n - 2));
      EXPECT_EQ(reduce(reduction::argmin, x, 1).real(0), static_cast<double>(n - 2));
      x.set(1, nan);
      EXPECT_EQ(reduce(reduction::argmax, x, 1).real(0), 1);
    }
  }
}

TEST(CpuReduce, FirstOfEqualsWins) {
  TestArray x({5000}, int32);
  for (std::int64_t i = 0; i < 5000; ++i) x.set(i, i == 1200 || i == 1100 || i == 4999 ? 8 : -8);
  EXPECT_EQ(reduce(reduction::argmax, x, 1).real(0), 1100);
  EXPECT_EQ(reduce(reduction::argmin, x, 1).real(0), 0);
}

}  // namespace
}  // namespace rensa::testing
