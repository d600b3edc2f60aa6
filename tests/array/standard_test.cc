// The Python array API standard 2024.12: the dtypes that its functions take and give, and the
// special values that its text fixes. tools/check_array_api.py holds names and parameters.
#include <algorithm>
#include <cmath>
#include <functional>

#include "rensa/array/ufuncs/ufuncs.h"
#include "tests/array/arrays.h"
#include "tests/optional_parts.h"

namespace rensa {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.141592653589793;

const std::vector<Dtype> kSigned = {int8, int16, int32, int64};
const std::vector<Dtype> kIntegers = {int8, int16, int32, int64, uint8, uint16, uint32, uint64};
const std::vector<Dtype> kReals = {float32, float64};
const std::vector<Dtype> kComplexes = {complex64, complex128};

std::vector<Dtype> joined(std::initializer_list<std::vector<Dtype>> lists) {
  std::vector<Dtype> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}
std::vector<Dtype> floating() { return joined({kReals, kComplexes}); }
std::vector<Dtype> real_numeric() { return joined({kIntegers, kReals}); }
std::vector<Dtype> numeric() { return joined({kIntegers, kReals, kComplexes}); }
std::vector<Dtype> with_bool(std::vector<Dtype> dtypes) {
  dtypes.push_back(bool_);
  return dtypes;
}

using Result = std::function<Dtype(Dtype)>;
Dtype same(Dtype d) { return d; }
Dtype truth(Dtype) { return bool_; }
Dtype position(Dtype) { return int64; }
Dtype real_part(Dtype d) { return d == complex64 ? float32 : d == complex128 ? float64 : d; }
// The widest of a kind, as sums are.
Dtype summed(Dtype d) {
  char kind = dtype_kind(d);
  return kind == 'i' ? int64 : kind == 'u' ? uint64 : d;
}

struct Row {
  const char* name;
  std::vector<Dtype> dtypes;
  Result result;
  std::function<Array(const Array&)> call;
};

std::vector<Row> elementwise_rows() {
#define RENSA_ONE(name, dtypes, result)                               \
  {                                                                   \
#name, dtypes, result, [](const Array& a) { return xp::name(a); } \
  }
#define RENSA_TWO(name, dtypes, result)                                  \
  {                                                                      \
#name, dtypes, result, [](const Array& a) { return xp::name(a, a); } \
  }
  return {
      RENSA_ONE(abs, numeric(), real_part),
      RENSA_ONE(acos, floating(), same),
      RENSA_ONE(acosh, floating(), same),
      RENSA_TWO(add, numeric(), same),
      RENSA_ONE(asin, floating(), same),
      RENSA_ONE(asinh, floating(), same),
      RENSA_ONE(atan, floating(), same),
      RENSA_TWO(atan2, kReals, same),
      RENSA_ONE(atanh, floating(), same),
      RENSA_TWO(bitwise_and, with_bool(kIntegers), same),
      RENSA_TWO(bitwise_left_shift, kIntegers, same),
      RENSA_ONE(bitwise_invert, with_bool(kIntegers), same),
      RENSA_TWO(bitwise_or, with_bool(kIntegers), same),
      RENSA_TWO(bitwise_right_shift, kIntegers, same),
      RENSA_TWO(bitwise_xor, with_bool(kIntegers), same),
      RENSA_ONE(ceil, real_numeric(), same),
      {"clip", real_numeric(), same, [](const Array& a) { return xp::clip(a, 0, 1); }},
      RENSA_ONE(conj, kComplexes, same),
      RENSA_TWO(copysign, kReals, same),
      RENSA_ONE(cos, floating(), same),
      RENSA_ONE(cosh, floating(), same),
      RENSA_TWO(divide, floating(), same),
      RENSA_TWO(equal, with_bool(numeric()), truth),
      RENSA_ONE(exp, floating(), same),
      RENSA_ONE(expm1, floating(), same),
      RENSA_ONE(floor, real_numeric(), same),
      RENSA_TWO(floor_divide, real_numeric(), same),
      RENSA_TWO(greater, real_numeric(), truth),
      RENSA_TWO(greater_equal, real_numeric(), truth),
      RENSA_TWO(hypot, kReals, same),
      RENSA_ONE(imag, kComplexes, real_part),
      RENSA_ONE(isfinite, numeric(), truth),
      RENSA_ONE(isinf, numeric(), truth),
      RENSA_ONE(isnan, numeric(), truth),
      RENSA_TWO(less, real_numeric(), truth),
      RENSA_TWO(less_equal, real_numeric(), truth),
      RENSA_ONE(log, floating(), same),
      RENSA_ONE(log1p, floating(), same),
      RENSA_ONE(log2, floating(), same),
      RENSA_ONE(log10, floating(), same),
      RENSA_TWO(logaddexp, kReals, same),
      RENSA_TWO(logical_and, {bool_}, truth),
      RENSA_ONE(logical_not, {bool_}, truth),
      RENSA_TWO(logical_or, {bool_}, truth),
      RENSA_TWO(logical_xor, {bool_}, truth),
      RENSA_TWO(maximum, real_numeric(), same),
      RENSA_TWO(minimum, real_numeric(), same),
      RENSA_TWO(multiply, numeric(), same),
      RENSA_ONE(negative, joined({kSigned, kReals, kComplexes}), same),
      RENSA_TWO(nextafter, kReals, same),
      RENSA_TWO(not_equal, with_bool(numeric()), truth),
      RENSA_ONE(positive, numeric(), same),
      RENSA_TWO(pow, numeric(), same),
      RENSA_ONE(real, kComplexes, real_part),
      RENSA_ONE(reciprocal, floating(), same),
      RENSA_TWO(remainder, real_numeric(), same),
      RENSA_ONE(round, numeric(), same),
      RENSA_ONE(sign, numeric(), same),
      RENSA_ONE(signbit, kReals, truth),
      RENSA_ONE(sin, floating(), same),
      RENSA_ONE(sinh, floating(), same),
      RENSA_ONE(square, numeric(), same),
      RENSA_ONE(sqrt, floating(), same),
      RENSA_TWO(subtract, numeric(), same),
      RENSA_ONE(tan, floating(), same),
      RENSA_ONE(tanh, floating(), same),
      RENSA_ONE(trunc, real_numeric(), same),
  };
}

std::vector<Row> other_rows() {
  return {
      RENSA_ONE(argmax, real_numeric(), position),
      RENSA_ONE(argmin, real_numeric(), position),
      RENSA_ONE(argsort, real_numeric(), position),
      RENSA_ONE(sort, real_numeric(), same),
      RENSA_ONE(count_nonzero, with_bool(numeric()), position),
      RENSA_ONE(cumulative_sum, numeric(), summed),
      RENSA_ONE(cumulative_prod, numeric(), summed),
      RENSA_ONE(sum, numeric(), summed),
      RENSA_ONE(prod, numeric(), summed),
      RENSA_ONE(max, real_numeric(), same),
      RENSA_ONE(min, real_numeric(), same),
      RENSA_ONE(mean, floating(), same),
      RENSA_ONE(std, kReals, same),
      RENSA_ONE(var, kReals, same),
      RENSA_ONE(all, with_bool(numeric()), truth),
      RENSA_ONE(any, with_bool(numeric()), truth),
      RENSA_ONE(diff, numeric(), same),
      RENSA_ONE(unique_values, with_bool(numeric()), same),
      RENSA_TWO(vecdot, numeric(), same),
      RENSA_TWO(matmul, numeric(), same),
      {"tensordot", numeric(), same, [](const Array& a) { return xp::tensordot(a, a, 1); }},
      {"searchsorted", real_numeric(), position,
       [](const Array& a) { return xp::searchsorted(a, a); }},
      {"take", with_bool(numeric()), same,
       [](const Array& a) {
         return xp::take(a, xp::array({0, 1}, a.device()), 0);
       }},
      {"fft.fft", kComplexes, same, [](const Array& a) { return xp::fft::fft(a); }},
      {"fft.irfft", kComplexes, real_part, [](const Array& a) { return xp::fft::irfft(a); }},
      {"fft.hfft", kComplexes, real_part, [](const Array& a) { return xp::fft::hfft(a); }},
      {"linalg.vector_norm", floating(), real_part,
       [](const Array& a) { return xp::linalg::vector_norm(a); }},
  };
}
#undef RENSA_ONE
#undef RENSA_TWO

TEST(Standard, Dtypes) {
  for (Device device : testing::test_devices()) {
    for (const std::vector<Row>& rows : {elementwise_rows(), other_rows()}) {
      for (const Row& row : rows) {
        for (Dtype dtype : row.dtypes) {
          SCOPED_TRACE(std::string(row.name) + " of " + std::string(dtype_name(dtype)));
          Array result = row.call(xp::ones({3}, dtype, device));
          EXPECT_EQ(result.dtype(), row.result(dtype));
          EXPECT_EQ(result.device(), device);
        }
      }
    }
  }
}

TEST(Standard, ComplexResultsOfRealOperands) {
  for (Device device : testing::test_devices()) {
    for (auto [real, complex] : {std::pair{float32, complex64}, {float64, complex128}}) {
      Array a = xp::ones({4}, real, device);
      EXPECT_EQ(xp::fft::rfft(a).dtype(), complex);
      EXPECT_EQ(xp::fft::ihfft(a).dtype(), complex);
      EXPECT_EQ(xp::fft::fftn(a).dtype(), complex);
    }
    EXPECT_EQ(xp::fft::fftfreq(4, 1, {.dtype = float32, .device = device}).dtype(), float32);
  }
}

// --- special values ---

struct Special {
  const char* name;
  std::function<Array(const Array&)> call;
  std::vector<std::pair<double, double>> values;  // what is given, what comes
};

std::vector<Special> special_values() {
#define RENSA_SPECIAL(name, ...)                                       \
  {                                                                    \
#name, [](const Array& a) { return xp::name(a); }, { __VA_ARGS__ } \
  }
  double h = kPi / 2;
  return {
      RENSA_SPECIAL(abs, {kNan, kNan}, {-0., 0.}, {-kInf, kInf}),
      RENSA_SPECIAL(acos, {kNan, kNan}, {1.5, kNan}, {-1.5, kNan}, {1., 0.}),
      RENSA_SPECIAL(acosh, {kNan, kNan}, {0.5, kNan}, {1., 0.}, {kInf, kInf}),
      RENSA_SPECIAL(asin, {kNan, kNan}, {1.5, kNan}, {-1.5, kNan}, {0., 0.}, {-0., -0.}),
      RENSA_SPECIAL(asinh, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, kInf}, {-kInf, -kInf}),
      RENSA_SPECIAL(atan, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, h}, {-kInf, -h}),
      RENSA_SPECIAL(atanh, {kNan, kNan}, {-1.5, kNan}, {1.5, kNan}, {-1., -kInf}, {1., kInf},
                    {0., 0.}, {-0., -0.}),
      RENSA_SPECIAL(ceil, {kNan, kNan}, {kInf, kInf}, {-kInf, -kInf}, {0., 0.}, {-0., -0.}),
      RENSA_SPECIAL(cos, {kNan, kNan}, {0., 1.}, {-0., 1.}, {kInf, kNan}, {-kInf, kNan}),
      RENSA_SPECIAL(cosh, {kNan, kNan}, {0., 1.}, {-0., 1.}, {kInf, kInf}, {-kInf, kInf}),
      RENSA_SPECIAL(exp, {kNan, kNan}, {0., 1.}, {-0., 1.}, {kInf, kInf}, {-kInf, 0.}),
      RENSA_SPECIAL(expm1, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, kInf}, {-kInf, -1.}),
      RENSA_SPECIAL(floor, {kNan, kNan}, {kInf, kInf}, {-kInf, -kInf}, {0., 0.}, {-0., -0.}),
      RENSA_SPECIAL(isfinite, {kNan, 0.}, {kInf, 0.}, {-kInf, 0.}, {1., 1.}),
      RENSA_SPECIAL(isinf, {kNan, 0.}, {kInf, 1.}, {-kInf, 1.}, {1., 0.}),
      RENSA_SPECIAL(isnan, {kNan, 1.}, {kInf, 0.}, {1., 0.}),
      RENSA_SPECIAL(log, {kNan, kNan}, {-1., kNan}, {0., -kInf}, {-0., -kInf}, {1., 0.},
                    {kInf, kInf}),
      RENSA_SPECIAL(log1p, {kNan, kNan}, {-2., kNan}, {-1., -kInf}, {-0., -0.}, {0., 0.},
                    {kInf, kInf}),
      RENSA_SPECIAL(log2, {kNan, kNan}, {-1., kNan}, {0., -kInf}, {-0., -kInf}, {1., 0.},
                    {kInf, kInf}),
      RENSA_SPECIAL(log10, {kNan, kNan}, {-1., kNan}, {0., -kInf}, {-0., -kInf}, {1., 0.},
                    {kInf, kInf}),
      RENSA_SPECIAL(reciprocal, {kNan, kNan}, {kInf, 0.}, {-kInf, -0.}, {0., kInf}, {-0., -kInf}),
      RENSA_SPECIAL(round, {kNan, kNan}, {kInf, kInf}, {-kInf, -kInf}, {0., 0.}, {-0., -0.},
                    {0.5, 0.}, {1.5, 2.}, {2.5, 2.}),
      RENSA_SPECIAL(sign, {-2., -1.}, {-0., 0.}, {0., 0.}, {3., 1.}, {kNan, kNan}),
      RENSA_SPECIAL(signbit, {0., 0.}, {-0., 1.}, {kInf, 0.}, {-kInf, 1.}, {-2., 1.}, {2., 0.}),
      RENSA_SPECIAL(sin, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, kNan}, {-kInf, kNan}),
      RENSA_SPECIAL(sinh, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, kInf}, {-kInf, -kInf}),
      RENSA_SPECIAL(sqrt, {kNan, kNan}, {-1., kNan}, {0., 0.}, {-0., -0.}, {kInf, kInf}),
      RENSA_SPECIAL(tan, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, kNan}, {-kInf, kNan}),
      RENSA_SPECIAL(tanh, {kNan, kNan}, {0., 0.}, {-0., -0.}, {kInf, 1.}, {-kInf, -1.}),
      RENSA_SPECIAL(trunc, {kNan, kNan}, {kInf, kInf}, {-kInf, -kInf}, {0., 0.}, {-0., -0.}),
  };
#undef RENSA_SPECIAL
}

struct Special2 {
  const char* name;
  std::function<Array(const Array&, const Array&)> call;
  std::vector<std::array<double, 3>> values;
};

std::vector<Special2> special_pairs() {
#define RENSA_SPECIAL(name, ...)                                                          \
  {                                                                                       \
#name, [](const Array& a, const Array& b) { return xp::name(a, b); }, { __VA_ARGS__ } \
  }
#define P std::array<double, 3>
  double h = kPi / 2, q = kPi / 4;
  return {
      RENSA_SPECIAL(add, P{kNan, 1, kNan}, P{kInf, -kInf, kNan}, P{-kInf, kInf, kNan},
                    P{kInf, kInf, kInf}, P{kInf, 1, kInf}, P{-0., -0., -0.}, P{-0., 0., 0.},
                    P{1, -1, 0.}),
      RENSA_SPECIAL(atan2, P{kNan, 1, kNan}, P{1, 0., h}, P{1, -0., h}, P{0., 1, 0.}, P{0., 0., 0.},
                    P{0., -0., kPi}, P{0., -1, kPi}, P{-0., 1, -0.}, P{-0., 0., -0.},
                    P{-0., -0., -kPi}, P{-0., -1, -kPi}, P{-1, 0., -h}, P{1, kInf, 0.},
                    P{1, -kInf, kPi}, P{-1, kInf, -0.}, P{-1, -kInf, -kPi}, P{kInf, 1, h},
                    P{-kInf, 1, -h}, P{kInf, kInf, q}, P{kInf, -kInf, 3 * q}, P{-kInf, kInf, -q},
                    P{-kInf, -kInf, -3 * q}),
      RENSA_SPECIAL(copysign, P{3, -0., -3}, P{-3, 2, 3}, P{0., -kInf, -0.}),
      RENSA_SPECIAL(divide, P{kNan, 1, kNan}, P{kInf, -kInf, kNan}, P{0., -0., kNan}, P{0., 1, 0.},
                    P{0., -1, -0.}, P{-0., 1, -0.}, P{1, 0., kInf}, P{1, -0., -kInf},
                    P{-1, 0., -kInf}, P{kInf, 2, kInf}, P{kInf, -2, -kInf}, P{2, kInf, 0.},
                    P{2, -kInf, -0.}, P{-2, kInf, -0.}),
      RENSA_SPECIAL(hypot, P{kInf, 1, kInf}, P{1, -kInf, kInf}, P{kInf, kNan, kInf},
                    P{kNan, -kInf, kInf}, P{1, kNan, kNan}, P{kNan, kNan, kNan}),
      RENSA_SPECIAL(logaddexp, P{kNan, 1, kNan}, P{kInf, 1, kInf}, P{1, kInf, kInf}),
      RENSA_SPECIAL(maximum, P{kNan, 1, kNan}, P{1, kNan, kNan}),
      RENSA_SPECIAL(minimum, P{kNan, 1, kNan}, P{1, kNan, kNan}),
      RENSA_SPECIAL(multiply, P{kNan, 1, kNan}, P{kInf, 0., kNan}, P{-kInf, -0., kNan},
                    P{kInf, -kInf, -kInf}, P{-kInf, -2, kInf}, P{0., -3, -0.}),
      RENSA_SPECIAL(nextafter, P{kNan, 1, kNan}, P{1, kNan, kNan}, P{0., -0., -0.}, P{2, 2, 2}),
      RENSA_SPECIAL(pow, P{2, 1, 2}, P{1, kNan, 1}, P{kNan, 0., 1}, P{kNan, -0., 1}, P{1, kInf, 1},
                    P{-1, kInf, 1}, P{-1, -kInf, 1}, P{kNan, 2, kNan}, P{2, kInf, kInf},
                    P{2, -kInf, 0.}, P{0.5, kInf, 0.}, P{0.5, -kInf, kInf}, P{kInf, 2, kInf},
                    P{kInf, -2, 0.}, P{-kInf, 3, -kInf}, P{-kInf, 2, kInf}, P{-kInf, -3, -0.},
                    P{-kInf, -2, 0.}, P{0., 2, 0.}, P{0., -2, kInf}, P{-0., 3, -0.}, P{-0., 2, 0.},
                    P{-0., -3, -kInf}, P{-0., -2, kInf}, P{-2, 0.5, kNan}),
      RENSA_SPECIAL(floor_divide, P{kNan, 1, kNan}, P{kInf, -kInf, kNan}, P{0., 0., kNan},
                    P{1, 2, 0.}, P{-1, 2, -1}, P{1, -2, -1}),
      RENSA_SPECIAL(remainder, P{kNan, 1, kNan}, P{kInf, 2, kNan}, P{2, 0., kNan}, P{0., 2, 0.},
                    P{0., -2, -0.}, P{-0., 2, 0.}, P{-0., -2, -0.}, P{3, -2, -1}, P{-3, 2, 1}),
      RENSA_SPECIAL(subtract, P{kInf, kInf, kNan}, P{-0., 0., -0.}, P{0., 0., 0.}),
  };
#undef P
#undef RENSA_SPECIAL
}

// Equal to the last digits of a dtype, zeros by their sign too.
bool agrees(double got, double want, Dtype dtype) {
  if (std::isnan(want)) return std::isnan(got);
  if (want == 0 || std::isinf(want)) return got == want && std::signbit(got) == std::signbit(want);
  return std::abs(got - want) <= 4 * testing::tolerance(dtype) * std::abs(want);
}

TEST(Standard, SpecialValuesOfOneOperand) {
  for (Device device : testing::test_devices()) {
    for (const Special& special : special_values()) {
      for (Dtype dtype : kReals) {
        for (auto [given, want] : special.values) {
          Array result = special.call(xp::full({3}, given, dtype, device));
          double got = result.to_vector<double>()[1];
          // What is told of a sign by -0 alone is left open for sign.
          bool zero = std::string_view(special.name) == "sign" && want == 0;
          EXPECT_TRUE(agrees(zero ? std::abs(got) : got, want, dtype))
              << special.name << "(" << given << ") of " << dtype_name(dtype) << " on "
              << device.str() << " is " << got << ", not " << want;
        }
      }
    }
  }
}

TEST(Standard, SpecialValuesOfTwoOperands) {
  for (Device device : testing::test_devices()) {
    for (const Special2& special : special_pairs()) {
      for (Dtype dtype : kReals) {
        for (auto [a, b, want] : special.values) {
          Array x = xp::full({3}, a, dtype, device), y = xp::full({3}, b, dtype, device);
          double got = special.call(x, y).to_vector<double>()[1];
          EXPECT_TRUE(agrees(got, want, dtype))
              << special.name << "(" << a << ", " << b << ") of " << dtype_name(dtype) << " on "
              << device.str() << " is " << got << ", not " << want;
        }
      }
    }
  }
}

TEST(Standard, SpecialReductions) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : kReals) {
      Array nothing = xp::zeros({0}, dtype, device);
      Array nan = xp::array({1., kNan, 2.}, device).astype(dtype);
      EXPECT_EQ(xp::sum(nothing).item<double>(), 0);
      EXPECT_EQ(xp::prod(nothing).item<double>(), 1);
      EXPECT_TRUE(std::isnan(xp::mean(nothing).item<double>()));
      EXPECT_TRUE(std::isnan(xp::max(nan).item<double>()));
      EXPECT_TRUE(std::isnan(xp::min(nan).item<double>()));
      EXPECT_TRUE(std::isnan(xp::sum(nan).item<double>()));
      EXPECT_TRUE(std::isnan(xp::var(nan).item<double>()));
      EXPECT_TRUE(
          std::isnan(xp::std(xp::ones({2}, dtype, device), {.correction = 3}).item<double>()));
      EXPECT_TRUE(xp::all(nan).item<bool>());
      EXPECT_TRUE(xp::any(nan).item<bool>());
      EXPECT_TRUE(xp::all(nothing).item<bool>());
      EXPECT_FALSE(xp::any(nothing).item<bool>());
      EXPECT_EQ(xp::unique_values(xp::concatenate({nan, nan})).size(), 4);  // each NaN is one
      EXPECT_EQ(xp::argmax(xp::array({1., 3., 3.}, device)).item<int>(), 1);
    }
  }
}

}  // namespace
}  // namespace rensa
