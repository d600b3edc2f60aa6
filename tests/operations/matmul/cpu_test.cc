// Products of the CPU backend against simple loops: the library's and the project's own.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "rensa/operations/matmul/cpu_blas.h"
#include "rensa/operations/matmul/cpu_gemm.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/backend/cpu/test_array.h"
#include "tests/guarded_memory.h"
#include "tests/testing.h"

namespace rensa::testing {
namespace {

host::Matrix matrix(const TestArray& a) {
  return {a.view().data, a.view().strides[0], a.view().strides[1]};
}

std::complex<double> dot(const TestArray& a, const TestArray& b, std::int64_t row,
                         std::int64_t column) {
  std::int64_t k = a.view().shape[1], n = b.view().shape[1];
  std::complex<double> sum = 0;
  for (std::int64_t p = 0; p < k; ++p) sum += a.get(row * k + p) * b.get(p * n + column);
  return sum;
}

// Some elements of c, the corners among them.
void check_product(const TestArray& a, const TestArray& b, const TestArray& c, const char* how) {
  std::int64_t m = c.view().shape[0], n = c.view().shape[1];
  Dtype d = c.view().dtype;
  double epsilon = d == bfloat16                    ? 8e-3
                   : d == float16                   ? 1e-3
                   : d == float32 || d == complex64 ? 1e-6
                                                    : 1e-14;
  std::int64_t row_step = std::max<std::int64_t>(1, (m - 1) / 7);
  std::int64_t column_step = std::max<std::int64_t>(1, (n - 1) / 7);
  for (std::int64_t i = 0; i < m; i += row_step) {
    for (std::int64_t j = 0; j < n; j += column_step) {
      std::complex<double> want = dot(a, b, i, j);
      if (d == bool_) want = want != 0.0;
      double size = std::abs(want) + 20 * std::sqrt(static_cast<double>(a.view().shape[1]));
      if (dtype_kind(d) != 'f' && dtype_kind(d) != 'c') size = 0;
      ASSERT_LE(std::abs(c.get(i * n + j) - want), epsilon * size)
          << how << " " << a.view().describe() << " @ " << b.view().describe() << " at " << i
          << ", " << j;
    }
  }
}

// A page that may not be read ends the process, so that to return is what is tested.
TEST(CpuMatmul, NothingIsReadBehindAComplexVector) {
  for (std::int64_t step : {1, 2}) {
    for (std::int64_t k = 1; k < 20; ++k) {
      TestArray a({k, 6}, complex128), c({6, 1}, complex128);
      host::Matrix rows = matrix(a), turned{rows.data, rows.column_stride, rows.row_stride};
      std::int64_t stride = step * itemsize(complex128), bytes = (k - 1) * stride + 16;
      GuardedMemory x(static_cast<std::size_t>(bytes));
      host::multiply(complex128, 6, 1, k, turned, {static_cast<char*>(x.data()), stride, 16},
                     matrix(c));
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(c.get(i), 0.0);
    }
  }
}

TEST(CpuGemm, SizesAndStrides) {
  struct Size {
    std::int64_t m, n, k;
  };
  const Size sizes[] = {{1, 1, 1},       {1, 17, 5},     {17, 1, 5},     {6, 16, 3},
                        {14, 32, 10},    {15, 33, 31},   {100, 10, 50},  {10, 100, 50},
                        {64, 64, 1024},  {37, 53, 1500}, {3, 300, 2100}, {300, 3, 64},
                        {128, 256, 256}, {100, 100, 7}};
  for (Dtype d : {float32, float64}) {
    for (const Size& s : sizes) {
      for (Layout left : kLayouts) {
        for (Layout right : kLayouts) {
          for (Layout result : {Layout::contiguous, Layout::transposed, Layout::spread}) {
            bool large = s.m * s.n * s.k > 100000;
            if (large && testing::quick() && (left != right || result != Layout::contiguous)) break;
            TestArray a({s.m, s.k}, d, left), b({s.k, s.n}, d, right), c({s.m, s.n}, d, result);
            a.fill(1);
            b.fill(2);
            host::gemm(d, s.m, s.n, s.k, matrix(a), matrix(b), matrix(c));
            check_product(a, b, c, "gemm");
            TestArray again({s.m, s.n}, d, result);
            if (host::blas_gemm(d, s.m, s.n, s.k, matrix(a), matrix(b), matrix(again))) {
              check_product(a, b, again, "blas_gemm");
            }
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// These the library multiplies as a matrix and a vector, in parts where they are long. What the
// result's memory held before is NaN.
TEST(CpuGemm, OneRowOrColumn) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (Dtype d : {float32, float64, complex64, complex128}) {
    for (const Size& s : {Size{1, 700, 300}, Size{700, 1, 300}, Size{1, 9, 1}, Size{1, 1, 50}}) {
      for (Layout left : kLayouts) {
        for (Layout right : kLayouts) {
          TestArray a({s.m, s.k}, d, left), b({s.k, s.n}, d, right), c({s.m, s.n}, d);
          a.fill(1);
          b.fill(2);
          for (std::int64_t i = 0; i < s.m * s.n; ++i) c.set(i, {NAN, NAN});
          if (!host::blas_gemm(d, s.m, s.n, s.k, matrix(a), matrix(b), matrix(c))) continue;
          check_product(a, b, c, "blas_gemm");
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(CpuGemm, EveryDtype) {
  for (Dtype d : all_dtypes()) {
    for (Layout layout : {Layout::contiguous, Layout::transposed}) {
      TestArray a({9, 21}, d, layout), b({21, 18}, d, layout), c({9, 18}, d);
      a.fill(1);
      b.fill(2);
      host::gemm(d, 9, 18, 21, matrix(a), matrix(b), matrix(c));
      if (itemsize(d) == 1 && d != bool_) {  // wraps around
        for (std::int64_t i = 0; i < 9 * 18; ++i) {
          auto want = static_cast<long long>(dot(a, b, i / 18, i % 18).real());
          double wrapped = d == int8 ? static_cast<double>(static_cast<std::int8_t>(want))
                                     : static_cast<double>(static_cast<std::uint8_t>(want));
          ASSERT_EQ(c.real(i), wrapped);
        }
      } else {
        check_product(a, b, c, "gemm");
      }
    }
  }
}

TEST(CpuGemm, ThreadsLeaveNoTrace) {
  TestArray a({200, 700}, float32, Layout::transposed), b({700, 150}, float32);
  a.fill(1);
  b.fill(2);
  std::vector<char> first;
  for_thread_counts([&](int threads) {
    TestArray c({200, 150}, float32);
    host::gemm(float32, 200, 150, 700, matrix(a), matrix(b), matrix(c));
    if (threads == 1) first = c.bytes();
    EXPECT_EQ(c.bytes(), first) << threads;
  });
}

TEST(CpuGemm, CallersOnManyThreads) {
  TestArray a({120, 300}, float32), b({300, 130}, float32), expected({120, 130}, float32);
  a.fill(1);
  b.fill(2);
  host::gemm(float32, 120, 130, 300, matrix(a), matrix(b), matrix(expected));
  std::vector<std::thread> callers;
  std::vector<TestArray> results;
  for (int t = 0; t < 4; ++t) results.emplace_back(Shape{120, 130}, float32);
  for (TestArray& c : results) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        host::gemm(float32, 120, 130, 300, matrix(a), matrix(b), matrix(c));
      }
    });
  }
  for (std::thread& t : callers) t.join();
  for (TestArray& c : results) EXPECT_EQ(c.bytes(), expected.bytes());
}

TEST(CpuMatmul, BatchScaleBiasActivationGate) {
  using operations::Activation;
  for (Dtype d : {float32, float16, float64, int32}) {
    TestArray a({2, 3, 5, 7}, d), b({1, 3, 7, 4}, d), bias({4}, d), gate({2, 3, 5, 4}, d),
        c({2, 3, 5, 4}, d);
    a.fill(1);
    b.fill(2);
    bias.fill(3);
    gate.fill(4);
    for (Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
      if (activation == Activation::tanh && d == int32) continue;
      for (bool with_bias : {false, true}) {
        for (double alpha : {1.0, 2.0}) {
          operations::Matmul op;
          op.a = a.operand();
          op.b = b.operand();
          op.b.view = broadcast_view(b.view(), {2, 3, 7, 4});
          if (with_bias) op.bias = bias.operand(), op.gate = gate.operand();
          op.c = c.operand();
          op.alpha = alpha;
          op.activation = activation;
          op.run_cpu();
          for (std::int64_t i = 0; i < 2 * 3 * 5 * 4; ++i) {
            std::int64_t batch = i / 20, row = i / 4 % 5, column = i % 4;
            double want = with_bias ? bias.real(column) : 0;
            for (std::int64_t p = 0; p < 7; ++p) {
              want += alpha * a.real(batch * 35 + row * 7 + p) *
                      b.real(batch % 3 * 28 + p * 4 + column);
            }
            if (activation == Activation::relu) want = std::max(want, 0.0);
            if (activation == Activation::tanh) want = std::tanh(want);
            if (with_bias && gate.real(i) <= 0) want = 0;
            double tolerance = d == float16 ? 0.2 : 1e-4;
            ASSERT_NEAR(c.real(i), want, tolerance) << dtype_name(d) << " " << alpha;
          }
        }
      }
    }
  }
}

TEST(CpuMatmul, SumsOfNothing) {
  TestArray a({3, 0}, float32), b({0, 2}, float32), bias({2}, float32), c({3, 2}, float32);
  bias.fill(1);
  operations::Matmul op;
  op.a = a.operand();
  op.b = b.operand();
  op.bias = bias.operand();
  op.c = c.operand();
  op.run_cpu();
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(c.real(i), bias.real(i % 2));
}

}  // namespace
}  // namespace rensa::testing
