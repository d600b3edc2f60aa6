// Fourier transforms: what NumPy answered (make_fft_cases.py), long and awkward lengths against the
// sum that defines them, errors.
#include "rensa/array/fft.h"

#include <numbers>

#include "tests/array/replay.h"

namespace rensa {
namespace {

namespace fft = xp::fft;
using testing::Call;
using testing::Closeness;
using testing::Routines;
using testing::thrown;
using Complex = std::complex<double>;

fft::Norm norm(const Call& c) { return c.text("norm").c_str(); }

AxisList list(const Call& c, const char* key) {
  return c.has(key) ? AxisList(c.shape(key)) : AxisList();
}

const Routines& routines() {
  using One = Array (*)(const Array&, const fft::FftOptions&);
  using Many = Array (*)(const Array&, const fft::FftnOptions&);
  static const Routines table = [] {
    Routines all;
    auto add = [&](const char* name, One f) {
      all[name] = [f](const Call& c) {
        fft::Length n;
        if (c.has("n")) n = c.integer("n");
        return std::vector{f(c.in[0], {.n = n, .axis = c.axis(), .norm = norm(c)})};
      };
    };
    auto add_many = [&](const char* name, Many f) {
      all[name] = [f](const Call& c) {
        fft::FftnOptions options = {.s = list(c, "s"), .norm = norm(c)};
        if (c.has("axes")) options.axes = list(c, "axes");
        return std::vector{f(c.in[0], options)};
      };
    };
    for (auto [name, f] : {std::pair<const char*, One>{"fft", fft::fft},
                           {"ifft", fft::ifft},
                           {"rfft", fft::rfft},
                           {"irfft", fft::irfft},
                           {"hfft", fft::hfft},
                           {"ihfft", fft::ihfft}}) {
      add(name, f);
    }
    for (auto [name, f] : {std::pair<const char*, Many>{"fft2", fft::fft2},
                           {"ifft2", fft::ifft2},
                           {"fftn", fft::fftn},
                           {"ifftn", fft::ifftn},
                           {"rfft2", fft::rfft2},
                           {"irfft2", fft::irfft2},
                           {"rfftn", fft::rfftn},
                           {"irfftn", fft::irfftn}}) {
      add_many(name, f);
    }
    all["fftfreq"] = [](const Call& c) {
      return std::vector{fft::fftfreq(c.integer("n"), c.real("d"), c.device)};
    };
    all["rfftfreq"] = [](const Call& c) {
      return std::vector{fft::rfftfreq(c.integer("n"), c.real("d"), c.device)};
    };
    all["fftshift"] = [](const Call& c) {
      return std::vector{fft::fftshift(c.in[0], list(c, "axes"))};
    };
    all["ifftshift"] = [](const Call& c) {
      return std::vector{fft::ifftshift(c.in[0], list(c, "axes"))};
    };
    return all;
  }();
  return table;
}

TEST(FftCases, AgreeWithNumPy) {
  testing::replay("numpy_fft.txt", routines(), 400, [](const Call& c, Dtype dtype) {
    // NumPy rounds the factor 1/n to float16.
    if (c.in[0].dtype() == float16) return Closeness{2e-3, 2e-3, false};
    bool single = dtype == float32 || dtype == complex64;
    return single ? Closeness{4e-6, 8e-6, false} : Closeness{1e-14, 2e-14, false};
  });
}

class FftTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, FftTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// Numbers in [-1, 1) without a period.
std::vector<double> noise(std::int64_t n) {
  std::vector<double> v;
  std::uint64_t state = 88172645463325252ull;
  for (std::int64_t i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    v.push_back(static_cast<double>(state >> 11) / 4503599627370496.0 - 1);
  }
  return v;
}

// Value k of the transform, by its definition.
Complex value_of(const std::vector<double>& x, std::int64_t k) {
  auto n = static_cast<std::int64_t>(x.size());
  Complex sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    double turn = static_cast<double>((j * k) % n) / static_cast<double>(n);
    sum += x[static_cast<std::size_t>(j)] * std::polar(1.0, -2 * std::numbers::pi * turn);
  }
  return sum;
}

// Powers of two, products of small primes, primes, products of a large prime.
TEST_P(FftTest, AnyLengthIsTheSumThatDefinesIt) {
  for (std::int64_t n :
       {64, 67, 122, 128, 211, 1000, 1009, 2 * 1009, 4096, 30030, 32768, 65537, 90090, 131072}) {
    std::vector<double> values = noise(n);
    Array x = xp::array(values);
    auto whole = fft::fft(x).to_vector<Complex>(), half = fft::rfft(x).to_vector<Complex>();
    auto narrow = fft::rfft(x.astype(float32)).to_vector<Complex>();
    ASSERT_EQ(static_cast<std::int64_t>(half.size()), n / 2 + 1);
    double size = std::sqrt(static_cast<double>(n));
    for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 3, n / 2, n - 1}) {
      Complex want = value_of(values, k);
      EXPECT_LT(std::abs(whole[static_cast<std::size_t>(k)] - want), 1e-12 * size) << n << ' ' << k;
      if (k > n / 2) continue;
      EXPECT_LT(std::abs(half[static_cast<std::size_t>(k)] - want), 1e-12 * size) << n << ' ' << k;
      EXPECT_LT(std::abs(narrow[static_cast<std::size_t>(k)] - want), 3e-6 * size) << n << ' ' << k;
    }
  }
}

TEST_P(FftTest, InversesBringBack) {
  for (std::int64_t n : {1, 2, 9, 30, 97, 200, 1021, 100000}) {
    Array x = xp::array(noise(3 * n)).reshape({3, n});
    EXPECT_TRUE(testing::matches(fft::irfft(fft::rfft(x), n), x, {0, 1e-12})) << n;
    Array z = x.astype(complex128);
    EXPECT_TRUE(testing::matches(fft::ifft(fft::fft(z)), z, {0, 1e-12})) << n;
    EXPECT_TRUE(testing::matches(fft::ifft(fft::fft(z, {}, 0), {}, 0), z, {0, 1e-12})) << n;
    EXPECT_TRUE(testing::matches(fft::irfftn(fft::rfftn(x), {3, n}), x, {0, 1e-12})) << n;
    EXPECT_TRUE(testing::matches(fft::ifftn(fft::fftn(z)), z, {0, 1e-12})) << n;
    EXPECT_TRUE(testing::matches(fft::hfft(fft::ihfft(x), n), x, {0, 1e-12})) << n;
  }
}

// More rows than a task takes; every row has to be its own transform.
TEST_P(FftTest, ManyRows) {
  Array x = xp::array(noise(5000 * 12)).reshape({5000, 12});
  Array y = fft::fft(x);
  for (std::int64_t row : {0, 1, 1365, 1366, 4999}) {
    EXPECT_TRUE(testing::matches(y[row], fft::fft(x[row]), {0, 1e-13})) << row;
  }
  Array columns = fft::fft(x, {}, 0);
  EXPECT_TRUE(testing::matches(columns[{Slice(), 7}], fft::fft(x[{Slice(), 7}]), {0, 1e-11}));
}

// The matrix that a transform of n values is.
Array transform_matrix(std::int64_t n) {
  std::vector<Complex> values;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < n; ++k) {
      double turn = static_cast<double>((j * k) % n) / static_cast<double>(n);
      values.push_back(std::polar(1.0, -2 * std::numbers::pi * turn));
    }
  }
  return xp::array(values).reshape({n, n});
}

// Counts of rows around those that go side by side, along either axis, from every second element,
// cut and filled up.
TEST_P(FftTest, AnyCountOfRowsOfAnyLayout) {
  for (std::int64_t n :
       {1, 2, 3, 4, 5, 7, 8, 12, 16, 21, 30, 49, 61, 64, 66, 67, 72, 105, 128, 134, 201, 250}) {
    Array matrix = transform_matrix(n);
    std::int64_t half = n / 2 + 1;
    for (std::int64_t rows : {1, 3, 8, 17}) {
      Array wide = xp::array(noise(rows * 2 * n)).reshape({rows, 2 * n});
      Array x = wide[{Slice(), Slice(none, none, -2)}];
      Array want = xp::matmul(x.astype(complex128), matrix), z = want.copy();
      SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(rows));
      EXPECT_TRUE(testing::matches(fft::fft(x), want, {0, 1e-11}));
      EXPECT_TRUE(testing::matches(fft::fft(x.copy().T(), {}, 0).T(), want, {0, 1e-11}));
      EXPECT_TRUE(testing::matches(fft::rfft(x), want[{Slice(), Slice(half)}], {0, 1e-11}));
      EXPECT_TRUE(
          testing::matches(fft::rfft(x.T(), {}, 0), want[{Slice(), Slice(half)}].T(), {0, 1e-11}));
      EXPECT_TRUE(testing::matches(fft::ifft(z), x.astype(complex128), {0, 1e-12}));
      EXPECT_TRUE(testing::matches(fft::irfft(z, n), x, {0, 1e-12}));
      EXPECT_TRUE(testing::matches(fft::irfft(z.T(), n, 0).T(), x, {0, 1e-12}));
      Array padded = xp::concatenate({x, xp::zeros({rows, 3}, float64)}, 1);
      EXPECT_TRUE(testing::matches(fft::rfft(x, n + 3), fft::rfft(padded), {0, 1e-11}));
      EXPECT_TRUE(testing::matches(fft::fft(padded, n), want, {0, 1e-11}));
      EXPECT_TRUE(testing::matches(fft::rfft(x.astype(float32)),
                                   want[{Slice(), Slice(half)}].astype(complex64), {1e-5, 2e-5}));
    }
  }
}

TEST_P(FftTest, BroadcastAndReversedOperands) {
  Array x = xp::array(noise(8)), rows = x.broadcast_to({3, 8});
  EXPECT_TRUE(testing::matches(fft::rfft(rows)[2], fft::rfft(x), {0, 1e-13}));
  Array back = x[Slice(none, none, -1)];
  EXPECT_TRUE(testing::matches(fft::fft(back), fft::fft(back.copy()), {0, 1e-13}));
}

TEST_P(FftTest, SixteenBitFloatsGiveComplex64) {
  for (Dtype d : {float16, bfloat16}) {
    EXPECT_EQ(fft::fft(xp::ones({4}, d)).dtype(), complex64);
    EXPECT_EQ(fft::rfft(xp::ones({4}, d)).dtype(), complex64);
    EXPECT_EQ(fft::irfft(xp::ones({4}, d)).dtype(), d);
  }
}

TEST_P(FftTest, TheEndsOfARealSignalsSpectrumAreReadAsReal) {
  for (std::int64_t n : {8, 9}) {
    Array spectrum = fft::rfft(xp::array(noise(2 * n)).reshape({2, n}));
    Array bent = spectrum.copy();
    Complex turn(0, 5);
    bent[{Slice(), 0}].assign(xp::add(bent[{Slice(), 0}], turn));
    if (n % 2 == 0) bent[{Slice(), -1}].assign(xp::add(bent[{Slice(), -1}], turn));
    EXPECT_TRUE(testing::matches(fft::irfft(bent, n), fft::irfft(spectrum, n), {0, 1e-13})) << n;
  }
}

TEST_P(FftTest, TheOperandStaysAsItWas) {
  Array x = xp::array(noise(20)).reshape({4, 5}).astype(complex128), before = x.copy();
  fft::irfft(x, 8);
  fft::irfftn(x);
  fft::fft(x);
  EXPECT_TRUE(testing::matches(x, before, {0, 0}));
}

TEST_P(FftTest, ErrorsNameTheRoutine) {
  Array x = xp::ones({2, 3}, float64);
  EXPECT_NE(thrown<ValueError>([&] { fft::fft(x, 0); }).find("fft.fft: 0 values"),
            std::string::npos);
  EXPECT_NE(thrown<DtypeError>([&] { fft::rfft(x.astype(complex64)); }).find("fft.rfft: "),
            std::string::npos);
  EXPECT_NE(thrown<ValueError>([&] {
              fft::fftn(x, {2}, {0, 1});
            }).find("fft.fftn: s = (2,)"),
            std::string::npos);
  EXPECT_NE(thrown<IndexError>([&] { fft::ifft(x, {}, 2); }).find("fft.ifft"), std::string::npos);
  EXPECT_NE(thrown<ValueError>([&] { fft::fftfreq(0); }).find("fft.fftfreq"), std::string::npos);
  EXPECT_NE(thrown<ValueError>([&] { fft::fft(Array()); }).find("fft.fft"), std::string::npos);
}

}  // namespace
}  // namespace rensa
