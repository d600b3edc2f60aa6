// Products on a GPU: every way they can be computed gives the right numbers, the same bits each
// time, and the same bits whether an activation follows in the product or after it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "rensa/array.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/plans.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/device/driver_calls.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Product {
  std::int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  std::int64_t pad = 0;  // elements after each row, and before the first
};

std::vector<double> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(count));
  for (double& x : v) x = distribution(engine);
  return v;
}

/// A (rows, columns) array on the GPU of random numbers, stored as asked.
Array operand(std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t pad,
              Dtype dtype, unsigned seed) {
  std::int64_t lines = transposed ? columns : rows, width = transposed ? rows : columns;
  Array all = xp::array(numbers(lines * (width + pad), seed), gpu())
                  .reshape({lines, width + pad})
                  .astype(dtype);
  Array part = all[{Slice(), Slice(pad, pad + width)}];
  return transposed ? part.T() : part;
}

struct Operands {
  Array a, b, bias;
};

Operands operands(const Product& p, Dtype dtype) {
  return {operand(p.m, p.k, p.a_transposed, p.pad, dtype, 1),
          operand(p.k, p.n, p.b_transposed, p.pad, dtype, 2),
          xp::array(numbers(p.n, 3), gpu()).astype(dtype)};
}

using operations::Activation;

struct Options {
  bool bias = false;
  Activation activation = Activation::none;
  bool autotune = false;
  double alpha = 1;
  UseTf32 tf32 = false;
  Array gate = {};
};

operations::Matmul product(const Operands& o, const Array& c, Options options) {
  operations::Matmul op;
  op.a = o.a.operand();
  op.b = o.b.operand();
  op.c = c.operand();
  if (options.bias) op.bias = o.bias.operand();
  op.activation = options.activation;
  op.alpha = options.alpha;
  op.autotune = options.autotune;
  op.tf32 = options.tf32;
  if (options.gate.defined()) op.gate = options.gate.operand();
  return op;
}

Array multiply(const Operands& o, Options options) {
  Shape shape = o.a.shape();
  shape[shape.size() - 1] = o.b.shape(-1);
  Array c = xp::empty(shape, o.a.dtype(), gpu());
  operations::Matmul op = product(o, c, options);
  launch(op);
  return c;
}

/// a @ b in double.
std::vector<double> plain_product(const Operands& o) {
  auto a = o.a.to_vector<double>(), b = o.b.to_vector<double>();
  auto m = static_cast<std::size_t>(o.a.shape(0)), k = static_cast<std::size_t>(o.a.shape(1)),
       n = static_cast<std::size_t>(o.b.shape(1));
  std::vector<double> c(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t p = 0; p < k; ++p) {
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
  return c;
}

/// What `options` make of it.
std::vector<double> finished(std::vector<double> c, const Operands& o, Options options) {
  auto bias = o.bias.to_vector<double>();
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = options.alpha * c[i] + (options.bias ? bias[i % bias.size()] : 0);
    if (options.activation == Activation::relu) c[i] = std::max(c[i], 0.0);
    if (options.activation == Activation::tanh) c[i] = std::tanh(c[i]);
  }
  return c;
}

/// Of numbers in [-1, 1): the error of an element's sum grows with the root of k.
double tolerance(Dtype dtype, std::int64_t k) {
  double unit = dtype == Dtype::float16    ? 1e-3
                : dtype == Dtype::bfloat16 ? 8e-3
                : dtype == Dtype::float32  ? 1e-6
                                           : 1e-14;
  return 2 * unit * std::sqrt(static_cast<double>(k + 1));
}

void expect_close(const Array& got, const std::vector<double>& want, double tolerance,
                  const std::string& what) {
  auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), want.size()) << what;
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double error = std::abs(values[i] - want[i]);
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  }
  EXPECT_LE(worst, tolerance) << what;
}

/// Shapes of a classifier's last layer and its gradients (kernels of our own), of its other layers,
/// of vectors, and odd ones; each stored in four ways, packed and not.
std::vector<Product> products() {
  const Product shapes[] = {{100, 10, 1000}, {10, 1000, 100}, {100, 1000, 10}, {1024, 10, 1000},
                            {100, 200, 784}, {200, 784, 100}, {1, 1000, 64},   {64, 1, 333},
                            {1, 1, 1},       {7, 13, 5},      {33, 17, 31},    {300, 16, 129},
                            {16, 300, 16},   {100, 100, 100}, {256, 129, 200}};
  std::vector<Product> result;
  for (Product p : shapes) {
    if (testing::quick() && p.m * p.n * p.k > 1000000) continue;
    for (int form = 0; form < 4; ++form) {
      p.a_transposed = form & 1;
      p.b_transposed = form & 2;
      for (std::int64_t pad : {0, 3}) {
        p.pad = pad;
        result.push_back(p);
      }
    }
  }
  return result;
}

std::string describe(const Product& p, Dtype dtype) {
  return "(" + std::to_string(p.m) + ", " + std::to_string(p.k) + ") @ (" + std::to_string(p.k) +
         ", " + std::to_string(p.n) + ") " + std::string(dtype_name(dtype)) +
         (p.a_transposed ? " a transposed" : "") + (p.b_transposed ? " b transposed" : "") +
         " pad " + std::to_string(p.pad);
}

TEST(CudaMatmul, GivesTheRightNumbers) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float32, float16, bfloat16, float64}) {
    for (const Product& p : products()) {
      Operands o = operands(p, dtype);
      auto want = plain_product(o);
      for (Options options : {Options{}, Options{.bias = true, .alpha = 0.5},
                              Options{.bias = true, .activation = Activation::relu},
                              Options{.activation = Activation::relu},
                              Options{.bias = true, .activation = Activation::tanh},
                              Options{.activation = Activation::tanh}}) {
        expect_close(multiply(o, options), finished(want, o, options), tolerance(dtype, p.k),
                     describe(p, dtype) + (options.bias ? " bias" : "") +
                         fmt::format(" activation {}", static_cast<int>(options.activation)));
      }
    }
  }
}

// Short in each of the dimensions, small, and neither.
TEST(CudaMatmul, BatchesGiveTheNumbersOfTheirProducts) {
  RENSA_NEEDS_GPUS(1);
  constexpr std::int64_t kBatch = 5;
  for (bool autotune : {false, true}) {
    for (Dtype dtype : {float32, float16, bfloat16}) {
      for (UseTf32 tf32 : {UseTf32(false), UseTf32(true), UseTf32::x3()}) {
        if (tf32 != UseTf32(false) && dtype != float32) continue;
        for (Product p : {Product{1, 10, 64}, Product{200, 1, 72}, Product{40, 200, 1},
                          Product{64, 64, 64}, Product{13, 7, 5}, Product{16, 130, 300}}) {
          std::int64_t width = p.k;
          Array a = xp::array(numbers(kBatch * p.m * width, 4), gpu())
                        .reshape({kBatch, p.m, width})
                        .astype(dtype);
          Array b = xp::array(numbers(kBatch * p.n * width, 5), gpu()).astype(dtype);
          for (const Array& right :
               {b.reshape({kBatch, width, p.n}), b.reshape({kBatch, p.n, width}).swapaxes(1, 2)}) {
            Options options{.autotune = autotune, .tf32 = tf32};
            Array c = multiply({a, right, a}, options);
            for (int i = 0; i < kBatch; ++i) {
              expect_close(c[i], plain_product({a[i], right[i], a}),
                           tolerance(tf32 ? float16 : dtype, p.k),
                           describe(p, dtype) + (tf32 ? " TF32" : ""));
            }
          }
        }
      }
    }
  }
}

TEST(CudaMatmul, WhatFollowsGivesTheSameBitsInTheProductAndAfterIt) {
  RENSA_NEEDS_GPUS(1);
  for (bool autotune : {false, true}) {
    for (Dtype dtype : {float32, float16}) {
      for (const Product& p : products()) {
        if (autotune && p.pad != 0) continue;
        Operands o = operands(p, dtype);
        Array apart = multiply(o, {.bias = true, .autotune = autotune});
        Array zero = xp::zeros(apart.shape(), dtype, gpu());
        Array rectified =
            multiply(o, {.bias = true, .activation = Activation::relu, .autotune = autotune});
        EXPECT_TRUE(xp::array_equal(rectified, xp::maximum(apart, zero))) << describe(p, dtype);
        Array bent =
            multiply(o, {.bias = true, .activation = Activation::tanh, .autotune = autotune});
        EXPECT_TRUE(xp::array_equal(bent, xp::tanh(apart))) << describe(p, dtype);
        EXPECT_TRUE(xp::array_equal(apart, multiply(o, {.bias = true, .autotune = autotune})))
            << describe(p, dtype);
        Array gate = xp::random::uniform(-1, 1, apart.shape(), float32, gpu()).astype(dtype);
        Array gated = multiply(o, {.bias = true, .autotune = autotune, .gate = gate});
        EXPECT_TRUE(xp::array_equal(gated, xp::elementwise(ufunc::relu_grad, {apart, gate})))
            << describe(p, dtype);
      }
    }
  }
}

TEST(CudaMatmul, TunedPlansAreRightAndAreTimedOnce) {
  RENSA_NEEDS_GPUS(1);
  for (Product p : {Product{100, 10, 1000}, Product{100, 1000, 784}}) {
    Operands o = operands(p, float32);
    Options options{.bias = true, .autotune = true};
    expect_close(multiply(o, options), finished(plain_product(o), o, options),
                 tolerance(float32, p.k), describe(p, float32));
    std::int64_t waits = cuda::sync_count();
    multiply(o, options);
    EXPECT_EQ(cuda::sync_count(), waits);
  }
}

// In (1024, 1000) @ (1000, 10) tiles are a little faster alone, as they are in the product that
// goes back from 10 classes to 1000 units; but the loss would not become part of them.
TEST(CudaMatmul, TunedPlansAreThoseThatALossIsPartOf) {
  RENSA_NEEDS_GPUS(1);
  for (std::int64_t samples : {100, 1024}) {
    Operands scores = operands({samples, 10, 1000, false, true}, float32);
    Array c = xp::empty({samples, 10}, float32, gpu());
    Options options{.bias = true, .autotune = true, .tf32 = true};
    EXPECT_TRUE(product(scores, c, options).has_rows()) << samples;
    Operands back = operands({samples, 1000, 10}, float32);
    Array gradient = xp::empty({samples, 1000}, float32, gpu());
    operations::Matmul goes_back = product(back, gradient, {.autotune = true, .tf32 = true});
    goes_back.gate_follows = true;
    EXPECT_TRUE(goes_back.adds_in_order()) << samples;
  }
}

// The smaller one is turned first, into the workspace, where the shape tells that this is faster.
TEST(CudaMatmul, OperandsAcrossK) {
  RENSA_NEEDS_GPUS(1);
  for (Product p : {Product{1100, 1200, 1100, true}, Product{1000, 1204, 1027, true},
                    Product{901, 1003, 1030, true, false, 3}}) {
    Operands o = operands(p, float32);
    Operands wide{o.a.astype(float64), o.b.astype(float64), o.bias};
    Array c = xp::empty({p.m, p.n}, float32, gpu());
    EXPECT_GE(product(o, c, {.tf32 = true}).workspace_bytes(),
              static_cast<std::size_t>(4 * p.k * std::min(p.m, p.n)));
    for (bool autotune : {false, true}) {
      Options options{.autotune = autotune, .alpha = 0.5, .tf32 = true};
      Array got = multiply(o, options);
      expect_close(got, multiply(wide, {.alpha = 0.5}).to_vector<double>(), tolerance(float16, p.k),
                   describe(p, float32));
      EXPECT_TRUE(xp::array_equal(got, multiply(o, options))) << describe(p, float32);
    }
  }
}

TEST(CudaMatmul, WaitsAllocatesAndLoadsNothingOnceItIsWarm) {
  RENSA_NEEDS_GPUS(1);
  RENSA_NEEDS_DRIVER_CALLS();
  Operands o = operands({100, 1000, 784}, float32), small = operands({100, 10, 1000}, float32);
  auto work = [&] {
    multiply(o, {.bias = true});
    multiply(small, {.bias = true});
  };
  work();
  work();
  cuda::synchronize(gpu());
  testing::DriverCallCounter counter;
  auto before = counter.snapshot();
  for (int i = 0; i < 10; ++i) work();
  auto calls = counter.snapshot() - before;
  EXPECT_EQ(calls.waits() + calls.waiting_copies() + calls.allocations() + calls.module_loads(), 0)
      << calls.str();
  EXPECT_FALSE(calls.calls.empty());  // the counter sees the launches
}

TEST(CudaMatmul, OneBForABatchAndIntegers) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {bool_, int8, uint16, int64, float32, complex64}) {
    Array a = xp::arange(2 * 3 * 4, int64, gpu()).reshape({2, 3, 4}).astype(dtype);
    Array b = xp::arange(4 * 5, int64, gpu()).reshape({4, 5}).astype(dtype);
    Array c = xp::matmul(a, b), back = xp::matmul(a[{Slice(none, none, -1)}], b);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(xp::array_equal(c[i], xp::matmul(a[i].copy(), b))) << dtype_name(dtype);
      EXPECT_TRUE(xp::array_equal(back[i], c[1 - i])) << dtype_name(dtype);
      EXPECT_TRUE(xp::array_equal(c[i].to(cpu()), xp::matmul(a[i].to(cpu()), b.to(cpu()))))
          << dtype_name(dtype);
    }
  }
}

TEST(CudaMatmul, EmptySumsAreTheBias) {
  RENSA_NEEDS_GPUS(1);
  Operands o{xp::empty({3, 0}, float32, gpu()), xp::empty({0, 2}, float32, gpu()),
             xp::array({1.f, -2.f}, gpu())};
  EXPECT_EQ(multiply(o, {}).to_vector<float>(), std::vector<float>(6, 0.f));
  EXPECT_EQ(multiply(o, {.bias = true, .activation = Activation::relu}).to_vector<float>(),
            (std::vector<float>{1, 0, 1, 0, 1, 0}));
}

TEST(CudaMatmul, PlansSurviveAFile) {
  RENSA_NEEDS_GPUS(1);
  Operands o = operands({96, 130, 257}, float32), wide = operands({200, 136, 260}, float32);
  Options split{.autotune = true, .tf32 = UseTf32::x3()};
  Array tuned = multiply(o, {.bias = true, .autotune = true}), tuned_split = multiply(wide, split);
  std::string path = ::testing::TempDir() + "/rensa_plans.txt";
  cuda::save_plans(path);
  cuda::load_plans(path);
  std::int64_t waits = cuda::sync_count();
  Array again = multiply(o, {.bias = true, .autotune = true}), again_split = multiply(wide, split);
  EXPECT_EQ(cuda::sync_count(), waits);  // nothing is timed anew
  EXPECT_TRUE(xp::array_equal(tuned, again));
  EXPECT_TRUE(xp::array_equal(tuned_split, again_split));
  std::ofstream(path, std::ios::app) << "matmul 1 2 3\n";
  EXPECT_THROW(cuda::load_plans(path), SerializationError);
  std::ofstream(path) << "something else\n";
  EXPECT_THROW(cuda::load_plans(path), SerializationError);
  std::remove(path.c_str());
  EXPECT_THROW(cuda::load_plans(path), SerializationError);
}

}  // namespace
}  // namespace rensa
