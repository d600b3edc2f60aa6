// ReductionKernel on every device: axes, layouts, dtypes, positions, and what is refused.
#include "rensa/kernel/reduction_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"
#include "tests/testing.h"

namespace rensa {
namespace {

ReductionKernel make_sum(const char* name = "sum_up") {
  return ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name);
}

class ReductionKernelTest : public ::testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  /// Small whole numbers, whose sums are exact in any order.
  Array numbers(const Shape& shape, Dtype dtype = float32) const {
    Array a = xp::arange(shape.total(), int64, device()) * 7919 % 13;
    return a.reshape(shape).astype(dtype);
  }
};

TEST_P(ReductionKernelTest, TheNormOfTheTour) {
  ReductionKernel l2norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
  Array a = xp::array({{3.f, 4.f}, {5.f, 12.f}}, device());
  EXPECT_EQ(l2norm(a, {.axis = 1}).to_vector<float>(), (std::vector<float>{5, 13}));
  EXPECT_EQ(l2norm(a, {.axis = 1, .keepdims = true}).shape(), (Shape{2, 1}));
  EXPECT_FLOAT_EQ(l2norm(a).item<float>(), std::sqrt(194.f));
  Array out = xp::empty({2}, float32, device());
  EXPECT_EQ(l2norm(a, {.axis = 0, .out = out}).data(), out.data());
  EXPECT_FLOAT_EQ(out[0].item<float>(), std::sqrt(34.f));
}

TEST_P(ReductionKernelTest, AnyAxesOfAnyLayout) {
  ReductionKernel sum = make_sum();
  Array base = numbers({5, 6, 70});
  Array views[] = {base, base.transpose({2, 0, 1}),
                   base[{Slice(), Slice(none, none, -1), Slice(1, none, 3)}],
                   base[{Slice(), Slice(0, 1)}], base[2].broadcast_to({3, 6, 70})};
  for (const Array& v : views) {
    for (const Axes& axis :
         {Axes(), Axes(0), Axes(1), Axes(2), Axes{0, 1}, Axes{0, 2}, Axes{1, 2}}) {
      Array want = v.sum(axis, true), got = sum(v, {.axis = axis, .keepdims = true});
      EXPECT_TRUE(xp::array_equal(got, want)) << v.view().describe() << v.strides().str();
    }
  }
}

TEST_P(ReductionKernelTest, SizesAroundTheInnerLimits) {
  ReductionKernel sum = make_sum();
  for (std::int64_t n : {1, 31, 1025, 70001, 1300007}) {
    Array v = numbers({n});
    EXPECT_EQ(sum(v).item<double>(), v.sum().item<double>()) << n;
    EXPECT_EQ(sum(Array(v[{Slice(1, none)}])).item<double>(),
              v[{Slice(1, none)}].sum().item<double>())
        << n;  // not aligned
  }
  for (const Shape& shape :
       {Shape{3, 70000}, Shape{70000, 3}, Shape{1000, 900}, Shape{2049, 257}}) {
    Array v = numbers(shape);
    for (int axis : {0, 1}) {
      EXPECT_TRUE(xp::array_equal(sum(v, {.axis = axis}), v.sum(axis))) << shape.str() << axis;
    }
  }
}

// Over the same plan the same additions are made: the library's own sum, to the bit.
TEST_P(ReductionKernelTest, FloatsAreAddedInTheOrderOfSum) {
  ReductionKernel sum = make_sum();
  xp::random::seed(5);
  // The later ones: what one block does, with and without a last vector that is not whole.
  for (const Shape& shape : {Shape{300, 4000}, Shape{9, 150001}, Shape{100000, 12}, Shape{3, 517},
                             Shape{511, 1025}, Shape{2, 16384}, Shape{2, 16387}}) {
    Array v = xp::random::normal(0, 1, shape, float32, device());
    for (const Axes& axis : {Axes(), Axes(0), Axes(1)}) {
      EXPECT_TRUE(xp::array_equal(sum(v, {.axis = axis}), v.sum(axis))) << shape.str();
    }
  }
}

TEST_P(ReductionKernelTest, Dtypes) {
  ReductionKernel sum = make_sum(),
                  largest("T x", "T y", "x", "max(a, b)", "y = a", "0", "largest");
  for (Dtype dtype : {float64, float16, int8, uint64, complex64}) {
    Array v = numbers({4, 20}, dtype);
    Array got = sum(v, {.axis = 1});
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_TRUE(xp::array_equal(got, v.sum(1).astype(dtype))) << dtype_name(dtype);
  }
  Array v = numbers({4, 20}, float64);
  EXPECT_TRUE(xp::array_equal(largest(v, {.axis = 0}), v.max(0)));
}

TEST_P(ReductionKernelTest, SeveralInputsBroadcastAndNumbersAreTaken) {
  ReductionKernel dot("T x, T y, float64 scale", "T z", "x * y", "a + b", "z = a * (T)scale", "0",
                      "weighted");
  Array x = numbers({6, 40}), weights = numbers({40}), column = numbers({6, 1});
  EXPECT_TRUE(xp::array_equal(dot(x, weights, 2, {.axis = 1}), (x * weights).sum(1) * 2));
  EXPECT_TRUE(xp::array_equal(dot(x, column, 1.0, {.axis = 1}), (x * column).sum(1)));
  EXPECT_TRUE(xp::array_equal(dot(x, weights, 1.0, {.axis = 0}), (x * weights).sum(0)));
}

TEST_P(ReductionKernelTest, AStructOfTheUsersAndPositions) {
  ReductionKernel argmax("T x", "int64 at", "found(x, _J)", "a.value >= b.value ? a : b",
                         "at = a.index", "found(-1e30, -1)", "find_max",
                         {.reduce_type = "found",
                          .options = {},
                          .preamble = "struct found { double value; long long index; found() = "
                                      "default; RENSA_FN found(double v, long long i) : value(v), "
                                      "index(i) {} };"});
  Array v = xp::random::permutation(5 * 7 * 300, device()).reshape({5, 7, 300}).astype(float32);
  EXPECT_TRUE(xp::array_equal(argmax(v), v.argmax()));
  EXPECT_TRUE(xp::array_equal(argmax(v, {.axis = 2}), v.argmax(2)));
  EXPECT_TRUE(xp::array_equal(argmax(v, {.axis = 0}), v.argmax(0)));
  EXPECT_TRUE(xp::array_equal(argmax(v.T(), {.axis = {0, 1}}), v.T().reshape({2100, 5}).argmax(0)));
}

TEST_P(ReductionKernelTest, RawInputsAndSeveralOutputs) {
  ReductionKernel moments("raw T x", "float64 mean, int64 count", "(double)x[_j]", "a + b",
                          "mean = a / (_in_ind.size() / _out_ind.size()); count = _in_ind.size()",
                          "0", "moments");
  Array x = numbers({10, 3}, int32);
  auto out = moments.call({x}, {.size = 30});
  EXPECT_DOUBLE_EQ(out[0].item<double>(), x.mean().item<double>());
  EXPECT_EQ(out[1].item<int>(), 30);
  EXPECT_DOUBLE_EQ(moments.call({x.T()}, {.size = 30})[0].item<double>(), x.mean().item<double>());
}

TEST_P(ReductionKernelTest, NothingGivesTheIdentityThroughPost) {
  ReductionKernel kernel("T x", "T y", "x", "a + b", "y = a + 1", "41", "from_nothing");
  EXPECT_EQ(kernel(numbers({0})).item<int>(), 42);
  EXPECT_EQ(kernel(numbers({3, 0}), {.axis = 1}).to_vector<int>(), (std::vector<int>{42, 42, 42}));
  EXPECT_EQ(kernel(numbers({3, 0}), {.axis = 0}).shape(), (Shape{0}));
  ReductionKernel none("T x", "T y", "x", "a + b", "y = a", "", "no_identity");
  EXPECT_THROW(none(numbers({0})), ValueError);
  EXPECT_EQ(none(numbers({2})).item<int>(), numbers({2}).sum().item<int>());
  EXPECT_EQ(make_sum()(numbers({})).item<int>(), 0);  // an array of no axes
}

TEST_P(ReductionKernelTest, AnOutputMayBePartOfAnInput) {
  Array a = numbers({50, 50}), want = a.sum(0);
  make_sum()(a, {.axis = 0, .out = a[7]});
  EXPECT_TRUE(xp::array_equal(a[7], want));
}

TEST_P(ReductionKernelTest, WhatDoesNotFitIsRefused) {
  ReductionKernel sum = make_sum(), two("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "two");
  Array f = numbers({3, 4});
  EXPECT_THROW(sum(f, {.axis = 2}), IndexError);
  EXPECT_THROW(sum(f, {.axis = 0, .out = numbers({3})}), ShapeError);
  EXPECT_THROW(sum(f, {.axis = 0, .out = numbers({4}, int32)}), DtypeError);
  EXPECT_THROW(sum(f, {.size = 3}), ValueError);
  EXPECT_THROW(sum(Array()), ValueError);
  EXPECT_THROW(sum(f, f), ValueError);
  EXPECT_THROW(two(f, numbers({5})), ShapeError);
  EXPECT_THROW(two(f, numbers({4}, int32)), DtypeError);
  EXPECT_THROW(ReductionKernel("T x", "raw T y", "x", "a + b", "y = a", "0"), ValueError);
  EXPECT_THROW(ReductionKernel("T x", "", "x", "a + b", "", "0"), ValueError);
  ReductionKernel wrong("T x", "T y", "x", "a +* b", "y = a", "0", "wrong");
  try {
    wrong(f);
    FAIL() << "it compiled";
  } catch (const CompileError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("reduce of wrong"), std::string::npos) << text;
    EXPECT_EQ(text.find("identity of wrong"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ReductionKernelTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

#if RENSA_HAS_CUDA
TEST(ReductionKernel, ItsCudaSourceCompilesWithoutAGpu) {
  ReductionKernel kernel("T x, raw U w, float32 f", "T z, int64 at", "x * T(w[_J]) + T(f) + T(i)",
                         "a + b", "z = a; at = i", "0", "mixed");
  for (Dtype dtype : {float32, float16, float64, int8, complex64}) {
    Array x = xp::zeros({40, 6, 5}, dtype), w = xp::zeros({50, 40}, float32);
    for (const Array& operand : {x, x.T(), Array(x[{Slice(), Slice(0, 4), Slice(0, none, 2)}])}) {
      for (const Axes& axis : {Axes(), Axes(0), Axes(2), Axes{0, 2}}) {
        for (const Array& raw : {w, w.T()}) {
          auto code = cuda::compile_gpu_code(
              {kernel.source({operand, raw, 1.5}, {.axis = axis}), "mixed", {}, {}}, 90);
          EXPECT_GT(code.image.size(), 100u) << dtype_name(dtype);
        }
        if (dtype != float32) break;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace rensa
