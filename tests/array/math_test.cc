// The elementwise routines, reductions and statistics against NumPy's answers, and what NumPy has
// no answers for: outputs, bfloat16, large arrays, errors.
#include <cstdlib>
#include <numeric>

#include "rensa/array/ufuncs/floats.h"
#include "rensa/array/ufuncs/powers.h"
#include "rensa/array/ufuncs/trigonometric.h"
#include "tests/array/replay.h"

namespace rensa::testing {
namespace {

using One = std::function<Array(const Array&)>;
using Two = std::function<Array(const Array&, const Array&)>;
using List = std::vector<Array>;

Axes axes_of(const Call& c) {
  auto list = c.integers("axis");
  if (list.empty()) return {};
  if (list.size() == 1) return static_cast<int>(list[0]);
  return {static_cast<int>(list[0]), static_cast<int>(list[1])};
}

std::optional<double> optional_real(const Call& c, const std::string& key) {
  if (!c.has(key)) return {};
  return c.real(key);
}

void add_elementwise(Routines& table) {
  for (Ufunc f : all_ufuncs()) {
    int inputs = ufunc_info(f).inputs;
    if (inputs > 2) continue;
    table[ufunc_info(f).name] = [f, inputs](const Call& c) -> List {
      if (inputs == 1) return {xp::elementwise(f, {c.in[0]})};
      return {xp::elementwise(f, {c.in[0], c.in[1]})};
    };
  }
  const std::map<std::string, One> ones = {
      {"real", xp::real},           {"imag", xp::imag},
      {"iscomplex", xp::iscomplex}, {"isreal", xp::isreal},
      {"conj", xp::conj},           {"sinc", [](const Array& a) { return xp::sinc(a); }},
      {"invert", xp::invert},       {"fix", xp::fix}};
  for (const auto& [name, f] : ones) {
    table[name] = [f = f](const Call& c) -> List { return {f(c.in[0])}; };
  }
  const std::map<std::string, Two> twos = {{"nextafter", xp::nextafter},
                                           {"ldexp", xp::ldexp},
                                           {"mod", xp::mod},
                                           {"float_power", xp::float_power}};
  for (const auto& [name, f] : twos) {
    table[name] = [f = f](const Call& c) -> List { return {f(c.in[0], c.in[1])}; };
  }
  table["round"] = [](const Call& c) -> List {
    return {xp::round(c.in[0], static_cast<int>(c.integer("decimals")))};
  };
  table["angle"] = [](const Call& c) -> List { return {xp::angle(c.in[0], c.flag("deg"))}; };
  table["nan_to_num"] = [](const Call& c) -> List {
    return {xp::nan_to_num(c.in[0], c.real("nan"), optional_real(c, "posinf"),
                           optional_real(c, "neginf"))};
  };
  table["modf"] = [](const Call& c) -> List {
    auto [fraction, whole] = xp::modf(c.in[0]);
    return {fraction, whole};
  };
  table["divmod"] = [](const Call& c) -> List {
    auto [quotient, rest] = xp::divmod(c.in[0], c.in[1]);
    return {quotient, rest};
  };
  table["isclose"] = [](const Call& c) -> List {
    return {xp::isclose(c.in[0], c.in[1], 0.01, 1e-8, c.flag("equal_nan"))};
  };
}

using Reduced = Array (*)(const Array&, const Axes&, bool);
const std::map<std::string, Reduced>& reductions() {
  static const std::map<std::string, Reduced> table = {
      {"sum", xp::sum},         {"prod", xp::prod},
      {"mean", xp::mean},       {"any", xp::any},
      {"all", xp::all},         {"max", xp::max},
      {"min", xp::min},         {"nansum", xp::nansum},
      {"nanprod", xp::nanprod}, {"nanmax", xp::nanmax},
      {"nanmin", xp::nanmin},   {"nanmean", xp::nanmean},
      {"ptp", xp::ptp},         {"count_nonzero", xp::count_nonzero}};
  return table;
}

using Optioned = Array (*)(const Array&, const xp::ReduceOptions&);
const std::map<std::string, Optioned>& optioned() {
  static const std::map<std::string, Optioned> table = {
      {"sum", xp::sum}, {"prod", xp::prod}, {"mean", xp::mean}, {"max", xp::max},
      {"min", xp::min}, {"any", xp::any},   {"all", xp::all}};
  return table;
}

void add_options(Routines& table) {
  for (const auto& [name, f] : optioned()) {
    table["where_" + name] = [f = f](const Call& c) -> List {
      xp::ReduceOptions options = {.axis = axes_of(c), .where = c.in[1]};
      if (c.has("initial")) options.initial = c.integer("initial");
      return {f(c.in[0], options)};
    };
    table["initial_" + name] = [f = f](const Call& c) -> List {
      return {f(c.in[0], {.axis = axes_of(c), .initial = 2})};
    };
    table["dtype_" + name] = [f = f](const Call& c) -> List {
      return {f(c.in[0], {.axis = axes_of(c), .dtype = parse_dtype(c.text("dtype"))})};
    };
  }
  const std::map<std::string, xp::BinaryUfunc> ufuncs = {{"add", xp::add},
                                                         {"multiply", xp::multiply},
                                                         {"divide", xp::divide},
                                                         {"arctan2", xp::arctan2}};
  for (const auto& [name, f] : ufuncs) {
    table["dtype_" + name] = [f = f](const Call& c) -> List {
      return {f(c.in[0], c.in[1], {.dtype = parse_dtype(c.text("dtype"))})};
    };
  }
  table["where_var"] = [](const Call& c) -> List {
    return {xp::var(c.in[0], {.axis = axes_of(c), .where = c.in[1]})};
  };
  table["where_std"] = [](const Call& c) -> List {
    return {xp::std(c.in[0], {.axis = axes_of(c), .where = c.in[1]})};
  };
}

void add_statistics(Routines& table) {
  for (const auto& [name, f] : reductions()) {
    table[name] = [f = f](const Call& c) -> List {
      return {f(c.in[0], axes_of(c), c.flag("keepdims"))};
    };
  }
  using Spread = Array (*)(const Array&, const xp::VarianceOptions&);
  const std::map<std::string, Spread> spreads = {
      {"var", xp::var}, {"std", xp::std}, {"nanvar", xp::nanvar}, {"nanstd", xp::nanstd}};
  for (const auto& [name, f] : spreads) {
    table[name] = [f = f](const Call& c) -> List {
      return {
          f(c.in[0], {.axis = axes_of(c), .ddof = c.real("ddof"), .keepdims = c.flag("keepdims")})};
    };
  }
  table["nanargmax"] = [](const Call& c) -> List {
    return {c.has("axis") ? xp::nanargmax(c.in[0], c.axis()) : xp::nanargmax(c.in[0])};
  };
  table["nanargmin"] = [](const Call& c) -> List {
    return {c.has("axis") ? xp::nanargmin(c.in[0], c.axis()) : xp::nanargmin(c.in[0])};
  };
  table["average"] = [](const Call& c) -> List {
    xp::AverageOptions options = {.axis = axes_of(c)};
    if (c.in.size() > 1) options.weights = c.in[1];
    auto [result, returned] = xp::average_returned(c.in[0], options);
    return {result, returned};
  };
  table["array_equiv"] = [](const Call& c) -> List {
    return {xp::full({}, xp::array_equiv(c.in[0], c.in[1]), bool_, c.device)};
  };
}

TEST(Math, AgreesWithNumpy) {
  Routines table;
  add_elementwise(table);
  replay("numpy_math.txt", table, 900, [](const Call& c, Dtype d) -> Closeness {
    bool complex = dtype_kind(c.in[0].dtype()) == 'c';
    if (complex) return {2 * tolerance(d), tolerance(d) * 1e-3, false};
    // NumPy computes what lies between in 16 bits.
    return {tolerance(d) * (itemsize(d) == 2 ? 2 : 1), 1e-300, false};
  });
}

TEST(Statistics, AgreesWithNumpy) {
  Routines table;
  add_statistics(table);
  add_options(table);
  replay("numpy_statistics.txt", table, 1900, [](const Call&, Dtype d) -> Closeness {
    return {4 * tolerance(d), 16 * tolerance(d), false};
  });
}

class MathTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, MathTest, ::testing::ValuesIn(test_devices()));

using V = std::vector<double>;
V values(const Array& a) { return a.to_vector<double>(); }

TEST_P(MathTest, OutputsAreWritten) {
  Array a = xp::array({1., 2., 3.}), b = xp::array({10., 20., 30.}), out = xp::zeros({3}, float64);
  Array result = xp::add(a, b, {.out = out});
  EXPECT_EQ(result.data(), out.data());
  EXPECT_EQ(values(out), V({11, 22, 33}));
  xp::exp(xp::zeros({3}, float64), {.out = out});
  EXPECT_EQ(values(out), V({1, 1, 1}));
  xp::multiply(a, 2., {.out = a});
  EXPECT_EQ(values(a), V({2, 4, 6}));
  Array wide = xp::zeros({2, 3}, float32);
  xp::subtract(b, a, {.out = wide});  // broadcast into it, and narrowed
  EXPECT_EQ(values(wide), V({8, 16, 24, 8, 16, 24}));
  Array shifted = xp::arange(5, float64);  // operand and output overlap
  xp::add(shifted[Slice(0, 4)], 10., {.out = shifted[Slice(1, 5)]});
  EXPECT_EQ(values(shifted), V({0, 10, 11, 12, 13}));
  EXPECT_EQ(values(xp::invert(xp::array({1, 2}), {.out = xp::zeros({2}, int64)})), V({-2, -3}));
  EXPECT_EQ(values(xp::round(xp::array({1.26, 2.5}), 1, {.dtype = float32})),
            values(xp::array({1.3f, 2.5f})));
}

TEST_P(MathTest, MasksKeepWhatIsThere) {
  Array a = xp::array({1., 2., 3.}), mask = xp::array({1, 0, 1}).astype(bool_);
  Array out = xp::full({3}, 7, float32);
  Array result = xp::add(a, a, {.out = out, .where = mask});
  EXPECT_EQ(result.data(), out.data());
  EXPECT_EQ(values(out), V({2, 7, 6}));
  EXPECT_EQ(values(xp::add(a, a, {.where = mask})), V({2, 0, 6}));
  EXPECT_EQ(xp::add(a, a, {.where = mask, .dtype = float32}).dtype(), float32);
  EXPECT_THROW(xp::add(a, a, {.where = a}), DtypeError);
}

TEST_P(MathTest, OptionsThatDoNotFitAreErrors) {
  Array a = xp::ones({3}, float64), small = xp::zeros({2}, float64), whole = xp::zeros({3}, int32);
  auto names = [](const std::string& text, const char* name) {
    return text.find(name) != text.npos;
  };
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::add(a, a, {.out = small}); }), "add"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::sqrt(a, {.out = whole}); }), "sqrt"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::exp(a, {.dtype = int32}); }), "exp"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::add(a, a, {.dtype = int64}); }), "add"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::sum(a, {.out = a}); }), "sum"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::mean(a, {.out = whole[0]}); }), "mean"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::max(a, {.dtype = float32}); }), "max"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::mean(a, {.initial = 1}); }), "mean"));
  Array mask = xp::ones({3}, bool_);
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::min(a, {.where = mask}); }), "min"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::sum(small, {.where = mask}); }), "sum"));
  EXPECT_THROW(xp::sum(a, {.axis = 1}), IndexError);
  EXPECT_THROW(xp::sum(a, {0, 1}), IndexError);
  EXPECT_THROW(xp::var(Array()), ValueError);
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::ldexp(a, a); }), "ldexp"));
}

TEST_P(MathTest, ReductionsWriteTheirOutputs) {
  Array a = xp::arange(12, float32).reshape({3, 4}), out = xp::zeros({4}, float64);
  Array result = xp::sum(a, {.axis = 0, .out = out});
  EXPECT_EQ(result.data(), out.data());
  EXPECT_EQ(values(out), V({12, 15, 18, 21}));
  Array kept = xp::zeros({3, 2}, float32)[{Slice(), Slice(0, 1)}];  // strided
  xp::max(a, {.axis = 1, .keepdims = true, .out = kept});
  EXPECT_EQ(values(kept), V({3, 7, 11}));
  xp::sum(a, {.axis = 0, .out = a[1]});  // into its own operand
  EXPECT_EQ(values(a[1]), V({12, 15, 18, 21}));
  EXPECT_EQ(values(xp::prod(xp::array({2., 3.}), {.initial = 4})), V({24}));
  EXPECT_EQ(values(xp::sum(xp::zeros({2, 0}, float32), {.axis = 1, .initial = 3})), V({3, 3}));
  EXPECT_EQ(xp::sum(xp::ones({3}, float32), {.dtype = float64}).dtype(), float64);
  EXPECT_EQ(values(xp::var(xp::array({1., 2., 3.}), {.ddof = 1, .out = xp::zeros({}, float32)})),
            V({1}));
}

TEST_P(MathTest, OneBoundAndOrder) {
  Array a = xp::array({1., 2., 3.});
  EXPECT_EQ(values(xp::clip(a, none, 2)), V({1, 2, 2}));
  EXPECT_EQ(values(xp::clip(a, 2, none)), V({2, 2, 3}));
  EXPECT_EQ(values(xp::clip(a, none, xp::array({0., 5., 1.}))), V({0, 2, 1}));
  EXPECT_EQ(values(xp::clip(a, 1.5, 2.5, {.out = a})), V({1.5, 2, 2.5}));
  Array table = xp::zeros({2, 3});
  EXPECT_FALSE(xp::isfortran(table));
  EXPECT_TRUE(xp::isfortran(table.T()));
  EXPECT_FALSE(xp::isfortran(a));
}

TEST_P(MathTest, BracesMeanAxesOrOptions) {
  Array a = xp::ones({2, 3}, float32);
  Axes axes = 1;
  EXPECT_EQ(xp::sum(a).shape(), Shape({}));
  EXPECT_EQ(xp::sum(a, 0).shape(), Shape({3}));
  EXPECT_EQ(xp::sum(a, axes, true).shape(), Shape({2, 1}));
  EXPECT_EQ(xp::sum(a, {0, 1}, true).shape(), Shape({1, 1}));
  EXPECT_EQ(xp::sum(a, {}, true).shape(), Shape({1, 1}));
  EXPECT_EQ(xp::sum(a, {}).shape(), Shape({}));
  EXPECT_EQ(xp::sum(a, {1}).shape(), Shape({2}));
  EXPECT_EQ(xp::sum(a, none).shape(), Shape({}));
  EXPECT_EQ(xp::sum(a, {.axis = 1}).shape(), Shape({2}));
  EXPECT_EQ(xp::sum(a, {.axis = {0, 1}, .keepdims = true}).shape(), Shape({1, 1}));
  EXPECT_EQ(values(xp::sum(a, {.initial = 1})), V({7}));
  EXPECT_EQ(values(xp::sum(a, {.axis = 1, .initial = 2})), V({5, 5}));
  EXPECT_EQ(xp::amax(a, {.axis = 1, .keepdims = true}).shape(), Shape({2, 1}));
  EXPECT_EQ(xp::var(a, {.axis = 1}).shape(), Shape({2}));
  EXPECT_EQ(xp::std(a, {0, 1}).shape(), Shape({}));
  EXPECT_EQ(xp::average(a, {.axis = 1}).shape(), Shape({2}));
}

TEST_P(MathTest, ShiftOperators) {
  Array a = xp::array({1, 2, -8});
  EXPECT_EQ(values(a << 2), V({4, 8, -32}));
  EXPECT_EQ(values(a >> 1), V({0, 1, -4}));
  EXPECT_EQ(values(1 << xp::array({0, 3})), V({1, 8}));
  EXPECT_EQ(values(a >> xp::array({0, 1, 3})), V({1, 1, -1}));
  a <<= 1;
  EXPECT_EQ(values(a), V({2, 4, -16}));
  a >>= xp::array({1, 1, 2});
  EXPECT_EQ(values(a), V({1, 2, -4}));
  EXPECT_THROW(a << 0.5, DtypeError);
}

TEST_P(MathTest, PartsAreViews) {
  Array z = xp::zeros({2, 3}, complex64);
  xp::real(z).fill(2);
  xp::imag(z.T()).assign(xp::arange(6, float32).reshape({3, 2}));
  std::vector<std::complex<float>> want = {{2, 0}, {2, 2}, {2, 4}, {2, 1}, {2, 3}, {2, 5}};
  EXPECT_EQ(z.to_vector<std::complex<float>>(), want);
  Array x = xp::ones({2}, float32);
  EXPECT_EQ(xp::real(x).data(), x.data());
}

TEST_P(MathTest, Bfloat16) {
  Array x = xp::array({1.0f, -1.0f, 0.0f, 3.0f}).astype(bfloat16);
  EXPECT_EQ(values(xp::nextafter(x, 2)),
            V({1.0078125, -0.99609375, 9.183549615799121e-41, 2.984375}));
  EXPECT_EQ(xp::nextafter(x, x).dtype(), bfloat16);
  EXPECT_EQ(xp::var(x).dtype(), bfloat16);
  EXPECT_NEAR(values(xp::std(x))[0], 1.479, 0.01);
  EXPECT_EQ(values(xp::round(xp::array({12.0f, 17.0f}).astype(bfloat16), -1)), V({10, 20}));
  Array infinite = xp::array({1.0f / 0.0f, NAN}).astype(bfloat16);
  EXPECT_EQ(values(xp::nan_to_num(infinite)), V({xp::finfo(bfloat16).max, 0}));
  EXPECT_EQ(values(xp::nansum(infinite)), V({INFINITY}));
  EXPECT_EQ(values(xp::count_nonzero(x)), V({3}));
  // Sums that 16 bits would not hold.
  EXPECT_EQ(values(xp::mean(xp::full({100000}, 3, bfloat16))), V({3}));
  EXPECT_EQ(values(xp::nanmean(xp::full({100000}, 3, float16))), V({3}));
  EXPECT_EQ(values(xp::var(xp::full({100000}, 3, float16))), V({0}));
}

TEST_P(MathTest, NothingButNan) {
  Array nan = xp::full({2, 3}, NAN, float32);
  nan[{0, 1}].fill(4);
  auto is_nan = [](const Array& a, std::size_t i) { return std::isnan(values(a)[i]); };
  EXPECT_TRUE(is_nan(xp::nanmax(nan, 1), 1));
  EXPECT_TRUE(is_nan(xp::nanmean(nan, 1), 1));
  EXPECT_TRUE(is_nan(xp::nanvar(nan, 1), 1));
  EXPECT_EQ(values(xp::nanmax(nan, 1))[0], 4);
  EXPECT_EQ(values(xp::nansum(nan, 1)), V({4, 0}));
  EXPECT_EQ(values(xp::nanargmax(nan, 1)), V({1, -1}));
  EXPECT_EQ(values(xp::nanargmin(nan, 1)), V({1, -1}));
  EXPECT_THROW(xp::nanmax(xp::zeros({0}, float32)), ValueError);
  EXPECT_THROW(xp::nanmax(xp::zeros({2}, complex64)), DtypeError);
}

TEST_P(MathTest, LargeReductions) {
  for (std::int64_t n : {100003, 1000003}) {
    Array x = xp::arange(n, float64) * (1.0 / static_cast<double>(n)) + 1e6;
    double spread = (static_cast<double>(n) * static_cast<double>(n) - 1) /
                    (12.0 * static_cast<double>(n) * static_cast<double>(n));
    EXPECT_NEAR(values(xp::var(x))[0], spread, 1e-9);
    Array y = xp::arange(n, float32);
    y[{Slice(0, none, 10)}].fill(NAN);
    std::int64_t tens = (n + 9) / 10;
    double all = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
    double left_out = 10.0 * static_cast<double>(tens) * static_cast<double>(tens - 1) / 2;
    EXPECT_NEAR(values(xp::nansum(y, {.dtype = float64}))[0], all - left_out, 1e-3);
    EXPECT_NEAR(values(xp::nansum(y))[0], all - left_out, 1e-5 * all);
    EXPECT_EQ(values(xp::nanmax(y))[0], static_cast<double>(n - 1));
    EXPECT_EQ(xp::count_nonzero(xp::nan_to_num(y)).item<std::int64_t>(), n - tens);
    Array table = y.reshape({1, n}).broadcast_to({3, n});
    EXPECT_NEAR(values(xp::nanmean(table, 1))[2], (all - left_out) / static_cast<double>(n - tens),
                1e-5 * static_cast<double>(n));
  }
  // More ones than float32 can count.
  EXPECT_EQ(xp::count_nonzero(xp::ones({1 << 25}, float32)).item<std::int64_t>(), 1 << 25);
}

TEST_P(MathTest, TransposedCopies) {
  // Tiles, their edges, every size of element, further axes on either side.
  const Dtype dtypes[] = {uint8, float16, float32, float64, complex128};
  const Shape shapes[] = {{64, 64},    {65, 63},       {8, 200},   {200, 8},   {257, 130},
                          {3, 40, 50}, {2, 3, 33, 70}, {1000, 12}, {128, 256}, {520, 260}};
  for (Dtype dtype : dtypes) {
    for (const Shape& shape : shapes) {
      int n = shape.ndim();
      Array x = xp::arange(shape.total(), int64).astype(dtype).reshape(shape);
      std::vector<Array> views = {x.swapaxes(n - 1, n - 2), x.transpose()};
      if (n > 2) views.push_back(x.swapaxes(0, n - 1));
      views.push_back(x.swapaxes(n - 1, n - 2)[{ellipsis, Slice(1, none)}]);  // off the alignment
      for (const Array& view : views) {
        Array host = view.to(cpu());
        Array copy = view.copy();
        ASSERT_TRUE(copy.is_contiguous());
        EXPECT_TRUE(xp::array_equal(copy, view)) << view.view().describe();
        EXPECT_TRUE(xp::array_equal(copy.to(cpu()), host)) << view.view().describe();
      }
    }
  }
}

TEST(DtypeInfo, AgreesWithNumpy) {
  EXPECT_EQ(xp::finfo(float32).eps, 1.1920928955078125e-07);
  EXPECT_EQ(xp::finfo(float32).max, 3.4028234663852886e+38);
  EXPECT_EQ(xp::finfo(float32).tiny, 1.1754943508222875e-38);
  EXPECT_EQ(xp::finfo(float32).precision, 6);
  EXPECT_EQ(xp::finfo(float64).eps, std::numeric_limits<double>::epsilon());
  EXPECT_EQ(xp::finfo(float64).max, std::numeric_limits<double>::max());
  EXPECT_EQ(xp::finfo(float64).smallest_subnormal, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(xp::finfo(float64).precision, 15);
  EXPECT_EQ(xp::finfo(float16).max, 65504);
  EXPECT_EQ(xp::finfo(float16).smallest_subnormal, 5.960464477539063e-08);
  EXPECT_EQ(xp::finfo(float16).precision, 3);
  EXPECT_EQ(xp::finfo(bfloat16).max, 3.3895313892515355e38);
  EXPECT_EQ(xp::finfo(complex128).dtype, float64);
  EXPECT_EQ(xp::iinfo(int8).min, -128);
  EXPECT_EQ(xp::iinfo(int64).min, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(xp::iinfo(int64).max, 9223372036854775807u);
  EXPECT_EQ(xp::iinfo(uint64).max, 18446744073709551615u);
  EXPECT_THROW(xp::finfo{int32}, DtypeError);
  EXPECT_THROW(xp::iinfo{bool_}, DtypeError);
}

TEST(DtypeInfo, Casts) {
  EXPECT_TRUE(xp::can_cast(int32, float64));
  EXPECT_FALSE(xp::can_cast(int64, float32));
  EXPECT_TRUE(xp::can_cast(int64, float32, "same_kind"));
  EXPECT_FALSE(xp::can_cast(float32, int64, "same_kind"));
  EXPECT_TRUE(xp::can_cast(float32, int64, xp::Casting::unsafe));
  EXPECT_FALSE(xp::can_cast(float32, float64, "no"));
  EXPECT_THROW(xp::can_cast(float32, float64, "maybe"), ValueError);
  EXPECT_EQ(xp::result_type(int8, uint8), int16);
  EXPECT_EQ(xp::result_type(float32, 1.5), float32);
  EXPECT_EQ(xp::result_type(int8, 1.5), float64);
  EXPECT_EQ(xp::result_type(xp::ones({2}, float16), 3), float16);
  EXPECT_EQ(xp::result_type(3, 2.0), float64);
  EXPECT_EQ(xp::promote_types(int64, uint64), float64);
}

TEST(DtypeInfo, Kinds) {
  EXPECT_TRUE(xp::issubdtype(bfloat16, xp::Kind::floating));
  EXPECT_TRUE(xp::issubdtype(complex64, xp::Kind::inexact));
  EXPECT_FALSE(xp::issubdtype(bool_, xp::Kind::number));
  EXPECT_TRUE(xp::issubdtype(uint8, xp::Kind::integer));
  EXPECT_FALSE(xp::issubdtype(uint8, xp::Kind::signedinteger));
  EXPECT_TRUE(xp::isdtype(int8, "integral"));
  EXPECT_TRUE(xp::isdtype(int8, {"real floating", "signed integer"}));
  EXPECT_FALSE(xp::isdtype(bool_, "numeric"));
  EXPECT_THROW(xp::isdtype(bool_, "string"), ValueError);
  EXPECT_TRUE(xp::isscalar(3.0));
  EXPECT_FALSE(xp::isscalar(xp::ones({})));
}

}  // namespace
}  // namespace rensa::testing
