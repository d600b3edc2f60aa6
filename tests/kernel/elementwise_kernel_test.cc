// ElementwiseKernel on every device: dtypes, layouts, raw parameters, and what is refused.
#include "rensa/kernel/elementwise_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/kernel/elementwise_source.h"
#include "rensa/kernel/reduction_kernel.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"
#include "tests/device/driver_calls.h"
#include "tests/testing.h"

namespace rensa {
namespace {

template <class T> std::vector<T> values(const Array& a) { return a.to_vector<T>(); }

class ElementwiseKernelTest : public ::testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  Array arange(const Shape& shape, Dtype dtype = float32) const {
    return xp::arange(shape.total(), int64, device()).reshape(shape).astype(dtype);
  }
};

TEST_P(ElementwiseKernelTest, ComputesBroadcastsAndInfersTheDtype) {
  ElementwiseKernel squared_diff("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
  for (Dtype dtype : {float32, float64, int32, int64, uint8, float16, bfloat16}) {
    Array a = arange({2, 3}, dtype), b = arange({3}, dtype);
    Array z = squared_diff(a, b);
    EXPECT_EQ(z.dtype(), dtype);
    EXPECT_EQ(z.shape(), (Shape{2, 3}));
    EXPECT_EQ(values<double>(z), (std::vector<double>{0, 0, 0, 9, 9, 9})) << dtype_name(dtype);
  }
}

TEST_P(ElementwiseKernelTest, AnyLayout) {
  ElementwiseKernel add("T x, T y", "T z", "z = x + 2 * y", "add2");
  Array base = arange({4, 6, 5}, float64);
  Array views[] = {base,
                   base.transpose({0, 1, 2}),
                   base[{Slice(none, none, -1)}],
                   base[{Slice(), Slice(1, none, 2)}],
                   base.T(),
                   base[{2}],
                   base[{1, 2, 3}],
                   base[{Slice(0, 0)}]};
  for (const Array& v : views) {
    EXPECT_TRUE(xp::array_equal(add(v, v), v * 3)) << v.view().describe();
    Array out = xp::zeros(v.shape(), float64, device());
    EXPECT_EQ(add(v, 1.0, out).data(), out.data());
    EXPECT_TRUE(xp::array_equal(out, v + 2)) << v.view().describe();
  }
}

// A GPU takes several elements of a row at once where all arrays allow it.
TEST_P(ElementwiseKernelTest, RowsThatBroadcast) {
  ElementwiseKernel kernel("T x, T row, U column", "T z, T w",
                           "z = x * row + T(column); w = z - T(i % 8)", "rows");
  auto small = [&](const Shape& shape, int modulus, Dtype dtype) {
    return xp::remainder(arange(shape, int64), modulus).astype(dtype);
  };
  // Each layout is compiled; a CPU's kernels are not told such rows.
  bool all = device().is_cuda();
  for (Dtype dtype : all ? std::vector{float32, float16, uint8} : std::vector{float32}) {
    for (std::int64_t n : all ? std::vector{1, 7, 8, 1000} : std::vector{7}) {
      Array wide = small({3, 5, n + 16}, 11, dtype), row = small({n}, 3, dtype);
      Array column = small({5, 1}, 5, float32), head = small({3, 1, 1}, 4, float64);
      Array numbers = small({3, 5, n}, 8, dtype);
      for (std::int64_t first : {0, 1, 8}) {
        for (const Array& by : {column, head}) {
          Array x = wide[{Slice(), Slice(), Slice(first, first + n)}];
          Array want = x * row + by.astype(dtype);
          Array whole = xp::zeros({3, 5, n + 16}, dtype, device()), w = xp::zeros_like(numbers);
          Array z = whole[{Slice(), Slice(), Slice(first, first + n)}];
          kernel(x, row, by, z, w);
          EXPECT_TRUE(xp::array_equal(z, want)) << dtype_name(dtype) << n << " " << first;
          EXPECT_TRUE(xp::array_equal(w, want - numbers)) << dtype_name(dtype) << n << " " << first;
          EXPECT_TRUE(xp::array_equal(whole.astype(float64).sum(), z.astype(float64).sum()))
              << "wrote beside its output";
          Array rows = xp::ascontiguousarray(x);
          EXPECT_TRUE(xp::array_equal(kernel.call({rows, row, by})[0], want));
        }
      }
    }
  }
}

TEST_P(ElementwiseKernelTest, NumbersTakeTheArraysDtype) {
  ElementwiseKernel scale("T x, T factor, int32 shift", "T y", "y = x * factor + shift", "scale");
  Array x = arange({4}, float32);
  Array y = scale(x, 0.5, 3);
  EXPECT_EQ(y.dtype(), float32);
  EXPECT_EQ(values<float>(y), (std::vector<float>{3, 3.5, 4, 4.5}));
}

TEST_P(ElementwiseKernelTest, SeveralOutputsAndMathFunctions) {
  ElementwiseKernel polar("T x, T y", "T r, T phi, bool right",
                          "r = sqrt(x * x + y * y); phi = atan2(y, x); right = x > 0;", "polar");
  Array x = xp::array({3.0, -1.0}, device()), y = xp::array({4.0, 0.0}, device());
  std::vector<Array> out = polar.call({x, y});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(values<double>(out[0]), (std::vector<double>{5, 1}));
  EXPECT_NEAR(values<double>(out[1])[0], std::atan2(4.0, 3.0), 1e-15);
  EXPECT_EQ(out[2].dtype(), bool_);
  EXPECT_EQ(values<bool>(out[2]), (std::vector<bool>{true, false}));
}

TEST_P(ElementwiseKernelTest, RawParametersAreIndexed) {
  ElementwiseKernel reversed("raw T x", "T y", "y = x[_ind.size() - 1 - i] + n", "reversed");
  Array x = arange({5}, int64);
  EXPECT_EQ(values<int>(reversed.call({x}, {.size = 5})[0]), (std::vector<int>{9, 8, 7, 6, 5}));
  Array strided = arange({3, 5}, int64)[{Slice(), Slice(none, none, 2)}];  // 0 2 4 5 7 9 10 12 14
  EXPECT_EQ(values<int>(reversed.call({strided}, {.size = 2})[0]), (std::vector<int>{4, 2}));
  ElementwiseKernel scatter("T x, int64 at", "raw T out", "out[at] = x", "scatter");
  Array out = xp::zeros({4}, int64, device());
  scatter(arange({3}, int64), xp::array({3, 0, 2}, device()), out);
  EXPECT_EQ(values<int>(out), (std::vector<int>{1, 0, 2, 0}));
}

TEST_P(ElementwiseKernelTest, AGivenOutputKeepsWhatTheOperationLeaves) {
  Array x = arange({1001}), out = xp::ones({1001}, float32, device());
  ElementwiseKernel("T x", "T y", "y += x", "accumulate")(x, out);
  EXPECT_TRUE(xp::array_equal(out, x + 1));
  ElementwiseKernel("T x", "T y", "if (x < 10) y = 0", "clear_some")(x, out);
  EXPECT_TRUE(xp::array_equal(out, xp::where(x < 10, xp::zeros_like(x), x + 1)));
  ElementwiseKernel("T x", "T y", "if (x > 20) continue; y = 7", "leave_some")(x, out);
  EXPECT_EQ(out[20].item<float>(), 7);
  EXPECT_EQ(out[21].item<float>(), 22);
}

TEST_P(ElementwiseKernelTest, AnOutputMayOverlapAnInput) {
  ElementwiseKernel twice("T x", "T y", "y = 2 * x", "twice");
  Array a = arange({1000}), same = arange({1000});
  Array want = a[{Slice(0, 999)}].copy() * 2;
  twice(Array(a[{Slice(0, 999)}]), Array(a[{Slice(1, 1000)}]));
  EXPECT_TRUE(xp::array_equal(a[{Slice(1, 1000)}], want));
  twice(same, same);
  EXPECT_TRUE(xp::array_equal(same, arange({1000}) * 2));
}

TEST_P(ElementwiseKernelTest, PreambleAndLoopTexts) {
  ElementwiseKernel kernel(
      "T x", "T y", "y = twice(x) + offset", "with_texts",
      {.preamble = "template <class T> RENSA_FN T twice(T x) { return 2 * x; }",
       .loop_prep = "const int offset = 1;",
       .after_loop = ""});
  EXPECT_EQ(values<float>(kernel(arange({3}))), (std::vector<float>{1, 3, 5}));
}

TEST_P(ElementwiseKernelTest, ManyElementsOnAllCores) {
  ElementwiseKernel index("T x", "int64 y", "y = i + (int64)x", "index");
  Array x = xp::ones({3000001}, float32, device());
  EXPECT_TRUE(xp::array_equal(index(x), xp::arange(1, 3000002, 1, int64, device())));
}

TEST_P(ElementwiseKernelTest, WhatDoesNotFitIsRefused) {
  ElementwiseKernel add("T x, T y", "T z", "z = x + y", "add");
  Array f = arange({3}), i = arange({3}, int32);
  EXPECT_THROW(add(f, i), DtypeError);
  EXPECT_THROW(add(f, arange({4})), ShapeError);
  EXPECT_THROW(add(f), ValueError);
  EXPECT_THROW(add(f, f, arange({4})), ShapeError);
  EXPECT_THROW(add(f, f, i), DtypeError);
  EXPECT_THROW(add(f, Array()), ValueError);
  ElementwiseKernel only_out("float32 x", "T y", "y = x", "only_out");
  EXPECT_THROW(only_out(f), DtypeError);
  ElementwiseKernel raw("raw T x", "T y", "y = x[i]", "raw");
  EXPECT_THROW(raw(f), ValueError);                                    // no size
  EXPECT_EQ(values<float>(add(f, f)), (std::vector<float>{0, 2, 4}));  // still usable
}

TEST_P(ElementwiseKernelTest, WhatDoesNotCompileSaysWhereAndWhy) {
  ElementwiseKernel wrong("T x", "T y", "y = x;\ny = nonsense(x);", "wrong");
  try {
    wrong(arange({3}));
    FAIL() << "it compiled";
  } catch (const CompileError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
    EXPECT_NE(text.find("operation of wrong"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseKernelTest,
                         ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST(ElementwiseKernel, WhatIsCompiledAheadLoadsNothingByDriverCalls) {
  RENSA_NEEDS_GPUS(1);
  RENSA_NEEDS_DRIVER_CALLS();
  ElementwiseKernel scaled("T x", "T y", "y = 5 * x", "scaled_ahead_on_gpu");
  ReductionKernel total("T x", "T y", "x", "a + b", "y = a", "0", "total_ahead_on_gpu");
  ElementwiseKernel cold("T x", "T y", "y = 7 * x", "scaled_by_its_first_call");
  Array x = xp::arange(6, float32, gpu(0));
  EXPECT_EQ(x[5].item<float>(), 5);  // what brings a number to the host is loaded
  testing::DriverCallCounter counter;
  auto loads_of = [&](auto&& work) {
    testing::DriverCalls before = counter.snapshot();
    work();
    return (counter.snapshot() - before).module_loads();
  };
  EXPECT_GT(loads_of([&] { scaled.compile({x}), total.compile({x}); }), 0);
  EXPECT_EQ(loads_of([&] { EXPECT_EQ(scaled(x)[5].item<float>(), 25); }), 0);
  EXPECT_EQ(loads_of([&] { EXPECT_EQ(total(x).item<float>(), 15); }), 0);
  EXPECT_GT(loads_of([&] { EXPECT_EQ(cold(x)[5].item<float>(), 35); }), 0);
}

TEST(ElementwiseKernel, KnowsWhichOutputsAreSurelyAssigned) {
  for (const char* text : {"y = x", " y=x;", "T d = x - 1; y = d * d", "x2 = y2; y = 1"}) {
    EXPECT_TRUE(detail::surely_assigned(text, "y")) << text;
  }
  for (const char* text :
       {"", "y += x", "y == x", "z = y; y = 1", "if (x > 0) y = x", "f(x, y)", "x > 0 ? y = x : 0",
        "{ y = x; }", "if (x) continue; y = x", "*&y = x", "// y\ny = x", "T d = y", "z = y = x"}) {
    EXPECT_FALSE(detail::surely_assigned(text, "y")) << text;
  }
}

TEST(ElementwiseKernel, ParametersThatCannotBeRead) {
  auto make = [](const char* in, const char* out) { ElementwiseKernel(in, out, "", "k"); };
  EXPECT_THROW(make("T", "T y"), ValueError);
  EXPECT_THROW(make("T x y", "T y"), ValueError);
  EXPECT_THROW(make("thing x", "T y"), ValueError);
  EXPECT_THROW(make("T x, T x", "T y"), ValueError);
  EXPECT_THROW(make("T x", "T x"), ValueError);
  EXPECT_THROW(make("T x", ""), ValueError);
  EXPECT_THROW(make("T 1x", "T y"), ValueError);
  EXPECT_NO_THROW(make("raw T x, float y, int m", "double z"));
}

TEST(ElementwiseKernel, ReservedNamesAreRefusedByName) {
  auto refused = [](const std::string& name, auto make) {
    try {
      make();
      ADD_FAILURE() << name << " was taken";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("cannot be called " + name), std::string::npos)
          << error.what();
    }
  };
  for (const std::string name : {"i", "n", "_ind", "rensa_a", "float32", "T"}) {
    refused(name, [&] { ElementwiseKernel("T " + name, "T y", "y = 0", "k"); });
    refused(name, [&] { ElementwiseKernel("T x", "T " + name, "", "k"); });
  }
  for (const std::string name : {"a", "b", "i", "_j", "_J", "_in_ind", "_out_ind", "acc", "T"}) {
    refused(name, [&] { ReductionKernel("T " + name, "T y", "0", "a + b", "y = a", "0", "k"); });
  }
}

TEST_P(ElementwiseKernelTest, SixteenBitAndComplexNumbers) {
  ElementwiseKernel scale("T x, T factor", "T y", "y = x * factor", "scale_by");
  Array half = arange({3}, float16), z = arange({3}, complex64);
  EXPECT_EQ(values<float>(scale(half, half_t(0.5f))), (std::vector<float>{0, 0.5f, 1}));
  EXPECT_EQ(values<float>(scale(arange({3}, bfloat16), bfloat16_t(2.f))),
            (std::vector<float>{0, 2, 4}));
  Array got = scale(z, std::complex<float>(0, 2));
  EXPECT_TRUE(xp::array_equal(got, z * std::complex<float>(0, 2)));
}

TEST_P(ElementwiseKernelTest, OptionsGoToTheCompilerOfGpus) {
  ElementwiseKernel kernel(
      "T x", "T y", "#ifdef __CUDACC__\ny = VALUE;\n#else\ny = 7;\n#endif", "with_option",
      {.preamble = "", .loop_prep = "", .after_loop = "", .options = {"-DVALUE=7"}});
  EXPECT_EQ(values<float>(kernel(arange({2}))), (std::vector<float>{7, 7}));
}

#if RENSA_HAS_CUDA
TEST(ElementwiseKernel, ItsCudaSourceCompilesWithoutAGpu) {
  ElementwiseKernel kernel("T x, raw U y, float32 f", "T z, bool b",
                           "z = x * T(f) + T(y[i]); b = isnan(f)", "mixed");
  for (Dtype dtype : {float32, float16, bfloat16, float64, int8, uint64}) {
    Array x = xp::zeros({4, 5}, dtype), y = xp::zeros({5, 4}, float32);
    // Straight, strided, and rows of packs: dense, of a part, of one element each.
    Array wide = xp::zeros({4, 24}, dtype);
    for (const Array& operand : std::vector<Array>{
             x, xp::zeros({5, 4}, dtype).T(), wide[{Slice(), Slice(8, 16)}],
             wide[{Slice(), Slice(0, 1)}].broadcast_to({4, 24}), wide[0].broadcast_to({4, 24})}) {
      for (const Array& raw : {y, y.T()}) {
        auto code =
            cuda::compile_gpu_code({kernel.source({operand, raw, 1.5}), "mixed", {}, {}}, 90);
        EXPECT_GT(code.image.size(), 100u) << dtype_name(dtype);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace rensa
