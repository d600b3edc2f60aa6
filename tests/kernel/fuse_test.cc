// fuse: fused functions give the bits of the plain ones, in as few kernels as promised.
#include "rensa/kernel/fuse.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "rensa/array/pointwise.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/exponential.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/core/error.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/fused_plan.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

/// Whether the two have the same dtype, shape and bits, NaNs counting as one. On the CPU the
/// machine's compiler chooses between libm's scalar and vector functions, whose last bits may
/// differ.
::testing::AssertionResult same(const Array& got, const Array& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return ::testing::AssertionFailure()
           << got.view().describe() << " is not " << want.view().describe();
  }
  auto bytes = [](const Array& a) {
    Array host = a.ascontiguous().get();
    return std::string(static_cast<const char*>(host.data()),
                       static_cast<std::size_t>(host.nbytes()));
  };
  std::string a = bytes(got), b = bytes(want);
  auto size = static_cast<std::size_t>(itemsize(got.dtype()));
  std::vector<bool> both_nan;
  if (dtype_kind(got.dtype()) == 'f')
    both_nan = (xp::isnan(got) & xp::isnan(want)).to_vector<bool>();
  for (std::size_t k = 0; k < a.size() / size; ++k) {
    if (a.compare(k * size, size, b, k * size, size) == 0 || (!both_nan.empty() && both_nan[k]))
      continue;
    double near = 4 * testing::tolerance(want.dtype());
    if (want.device().is_cpu() && testing::matches(got, want, {near, near})) break;
    Array i = got.ravel(), j = want.ravel();
    auto at = static_cast<std::int64_t>(k);
    return ::testing::AssertionFailure()
           << "element " << k << " is " << i[at].str() << ", not " << j[at].str();
  }
  return ::testing::AssertionSuccess();
}

/// The same of all arrays of two results.
template <class T> void expect_same(T& got, T& want) {
  std::vector<Array*> a, b;
  detail::collect(got, a);
  detail::collect(want, b);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(same(*a[k], *b[k])) << "result " << k;
}

Array softplus(const Array& x) { return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x))); }

class FuseTest : public ::testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  /// Numbers of all sizes, with some that are special.
  Array numbers(const Shape& shape, Dtype dtype = float32) const {
    Array a = xp::random::normal(0, 4, shape, float64, device());
    if (dtype_kind(dtype) == 'f' && shape.total() > 40) {
      Array flat = a.ravel();
      double inf = std::numeric_limits<double>::infinity();
      flat[{Slice(0, 5)}] = xp::array({0.0, -0.0, inf, -inf, inf - inf}, device());
      flat[{Slice(5, 9)}] = xp::array({1e-8, 3e4, -1e-3, 0.5}, device());
    }
    if (dtype_kind(dtype) == 'u') a = xp::abs(a);
    return a.astype(dtype);
  }
};

TEST_P(FuseTest, TheSoftplusOfTheTour) {
  auto fast = fuse(softplus);
  for (std::int64_t n : {1, 7, 64, 1000003}) {
    Array x = numbers({n});
    EXPECT_TRUE(same(fast(x), softplus(x))) << n;
    EXPECT_EQ(fast.kernels(), 1);
  }
  Array x = numbers({30, 50});
  EXPECT_TRUE(same(fast(x.T()), softplus(x.T())));
  EXPECT_TRUE(same(fast(x[{Slice(none, none, 3), Slice(1, none)}]),
                   softplus(x[{Slice(none, none, 3), Slice(1, none)}])));
  EXPECT_EQ(fast(xp::zeros({0, 3}, float32, device())).shape(), (Shape{0, 3}));
  EXPECT_EQ(fast(x[{1, 1}]).shape(), Shape{});
}

Array operation(Ufunc ufunc, const Array& a, const Array& b, const Array& c) {
  switch (ufunc_info(ufunc).inputs) {
    case 1: return xp::elementwise(ufunc, {a});
    case 2: return xp::elementwise(ufunc, {a, b});
    default: return xp::elementwise(ufunc, {a, b, c});
  }
}

// The rows of ops.def that take operands of the dtype.
std::vector<Ufunc> operations_of(Dtype dtype) {
  std::vector<Ufunc> rows;
  Array one = xp::ones({1}, dtype, cpu());
  for (Ufunc ufunc : all_ufuncs()) {
    try {
      operation(ufunc, one, one, one);
      rows.push_back(ufunc);
    } catch (const DtypeError&) {}
  }
  return rows;
}

auto all_operations_of(Dtype dtype) {
  return [rows = operations_of(dtype)](const Array& a, const Array& b, const Array& c) {
    std::vector<Array> results;
    for (Ufunc ufunc : rows) results.push_back(operation(ufunc, a, b, c));
    return results;
  };
}

TEST_P(FuseTest, EveryOperationOfTheTable) {
  xp::random::seed(3);
  for (Dtype dtype : {float32, float64, float16, bfloat16, int32, uint8, bool_, complex64}) {
    Array a = numbers({7, 37}, dtype), b = numbers({37}, dtype), c = numbers({7, 1}, dtype);
    std::vector<Ufunc> rows = operations_of(dtype);
    EXPECT_GT(rows.size(), 15u);
    auto all = all_operations_of(dtype);
    auto fused = fuse(all);
    std::vector<Array> got = fused(a, b, c), want = all(a, b, c);
    EXPECT_LE(fused.kernels(), 3);
    ASSERT_EQ(got.size(), rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      EXPECT_TRUE(same(got[k], want[k])) << ufunc_info(rows[k]).name << " of " << dtype_name(dtype);
    }
  }
}

TEST_P(FuseTest, EveryPointwiseRow) {
  auto all = [](const Array& x) {
    std::vector<Array> results;
    std::vector<xp::ElementwiseArgument> inputs;
    for (const PointwiseRow* row : pointwise::all_rows()) {
      inputs.assign(static_cast<std::size_t>(row->inputs), x);
      if (row->inputs == 2) inputs[1] = 0.75;
      for (Array& y : detail::pointwise(*row, inputs)) results.push_back(y * 2);
    }
    return results;
  };
  for (Dtype dtype : {float32, float64, float16, bfloat16}) {
    auto fused = fuse(all);
    Array x = numbers({7, 37}, dtype);
    std::vector<Array> got = fused(x), want = all(x);
    ASSERT_EQ(got.size(), want.size());
    std::size_t operations = 2 * want.size();  // each output, and its product
    EXPECT_LE(static_cast<std::size_t>(fused.kernels()),
              operations / detail::kMostFusedOperations + 1);
    for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(same(got[k], want[k])) << k;
  }
}

TEST_P(FuseTest, ConversionsOnTheWay) {
  auto mixed = [](const Array& x, const Array& n, Scalar s) {
    Array half = (x * s).astype(float16), small = xp::rint(x).astype(int8);
    return std::tuple{half + 1,
                      small + n,
                      (small.astype(bfloat16) / 3).astype(float64),
                      xp::where(x, half, n),
                      x.astype(bool_) & (n > 3),
                      half.astype(float16)};
  };
  auto fused = fuse(mixed);
  Array x = numbers({4, 25}) * 0.25f, n = xp::arange(25, int32, device());
  for (Scalar s : {Scalar(3), Scalar(0.7)}) {  // kinds of numbers: other dtypes, other kernels
    auto got = fused(x, n, s), want = mixed(x, n, s);
    EXPECT_EQ(fused.kernels(), 1);
    expect_same(got, want);
  }
}

TEST_P(FuseTest, ReductionsWithWorkBeforeAndAfter) {
  auto rms = [](const Array& x, const Array& w) {
    return xp::sqrt(xp::mean(x * x, 1)) * w + xp::exp(w);
  };
  auto total = [](const Array& x) { return xp::log(xp::sum(xp::exp(x * 0.25f))); };
  auto columns = [](const Array& x) { return xp::max(xp::abs(x), 0, true) / 2; };
  auto counted = [](const Array& x) { return xp::sum(x > 0, -1); };
  auto fast_rms = fuse(rms);
  auto fast_total = fuse(total);
  auto fast_columns = fuse(columns);
  auto fast_counted = fuse(counted);
  xp::random::seed(4);
  for (const Shape& shape : {Shape{40, 3000}, Shape{3000, 40}, Shape{6, 200001}}) {
    Array x = xp::random::normal(0, 1, shape, float32, device());
    Array w = xp::random::normal(0, 1, {shape[0]}, float32, device());
    EXPECT_TRUE(same(fast_rms(x, w), rms(x, w))) << shape.str();
    EXPECT_TRUE(same(fast_total(x), total(x))) << shape.str();
    EXPECT_TRUE(same(fast_columns(x), columns(x))) << shape.str();
    EXPECT_TRUE(same(fast_counted(x), counted(x))) << shape.str();
    EXPECT_EQ(
        fast_rms.kernels() + fast_total.kernels() + fast_columns.kernels() + fast_counted.kernels(),
        4);
  }
  Array none = xp::zeros({3, 0}, float32, device());
  EXPECT_TRUE(same(fast_counted(none), counted(none)));
}

TEST_P(FuseTest, EveryReductionOfTheTable) {
  auto all = [](const Array& x) {
    Array y = x + x;
    return std::vector{xp::sum(y, 0), xp::prod(y, 1), xp::mean(y, 1), xp::max(y),
                       xp::min(y, 0), xp::any(y, 1),  xp::all(y, 0)};
  };
  for (Dtype dtype : {float16, int32}) {
    auto fused = fuse(all);
    Array x = (xp::arange(24, int64, device()) % 5).reshape({4, 6}).astype(dtype);
    std::vector<Array> got = fused(x), want = all(x);
    EXPECT_EQ(fused.kernels(), 7);
    for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(same(got[k], want[k])) << k;
  }
}

TEST_P(FuseTest, WhatNeedsSeveralKernels) {
  auto softmax = [](const Array& x) {
    Array e = xp::exp(x - xp::max(x, 1, true));
    return e / xp::sum(e, 1, true);
  };
  auto fused = fuse(softmax);
  Array x = numbers({50, 33});
  x[{0}] = 1.f;
  EXPECT_TRUE(same(fused(x), softmax(x)));
  EXPECT_EQ(fused.kernels(), 3);
  auto transposed = [](const Array& a) {  // a sliced value has to stand in memory
    Array y = a * 2;
    return y[{Slice(1, none)}] - y[{Slice(0, -1)}];
  };
  auto fused_steps = fuse(transposed);
  EXPECT_TRUE(same(fused_steps(x), transposed(x)));
  EXPECT_EQ(fused_steps.kernels(), 2);
}

TEST_P(FuseTest, ViewsOfValues) {
  auto f = [](const Array& x, const Array& row) {
    Array y = xp::exp(row) * 2, z = x + y;                            // broadcast
    Array t = z.T() * x.T(), r = xp::sum(z * z, 0).reshape({1, -1});  // transposed, reshaped
    return std::tuple{t, r + 1, z.reshape({-1}), z[{Slice(), 1}], y.broadcast_to({3, 5})};
  };
  auto fused = fuse(f);
  Array x = numbers({4, 5}), row = numbers({5});
  auto got = fused(x, row), want = f(x, row);
  expect_same(got, want);
}

TEST_P(FuseTest, InputsTwiceConstantsAndResultsThatAreInputs) {
  Array held = numbers({6});
  auto f = [&](const Array& x, const Array& y) {
    Array z = x * y + held + xp::array({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, device());
    z += xp::full({6}, 0.5, float32, device());  // in place, of its own
    return std::pair{z, x};
  };
  auto fused = fuse(f);
  Array x = numbers({6});
  auto got = fused(x, x);
  EXPECT_TRUE(same(got.first, f(x, x).first));
  EXPECT_EQ(got.second.data(), x.data());
  held = numbers({6});  // read anew at each call
  Array y = numbers({6});
  EXPECT_TRUE(same(fused(x, y).first, f(x, y).first));
  EXPECT_EQ(fused.kernels(), 1);
}

TEST_P(FuseTest, NumbersAreNotBuiltIn) {
  float slope = 0.5f;
  auto f = [&](const Array& x, double bias) { return x * slope + bias; };
  auto fused = fuse(f);
  Array x = numbers({100});
  EXPECT_TRUE(same(fused(x, 1.0), f(x, 1.0)));
  slope = -2;
  EXPECT_TRUE(same(fused(x, 3.25), f(x, 3.25)));
}

// Functions that one kernel would be too much for.
TEST_P(FuseTest, LongFunctionsAreCut) {
  auto many = [](const Array& x, const Array& row, const Array& column) {
    Array y = x, z = x * 0.5f, w = row;  // several values that go on, of several shapes
    for (int i = 0; i < 60; ++i) {
      y = xp::tanh(y) * 0.75f + z;
      z = z - y / (2 + i);
      w = xp::maximum(w * 1.25f, column);
      if (i % 20 == 10) y = y - xp::mean(y, 1, true);
      if (i % 20 == 15) z = (z + w).astype(float16).astype(float32);
    }
    return std::tuple{y + z, w, xp::sum(xp::abs(z), 0) + row, xp::max(y)};
  };
  auto fused = fuse(many);
  xp::random::seed(8);
  Array x = xp::random::normal(0, 1, {70, 90}, float32, device());
  Array row = xp::random::normal(0, 1, {90}, float32, device());
  Array column = xp::random::normal(0, 1, {70, 1}, float32, device());
  auto got = fused(x, row, column), want = many(x, row, column);
  expect_same(got, want);
  EXPECT_GT(fused.kernels(), 4);
  EXPECT_LT(fused.kernels(), 40);
}

TEST_P(FuseTest, ManyArgumentsAreSharedOut) {
  std::vector<Array> given;
  for (int i = 0; i < 300; ++i) given.push_back(xp::full({2, 3}, i, float32, device()));
  auto total = [&](const Array& x) {
    Array sum = x;
    for (const Array& a : given) sum = sum + a.T().T() * 0.5f;
    return sum;
  };
  auto fused = fuse(total);
  Array x = numbers({2, 3});
  EXPECT_TRUE(same(fused(x), total(x)));
  EXPECT_GT(fused.kernels(), 3);
}

TEST_P(FuseTest, TwentyThousandOperations) {
  auto chain = [](const Array& x) {
    Array y = x;
    for (int i = 0; i < 10000; ++i) y = y * 0.5f + x;
    return y;
  };
  auto fused = fuse(chain);
  Array x = numbers({100});
  EXPECT_TRUE(same(fused(x), chain(x)));
  EXPECT_EQ(fused.kernels(), (20000 + 63) / 64);
  EXPECT_TRUE(same(fused(x), chain(x)));
}

// A way from a reduction to a result is looked for once through each value, not along each path.
TEST_P(FuseTest, ManyPathsFromAReduction) {
  auto doubled = [](const Array& x) {
    Array y = xp::sum(x, 1);
    for (int i = 0; i < 50; ++i) y = (y + y) * 0.5f;
    return y;
  };
  auto fused = fuse(doubled);
  Array x = xp::ones({4, 5}, float32, device());
  EXPECT_TRUE(same(fused(x), doubled(x)));
}

// What leaves a traced function by other ways than its result has no values.
TEST_P(FuseTest, ArraysThatOutliveTheFunctionSaySo) {
  Array leak, part;
  auto f = fuse([&](const Array& a) {
    leak = a + 1;
    part = leak[{Slice(1, 3)}];
    return leak * 2;
  });
  Array x = numbers({4});
  EXPECT_TRUE(same(f(x), (x + 1) * 2));
  auto says = [](auto use) {
    try {
      use();
      ADD_FAILURE() << "it was used";
    } catch (const ValueError& error) {
      std::string text = error.what();
      EXPECT_NE(text.find("Return it from the function"), std::string::npos) << text;
    }
  };
  for (const Array& kept : {leak, part}) {
    says([&] { kept.str(); });
    says([&] { kept[0].item<float>(); });
    says([&] { kept.to_vector<double>(); });
    says([&] { kept.get(); });
    says([&] { kept + 1; });
    says([&] { x[{Slice(0, 2)}] + kept[{Slice(0, 2)}]; });
    says([&] { kept.fill(0); });
    says([&] { xp::savez("nowhere.npz", {{"a", kept}}); });
    says([&] { fuse(softplus)(kept); });
    says([&] { fuse([&](const Array& a) { return a + kept[0]; })(x); });
    says([&] { to_dlpack(kept); });
    if (kept.device().is_cpu()) says([&] { kept.to(cpu()); });
  }
  Array thrown;
  auto failing = fuse([&](const Array& a) {
    thrown = a + 1;
    if (thrown.defined()) throw std::runtime_error("as it likes");
    return thrown;
  });
  EXPECT_THROW(failing(x), std::runtime_error);
  says([&] { thrown.str(); });
  leak = Array();
  EXPECT_TRUE(same(f(x), (x + 1) * 2));
}

TEST_P(FuseTest, AFusedFunctionInsideAnotherIsPartOfIt) {
  auto inner = fuse(softplus);
  auto outer = fuse([&](const Array& x) { return inner(x) * 2; });
  Array x = numbers({20});
  EXPECT_TRUE(same(outer(x), softplus(x) * 2));
  EXPECT_EQ(outer.kernels(), 1);
  EXPECT_EQ(inner.kernels(), 0);
}

template <class F> std::string refusal(F f, const Array& x) {
  try {
    fuse(f)(x);
  } catch (const NotImplementedError& error) {
    return error.what();
  }
  return "";
}

TEST_P(FuseTest, WhatCannotBeFusedSaysSo) {
  Array x = numbers({4, 4});
  EXPECT_NE(refusal([](const Array& a) { return a * (a + 1).item<float>(); }, x),
            "");  // shape aside
  auto says = [&](const char* what, auto f) {
    std::string text = refusal(f, x);
    EXPECT_EQ(text.rfind(what, 0), 0u) << text;
    EXPECT_NE(text.find("elementwise"), std::string::npos) << text;
  };
  says("item", [](const Array& a) { return a * a.sum().item<float>(); });
  says("to_vector", [](const Array& a) { return a * (a + 1).to_vector<float>()[0]; });
  says("str", [](const Array& a) { return a * static_cast<double>((a + 1).str().size()); });
  says("get", [](const Array& a) { return (a + 1).get() * 2; });
  says("array2string",
       [](const Array& a) { return a * static_cast<double>(xp::array2string(a + 1).size()); });
  says("savetxt", [](const Array& a) {
    xp::savetxt("nowhere.txt", a + 1);
    return a;
  });
  says("savez", [](const Array& a) {
    xp::savez("nowhere.npz", {{"a", a + 1}});
    return a;
  });
  says("matmul", [](const Array& a) { return xp::matmul(a + 1, a); });
  says("argmax", [](const Array& a) { return xp::argmax(a + 1, 0); });
  std::string text = refusal(
      [](const Array& a) {
        a += 1;
        return a;
      },
      x);
  EXPECT_NE(text.find("which the function was given"), std::string::npos) << text;
  EXPECT_TRUE(same(fuse(softplus)(x), softplus(x)));  // and all is well after
}

INSTANTIATE_TEST_SUITE_P(Devices, FuseTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

#if RENSA_HAS_CUDA
TEST(Fuse, ItsCudaSourceCompilesWithoutAGpu) {
  auto compile = [](const std::vector<std::string>& sources) {
    for (const std::string& source : sources) {
      auto code = cuda::compile_gpu_code({source, "fused", {"-fmad=false"}, {}}, 90);
      EXPECT_GT(code.image.size(), 100u);
    }
    return sources.size();
  };
  for (Dtype dtype :
       {float32, float64, float16, bfloat16, int64, int8, uint64, bool_, complex64, complex128}) {
    Array a = xp::ones({7, 37}, dtype), b = xp::ones({37}, dtype), c = xp::ones({7, 1}, dtype);
    EXPECT_LE(compile(fuse(all_operations_of(dtype)).sources(a, b, c)), 3u) << dtype_name(dtype);
  }
  auto softmax = [](const Array& x) {
    Array e = xp::exp(x - xp::max(x, 1, true));
    return e / xp::sum(e, 1, true);
  };
  auto moments = [](const Array& x, const Array& w) {
    return std::vector{xp::mean(x, 1) * w + 1, xp::any(x > 0), xp::sum(x * 2, 0).astype(float64)};
  };
  for (Dtype dtype : {float32, float16, int8}) {
    Array x = xp::ones({20, 333}, dtype), w = xp::ones({20}, dtype);
    EXPECT_EQ(compile(fuse(moments).sources(x, w)), 3u) << dtype_name(dtype);
    EXPECT_EQ(compile(fuse(moments).sources(xp::ones({333, 20}, dtype).T(), w)), 3u);
    if (dtype != int8) {
      EXPECT_EQ(compile(fuse(softmax).sources(x)), 3u);
    }
  }
}
#endif

}  // namespace
}  // namespace rensa
