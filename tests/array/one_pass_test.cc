// Work that reads its inputs once, in vectors of any alignment: large arrays against simple loops.
#include <cmath>
#include <limits>
#include <random>

#include "rensa/array/ufuncs/logic.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using V = std::vector<double>;

class OnePassTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, OnePassTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

V values(const Array& a) { return a.to_vector<double>(); }

// `n` numbers around `center`.
V noise(std::int64_t n, double center, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> distribution(center, 2);
  V v(static_cast<std::size_t>(n));
  for (double& x : v) x = distribution(engine);
  return v;
}

V bits(std::int64_t n, unsigned seed, double share = 0.5) {
  std::mt19937 engine(seed);
  std::bernoulli_distribution distribution(share);
  V v(static_cast<std::size_t>(n));
  for (double& x : v) x = distribution(engine);
  return v;
}

// The array of `v` `shift` elements behind where an array begins.
Array shifted(const V& v, Dtype dtype, std::int64_t shift) {
  auto n = static_cast<std::int64_t>(v.size());
  Array whole = xp::zeros({n + shift}, dtype);
  Array part = whole[Slice(shift, none)];
  xp::copyto(part, xp::array(v).astype(dtype));
  return part;
}

constexpr std::int64_t kSizes[] = {1, 15, 16, 17, 1000, 70003, 600011};

TEST_P(OnePassTest, LogicOfBools) {
  for (std::int64_t n : kSizes) {
    for (std::int64_t shift : {0, 3}) {
      V x = bits(n, 1), y = bits(n, 2);
      Array a = shifted(x, bool_, 0), b = shifted(y, bool_, shift);
      V both, either, one, none_of, chosen, equals, greatest;
      for (std::size_t i = 0; i < x.size(); ++i) {
        both.push_back(x[i] != 0 && y[i] != 0);
        either.push_back(x[i] != 0 || y[i] != 0);
        one.push_back(x[i] != y[i]);
        equals.push_back(x[i] == y[i]);
        none_of.push_back(y[i] == 0);
        chosen.push_back(x[i] != 0 ? y[i] : 1 - y[i]);
      }
      EXPECT_EQ(values(xp::logical_and(a, b)), both) << n << " " << shift;
      EXPECT_EQ(values(xp::logical_or(a, b)), either) << n << " " << shift;
      EXPECT_EQ(values(xp::logical_xor(a, b)), one) << n << " " << shift;
      EXPECT_EQ(values(xp::bitwise_xor(a, b)), one) << n << " " << shift;
      EXPECT_EQ(values(xp::equal(a, b)), equals) << n << " " << shift;
      EXPECT_EQ(values(xp::logical_not(b)), none_of) << n << " " << shift;
      EXPECT_EQ(values(xp::where(a, b, xp::logical_not(b))), chosen) << n << " " << shift;
      EXPECT_EQ(values(xp::maximum(a, b)), either) << n << " " << shift;
      EXPECT_EQ(values(xp::logical_and(a, true)), x) << n << " " << shift;
      EXPECT_EQ(xp::maximum(a, b).dtype(), bool_);
    }
  }
}

TEST_P(OnePassTest, ReductionsOfBools) {
  for (std::int64_t n : kSizes) {
    for (std::int64_t shift : {0, 5}) {
      V x = bits(n, 3);
      Array a = shifted(x, bool_, shift);
      double count = 0;
      for (double v : x) count += v;
      EXPECT_EQ(xp::count_nonzero(a).item<double>(), count) << n;
      EXPECT_EQ(xp::sum(a).item<double>(), count) << n;
      EXPECT_EQ(xp::any(a).item<bool>(), count > 0) << n;
      EXPECT_EQ(xp::all(a).item<bool>(), count == static_cast<double>(n)) << n;
      EXPECT_EQ(xp::max(a).item<bool>(), count > 0) << n;
      EXPECT_EQ(xp::min(a).item<bool>(), count == static_cast<double>(n)) << n;
      EXPECT_EQ(xp::prod(a).item<double>(), count == static_cast<double>(n) ? 1 : 0) << n;
      Array ones = xp::ones({n}, bool_), zeros = xp::zeros({n}, bool_);
      EXPECT_TRUE(xp::all(ones).item<bool>());
      EXPECT_FALSE(xp::any(zeros).item<bool>());
      for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        ones[at] = false;
        zeros[at] = true;
        EXPECT_FALSE(xp::all(ones).item<bool>()) << n << " at " << at;
        EXPECT_TRUE(xp::any(zeros).item<bool>()) << n << " at " << at;
        ones[at] = true;
        zeros[at] = false;
      }
    }
  }
}

TEST_P(OnePassTest, ReductionsOfBoolsAlongAnAxis) {
  for (Shape shape : {Shape{37, 51}, Shape{3000, 48}, Shape{16, 40000}}) {
    V x = bits(shape.total(), 4, 0.99);
    Array a = xp::array(x).astype(bool_).reshape(shape);
    for (int axis : {0, 1}) {
      std::int64_t outputs = shape[1 - axis];
      V counts(static_cast<std::size_t>(outputs), 0), whole, some;
      for (std::int64_t i = 0; i < shape.total(); ++i) {
        std::int64_t at = axis == 0 ? i % shape[1] : i / shape[1];
        counts[static_cast<std::size_t>(at)] += x[static_cast<std::size_t>(i)];
      }
      for (double c : counts) whole.push_back(c == static_cast<double>(shape[axis]));
      for (double c : counts) some.push_back(c > 0);
      EXPECT_EQ(values(xp::count_nonzero(a, axis)), counts) << shape.str() << axis;
      EXPECT_EQ(values(xp::all(a, axis)), whole) << shape.str() << axis;
      EXPECT_EQ(values(xp::any(a, axis)), some) << shape.str() << axis;
      EXPECT_EQ(values(xp::argmin(a, axis)), values(xp::argmin(a.astype(int32), axis)));
    }
  }
}

TEST_P(OnePassTest, ConversionsOfLongArrays) {
  constexpr std::int64_t kLong = 132 * 4096 + 4099;
  std::vector<Dtype> dtypes = {bool_,    int8,    int16,   int32,     int64,
                               uint8,    uint16,  uint32,  uint64,    float16,
                               bfloat16, float32, float64, complex64, complex128};
  if (testing::quick()) dtypes = {uint8, int64, float16, float32};
  Array base = xp::remainder(xp::arange(kLong + 1), 101);
  for (Dtype from : dtypes) {
    Array whole = base.astype(from), in = whole[Slice(0, kLong)];
    for (Dtype to : dtypes) {
      Array out = in.astype(to);
      // The same elements from where vectors cannot begin.
      Array later = Array(whole[Slice(1, none)]).astype(to);
      EXPECT_TRUE(xp::array_equal(out[Slice(1, none)], later[Slice(0, kLong - 1)]))
          << dtype_name(from) << " to " << dtype_name(to);
      for (std::int64_t i : {std::int64_t{0}, std::int64_t{4095}, kLong - 4100, kLong - 1}) {
        double want = static_cast<double>(i % 101);
        if (from == bool_ || to == bool_) want = want != 0;
        EXPECT_EQ(xp::real(Array(out[i]).astype(complex128)).item<double>(), want)
            << dtype_name(from) << " to " << dtype_name(to) << " at " << i;
      }
    }
  }
  Array wide = (xp::arange(kLong) - 300).astype(float32);
  EXPECT_TRUE(xp::array_equal(wide.astype(int8), (xp::arange(kLong) - 300).astype(int8)));
}

// --- moments ---

double variance_of(const V& x, double ddof) {
  double mean = 0, sum = 0;
  for (double v : x) mean += v;
  mean /= static_cast<double>(x.size());
  for (double v : x) sum += (v - mean) * (v - mean);
  return sum / (static_cast<double>(x.size()) - ddof);
}

TEST_P(OnePassTest, VarianceOfEveryLayout) {
  for (Dtype dtype : {float16, bfloat16, float32, float64, int32}) {
    for (Shape shape : {Shape{1, 1}, Shape{5, 7}, Shape{3, 70001}, Shape{70001, 3},
                        Shape{300, 1024}, Shape{257, 130}}) {
      Array base = xp::array(noise(shape.total(), 100, 5)).reshape(shape).astype(dtype);
      for (const Array& a :
           {base, base.T(), Array(base[{Slice(none, none, -1), Slice(0, none, 2)}])}) {
        for (int axis : {0, 1}) {
          Array lines = axis == 1 ? a : a.T();
          Array got = xp::var(a, axis);
          for (std::int64_t i : {std::int64_t{0}, lines.shape(0) / 2, lines.shape(0) - 1}) {
            double want = variance_of(values(Array(lines[i])), 0);
            double room = dtype == float16 ? 2e-3 : dtype == bfloat16 ? 1e-2 : 1e-4;
            EXPECT_NEAR(values(got)[static_cast<std::size_t>(i)], want, room * want + 1e-12)
                << a.view().describe() << " axis " << axis << " at " << i;
          }
        }
      }
    }
  }
}

TEST_P(OnePassTest, VarianceFarFromZero) {
  // The squares' sum and the sum's square agree in all digits of a float.
  V x = noise(1 << 20, 30000, 6);
  Array a = xp::array(x).astype(float32);
  double want = variance_of(values(a), 1);
  EXPECT_NEAR(xp::var(a, {.ddof = 1}).item<double>(), want, 1e-4 * want);
  EXPECT_NEAR(xp::std(a, {.ddof = 1}).item<double>(), std::sqrt(want), 1e-4 * want);
  EXPECT_NEAR(xp::var(a.reshape({1024, 1024}), 0).to_vector<double>()[3],
              xp::var(a.astype(float64).reshape({1024, 1024}), 0).to_vector<double>()[3], 1e-3);
  Array z = xp::array(std::vector<std::complex<double>>{{1, 2}, {3, -1}, {0, 5}});
  EXPECT_NEAR(xp::var(z).item<double>(), variance_of({1, 3, 0}, 0) + variance_of({2, -1, 5}, 0),
              1e-12);
}

TEST_P(OnePassTest, VarianceOfNanAndInfinity) {
  for (std::int64_t n : {3, 5000, 200000}) {
    for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Array a = xp::ones({n}, float32);
      a[n - 1] = bad;
      EXPECT_TRUE(std::isnan(xp::var(a).item<double>())) << n;
    }
    EXPECT_EQ(xp::var(xp::full({n}, 0.1f)).item<double>(), 0) << n;
  }
  EXPECT_TRUE(std::isnan(xp::var(xp::ones({0})).item<double>()));
}

TEST_P(OnePassTest, MeanOfWhatIsNotNan) {
  for (Dtype dtype : {float16, float32, float64}) {
    for (Shape shape : {Shape{5, 7}, Shape{3, 70001}, Shape{70001, 3}, Shape{300, 1024}}) {
      V x = noise(shape.total(), 3, 7);
      for (std::size_t i = 0; i < x.size(); i += 11) x[i] = std::nan("");
      Array a = xp::array(x).reshape(shape).astype(dtype);
      x = values(a);
      for (int axis : {0, 1}) {
        V got = values(xp::nanmean(a, axis));
        std::int64_t last = shape[1 - axis] - 1;
        for (std::int64_t output : {std::int64_t{0}, last}) {
          double sum = 0, count = 0;
          for (std::int64_t k = 0; k < shape[axis]; ++k) {
            std::int64_t at = axis == 0 ? k * shape[1] + output : output * shape[1] + k;
            double v = x[static_cast<std::size_t>(at)];
            if (v == v) sum += v, count += 1;
          }
          double room = dtype == float16 ? 2e-3 : 1e-5;
          EXPECT_NEAR(got[static_cast<std::size_t>(output)], sum / count, room * 3) << shape.str();
        }
      }
    }
  }
  EXPECT_TRUE(std::isnan(xp::nanmean(xp::full({9}, std::nan(""))).item<double>()));
}

// --- pairs ---

TEST_P(OnePassTest, ArraysThatDifferInOnePlace) {
  for (Dtype dtype : {int8, int64, float16, bfloat16, float32, float64, bool_}) {
    for (std::int64_t n : kSizes) {
      for (std::int64_t shift : {0, 1}) {
        Array a = xp::ones({n}, dtype),
              b = shifted(V(static_cast<std::size_t>(n), 1), dtype, shift);
        EXPECT_TRUE(xp::array_equal(a, b)) << dtype_name(dtype) << " " << n;
        EXPECT_TRUE(xp::allclose(a, b)) << dtype_name(dtype) << " " << n;
        for (std::int64_t at : {std::int64_t{0}, n / 3, n - 1}) {
          b[at] = 0;
          EXPECT_FALSE(xp::array_equal(a, b)) << dtype_name(dtype) << " " << n << " at " << at;
          EXPECT_FALSE(xp::allclose(a, b)) << dtype_name(dtype) << " " << n << " at " << at;
          EXPECT_EQ(xp::count_nonzero(xp::isclose(a, b)).item<std::int64_t>(), n - 1);
          b[at] = 1;
        }
      }
    }
  }
  Array big = xp::full({40}, std::int64_t{1} << 60);
  EXPECT_FALSE(xp::array_equal(big, big + 1));
  EXPECT_FALSE(xp::array_equal(xp::ones({4}), xp::ones({5})));
  Array nan = xp::full({5}, std::nan(""));
  EXPECT_FALSE(xp::array_equal(nan, nan));
  EXPECT_TRUE(xp::array_equal(nan, nan, true));
  EXPECT_TRUE(xp::array_equal(xp::array({0., 1.}), xp::array({-0., 1.})));
}

TEST_P(OnePassTest, ClosenessOfBroadcastAndStridedArrays) {
  Array a = xp::arange(12).reshape({3, 4}).astype(float32);
  EXPECT_TRUE(xp::all(xp::isclose(a.T(), a.T() * 1.000001)).item<bool>());
  EXPECT_EQ(values(xp::isclose(a, xp::array({4., 5., 6., 0.}))),
            (V{0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(xp::isclose(xp::ones({0, 3}), xp::ones({3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(xp::isclose(xp::array(1.), xp::array(1.)).shape(), Shape{});
  double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Array x = xp::array({infinity, -infinity, nan, 1., infinity});
  Array y = xp::array({infinity, infinity, nan, infinity, 1.});
  EXPECT_EQ(values(xp::isclose(x, y)), (V{1, 0, 0, 0, 0}));
  EXPECT_EQ(values(xp::isclose(x, y, 1e-5, 1e-8, true)), (V{1, 0, 1, 0, 0}));
  EXPECT_EQ(values(xp::isclose(xp::array({100., 100.}), xp::array({101., 102.}), 0, 1.5)),
            (V{1, 0}));
}

TEST_P(OnePassTest, LongDotProducts) {
  for (Dtype dtype : {float16, bfloat16, float32, float64, complex64, complex128}) {
    for (std::int64_t n : {1000, 65539, 1 << 20}) {
      for (std::int64_t shift : {0, 1}) {
        Array a = shifted(noise(n, 0, 8), dtype, 0), b = shifted(noise(n, 0.1, 9), dtype, shift);
        double want = 0;
        V x = values(xp::real(a)), y = values(xp::real(b));
        for (std::size_t i = 0; i < x.size(); ++i) want += x[i] * y[i];
        double room = itemsize(dtype) == 2 ? 0.02 : 1e-3;
        double got = values(xp::real(xp::dot(a, b)))[0];
        EXPECT_NEAR(got, want, room * (std::abs(want) + 100)) << dtype_name(dtype) << " " << n;
      }
    }
  }
  Array z = xp::full({100000}, std::complex<double>(1, 2));
  EXPECT_EQ(xp::dot(z, z).item<std::complex<double>>(), std::complex<double>(-300000, 400000));
  EXPECT_EQ(xp::vdot(z, z).item<std::complex<double>>(), std::complex<double>(500000, 0));
}

// --- vectors that are not aligned, and spread elements ---

TEST_P(OnePassTest, NeighboursAtAnyAddress) {
  for (Dtype dtype : {float16, float32, float64, int32, int64, uint8}) {
    for (std::int64_t n : {5, 1000, testing::quick() ? 300001 : 3000001}) {
      Array a = xp::remainder(xp::arange(n) * 7, 50).astype(dtype);
      V x = values(a), got = values(xp::diff(a));
      for (std::size_t i = 0; i + 1 < x.size(); i += n > 1000 ? 97 : 1) {
        double want = x[i + 1] - x[i];
        if (dtype == uint8 && want < 0) want += 256;
        ASSERT_EQ(got[i], want) << dtype_name(dtype) << " " << n << " at " << i;
      }
      Array target = xp::zeros({n + 1}, dtype), part = target[Slice(1, none)];
      xp::add(a, a, {.out = part});
      EXPECT_TRUE(xp::array_equal(part, a * 2)) << dtype_name(dtype) << " " << n;
      EXPECT_EQ(values(Array(target[0]))[0], 0);
    }
  }
}

TEST_P(OnePassTest, SpreadElements) {
  for (Dtype dtype : {int8, float16, float32, float64, complex128}) {
    for (std::int64_t width : {2, 48, 51, 1024}) {
      Array column = xp::remainder(xp::arange(70), 50).astype(dtype).reshape({70, 1});
      Array out = column.broadcast_to({70, width}).copy();
      V got = values(xp::real(out));
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], static_cast<double>(i / static_cast<std::size_t>(width) % 50))
            << dtype_name(dtype) << " " << width;
      }
    }
  }
}

TEST_P(OnePassTest, LongCopies) {
  Array a = xp::arange(3000001).astype(float32);
  for (std::int64_t shift : {0, 1}) {
    Array part = a[Slice(shift, none)], copy = part.copy();
    EXPECT_TRUE(xp::array_equal(part, copy));
    EXPECT_EQ(Array(copy[-1]).item<double>(), 3000000);
    xp::copyto(part, part);
    EXPECT_TRUE(xp::array_equal(part, copy));
  }
}

}  // namespace
}  // namespace rensa
