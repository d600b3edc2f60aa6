// The path that all elementwise routines share: operators, weak numbers, broadcasting and errors.
#include "rensa/array/random_basics.h"
#include "rensa/array/ufuncs/exponential.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/backend/cpu/kernels.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class ElementwiseTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(ElementwiseTest, Operators) {
  Array a = xp::array({5, -3}), b = xp::array({2, 2});
  EXPECT_EQ(values(a + b), V({7, -1}));
  EXPECT_EQ(values(a - b), V({3, -5}));
  EXPECT_EQ(values(a * b), V({10, -6}));
  EXPECT_EQ(values(a / b), V({2.5, -1.5}));
  EXPECT_EQ(values(a % b), V({1, 1}));
  EXPECT_EQ(values(a == b), V({0, 0}));
  EXPECT_EQ(values(a != b), V({1, 1}));
  EXPECT_EQ(values(a < b), V({0, 1}));
  EXPECT_EQ(values(a <= 5), V({1, 1}));
  EXPECT_EQ(values(a > b), V({1, 0}));
  EXPECT_EQ(values(5 >= a), V({1, 1}));
  EXPECT_EQ(values(a & 6), V({4, 4}));
  EXPECT_EQ(values(a | b), V({7, -1}));
  EXPECT_EQ(values(1 ^ a), V({4, -4}));
  EXPECT_EQ(values(2 - a), V({-3, 5}));
  EXPECT_EQ(values(10 / b), V({5, 5}));
  EXPECT_EQ(values(-a), V({-5, 3}));
  EXPECT_EQ(values(+a), V({5, -3}));
  EXPECT_EQ(values(~a), V({-6, 2}));
  EXPECT_EQ(values(~xp::array({true, false})), V({0, 1}));
  for (Dtype d : {uint8, uint16, uint32}) {
    EXPECT_EQ((~xp::zeros({1}, d)).item<double>(),
              std::ldexp(1.0, 8 * static_cast<int>(itemsize(d))) - 1);
  }
  EXPECT_EQ((~xp::zeros({1}, uint64)).item<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_THROW(~xp::ones({1}), DtypeError);
  EXPECT_THROW(-xp::ones({1}, bool_), DtypeError);
}

TEST_P(ElementwiseTest, GenericFunctionOfTheTour) {
  auto softplus = [](const Array& x) {
    return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
  };
  Array x = xp::linspace(-3, 3, 7, float32);
  Array want = xp::log(1 + xp::exp(x));
  EXPECT_TRUE(xp::allclose(softplus(x), want, 1e-6));
  EXPECT_EQ(softplus(x).dtype(), float32);
}

TEST_P(ElementwiseTest, NumbersAreWeak) {
  auto dtype = [](const Array& a) { return a.dtype(); };
  Array f16 = xp::ones({1}, float16), f32 = xp::ones({1}), i8 = xp::ones({1}, int8),
        u8 = xp::ones({1}, uint8), b = xp::ones({1}, bool_);
  EXPECT_EQ(dtype(f16 + 1.5), float16);
  EXPECT_EQ(dtype(f32 * 2), float32);
  EXPECT_EQ(dtype(i8 + 1), int8);
  EXPECT_EQ(dtype(i8 + 1.5), float64);
  EXPECT_EQ(dtype(b + 1), int64);
  EXPECT_EQ(dtype(b + true), bool_);
  EXPECT_EQ(dtype(u8 * true), uint8);
  EXPECT_EQ(dtype(f32 + std::complex<double>(0, 1)), complex64);
  EXPECT_EQ(dtype(i8 + std::complex<double>(0, 1)), complex128);
  EXPECT_EQ(dtype(xp::where(b, f32, 0.)), float32);
  EXPECT_EQ(dtype(xp::where(b, 1, 0)), int64);
  EXPECT_EQ(dtype(xp::clip(f16, 0, 1)), float16);
  EXPECT_EQ(dtype(xp::ones({1}, bfloat16) + f16), float32);
  // The number is rounded to the array's dtype first.
  EXPECT_EQ((xp::zeros({1}, float16) + 0.1).item<double>(), 0.0999755859375);
}

TEST_P(ElementwiseTest, IntegersThatDoNotFit) {
  Array u8 = xp::array({1, 200}).astype(uint8);
  std::string text = thrown<ValueError>([&] { u8 + 300; });
  EXPECT_NE(text.find("add: the number 300 is out of bounds for uint8"), text.npos) << text;
  EXPECT_THROW(u8 - -1, ValueError);
  EXPECT_THROW(xp::ones({1}, int8) * 128, ValueError);
  EXPECT_NO_THROW(xp::ones({1}, int8) * -128);
  // Comparisons are exact instead.
  EXPECT_EQ(values(u8 < 300), V({1, 1}));
  EXPECT_EQ(values(u8 > -1), V({1, 1}));
  EXPECT_EQ(values(u8 == 456), V({0, 0}));
  EXPECT_EQ(values(xp::array({1, -1}) < ~std::uint64_t{0}), V({1, 1}));
  EXPECT_EQ(values(xp::array({5}).astype(uint64) + (std::uint64_t{1} << 63)),
            V({9223372036854775808.0 + 5}));
}

TEST_P(ElementwiseTest, Broadcasts) {
  Array a = xp::arange(6).reshape({2, 1, 3}), b = xp::arange(4).reshape({4, 1});
  Array c = a * 10 + b;
  EXPECT_EQ(c.shape(), Shape({2, 4, 3}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) EXPECT_EQ((c[{i, j, k}]).item<int>(), (3 * i + k) * 10 + j);
    }
  }
  EXPECT_EQ((xp::ones({0, 3}) + xp::ones({1, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ((xp::ones({0}) + xp::ones({1})).shape(), Shape({0}));
  EXPECT_EQ((xp::ones({2, 3}) + xp::array(1.f)).shape(), Shape({2, 3}));
}

TEST_P(ElementwiseTest, ErrorsNameTheOperands) {
  std::string device = GetParam().str();
  std::string text = thrown<ShapeError>([&] { xp::ones({2, 3}) + xp::ones({4}, int32); });
  EXPECT_NE(text.find("add: operands of shapes (2, 3) and (4,) do not broadcast"), text.npos)
      << text;
  EXPECT_NE(text.find(device + " (2, 3) float32"), text.npos) << text;
  EXPECT_NE(text.find(device + " (4,) int32"), text.npos) << text;
  EXPECT_THROW(xp::ones({0}) + xp::ones({2}), ShapeError);
  EXPECT_THROW(xp::elementwise(ufunc::add, {xp::ones({1})}), ValueError);
  EXPECT_THROW(xp::elementwise(ufunc::add, {Scalar(1), Scalar(2)}), ValueError);
}

TEST_P(ElementwiseTest, WritesInto) {
  Array out = xp::zeros({2, 3}, float32);
  Array same = xp::elementwise(ufunc::add, {xp::ones({3}), 2}, &out);
  EXPECT_EQ(same.storage(), out.storage());
  EXPECT_EQ(values(out), V(6, 3));
}

TEST_P(ElementwiseTest, WhereReadsAnyConditionAsTruth) {
  Array one = xp::array({1, 1}), two = xp::array({2, 2});
  EXPECT_EQ(values(xp::where(xp::array({0.25, 0.}), one, two)), V({1, 2}));
  Array f1 = xp::ones({2}), f2 = xp::full({2}, 2, float32);
  EXPECT_EQ(values(xp::where(xp::array({1e-300, 0.}), f1, f2)), V({1, 2}));
  EXPECT_EQ(values(xp::where(xp::array({256, 0}), f1.astype(uint8), f2.astype(uint8))), V({1, 2}));
  EXPECT_EQ(values(xp::where(xp::array({std::nan(""), 0.}), one, two)), V({1, 2}));
}

// Where the CPU has fused multiply-adds (tests/core/power_test.cc has the values).
TEST(ElementwiseDevices, FloatPowersHaveTheSameBits) {
  RENSA_NEEDS_GPUS(1);
  if (host::best_instruction_set() == host::InstructionSet::baseline) {
    GTEST_SKIP() << "needs AVX2";
  }
  xp::random::seed(1);
  Array base = xp::random::uniform(0, 4, {100000}, float32, cpu());
  Array exponent = xp::random::uniform(-60, 60, {100000}, float32, cpu());
  Array chance = xp::random::uniform(0, 1, {100000}, float32, cpu());
  Array a = xp::where(chance < 0.1, -base, base);
  Array b = xp::where(chance < 0.2, xp::rint(exponent), exponent);
  Array there = xp::power(a.to(gpu(0)), b.to(gpu(0))).to(cpu());
  EXPECT_TRUE(xp::array_equal(xp::power(a, b), there));
}

TEST(ElementwiseDevices, DoNotMix) {
  RENSA_NEEDS_GPUS(1);
  std::string text = thrown<DeviceError>([] {
    xp::ones({5, 4, 3}, float32, gpu(0)) + xp::ones({5, 4, 3}, float32, cpu());
  });
  EXPECT_EQ(text,
            "add: operands on cuda:0 (5, 4, 3) float32 and cpu (5, 4, 3) float32; move one with "
            ".to(...)");
}

}  // namespace
}  // namespace rensa
