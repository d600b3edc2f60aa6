// Ufuncs as objects: outputs and dtypes of another kind, their methods, and complex numbers at the
// ends of the range, against NumPy's answers (tests/answers/make_ufunc_cases.py).
#include <algorithm>

#include "rensa/array/ufuncs/bits.h"
#include "rensa/array/ufuncs/exponential.h"
#include "rensa/array/ufuncs/floats.h"
#include "rensa/array/ufuncs/powers.h"
#include "tests/array/replay.h"

namespace rensa::testing {
namespace {

using List = std::vector<Array>;

// The rows of ops.def that are of the class, by name.
template <class Object> std::map<std::string, Object> objects_of(int inputs) {
  std::map<std::string, Object> table;
  for (Ufunc row : all_ufuncs()) {
    if (ufunc_info(row).inputs == inputs) table.emplace(ufunc_info(row).name, Object(row.info()));
  }
  return table;
}
const std::map<std::string, xp::UnaryUfunc>& unary() {
  static const auto table = objects_of<xp::UnaryUfunc>(1);
  return table;
}
const std::map<std::string, xp::BinaryUfunc>& binary() {
  static const auto table = objects_of<xp::BinaryUfunc>(2);
  return table;
}

std::optional<Dtype> dtype_of_call(const Call& c) {
  if (!c.has("dtype")) return {};
  return parse_dtype(c.text("dtype"));
}

// A number of the call, which is weak, and not an array. None of them is 0.
bool is_number(const Call& c, std::size_t i) { return c.numbers[i].real() != 0; }

Array apply(const xp::BinaryUfunc& f, const Call& c) {
  if (is_number(c, 0)) return f(c.numbers[0], c.in[1]);
  if (is_number(c, 1)) return f(c.in[0], c.numbers[1]);
  return f(c.in[0], c.in[1]);
}

void add_calls(Routines& table) {
  auto options_of = [](const Call& c) {
    xp::UfuncOptions options = {.dtype = dtype_of_call(c)};
    if (c.has("casting")) options.casting = c.text("casting");
    return options;
  };
  for (const auto& [name, f] : unary()) {
    table[name] = [f = f](const Call& c) -> List { return {f(c.in[0])}; };
    table["out_" + name] = [f = f, options_of](const Call& c) -> List {
      xp::UfuncOptions options = options_of(c);
      if (!c.has("out")) return {f(c.in[0], options)};
      Array out = xp::zeros({4}, parse_dtype(c.text("out")), c.device);
      options.out = out;
      EXPECT_EQ(f(c.in[0], options).data(), out.data());
      return {out};
    };
  }
  for (const auto& [name, f] : binary()) {
    table[name] = [f = f](const Call& c) -> List { return {apply(f, c)}; };
    table["out_" + name] = [f = f, options_of](const Call& c) -> List {
      xp::UfuncOptions options = options_of(c);
      if (!c.has("out")) return {f(c.in[0], c.in[1], options)};
      Array out = xp::zeros({4}, parse_dtype(c.text("out")), c.device);
      options.out = out;
      EXPECT_EQ(f(c.in[0], c.in[1], options).data(), out.data());
      return {out};
    };
  }
  table["divmod"] = [](const Call& c) -> List {
    auto [quotient, rest] = xp::divmod(c.in[0], c.in[1]);
    return {quotient, rest};
  };
  table["clip"] = [](const Call& c) -> List {
    return {xp::clip(c.in[0], c.numbers[1], c.numbers[2])};
  };
  table["clip_above"] = [](const Call& c) -> List {
    return {xp::clip(c.in[0], none, c.numbers[1])};
  };
  table["clip_below"] = [](const Call& c) -> List {
    return {xp::clip(c.in[0], c.numbers[1], none)};
  };
  table["where"] = [](const Call& c) -> List {
    if (is_number(c, 1)) return {xp::where(c.in[0], c.numbers[1], c.in[2])};
    return {xp::where(c.in[0], c.in[1], c.numbers[2])};
  };
  table["round"] = [](const Call& c) -> List {
    return {xp::round(c.in[0], static_cast<int>(c.integer("decimals")))};
  };
}

TEST(Ufuncs, OutputsAndCastingAsNumpy) {
  Routines table;
  add_calls(table);
  replay("numpy_casting.txt", table, 3800, [](const Call& c, Dtype d) -> Closeness {
    double rtol = tolerance(d);  // or that of what it was computed in
    for (const Array& a : c.in) {
      bool number = dtype_kind(a.dtype()) != 'b' && a.ndim() > 0;
      if (number) rtol = std::max(rtol, tolerance(floating_dtype(a.dtype())));
    }
    if (c.has("dtype")) rtol = std::max(rtol, tolerance(parse_dtype(c.text("dtype"))));
    return {2 * rtol, 0, false};
  });
}

void add_functions(Routines& table) {
  table["frexp"] = [](const Call& c) -> List {
    auto [mantissa, exponent] = xp::frexp(c.in[0]);
    return {mantissa, exponent};
  };
  table["i0"] = [](const Call& c) -> List { return {xp::i0(c.in[0])}; };
  table["unwrap"] = [](const Call& c) -> List {
    xp::UnwrapOptions options = {.axis = c.axis()};
    if (c.has("discont")) options.discont = c.real("discont");
    double period = c.real("period");
    if (c.has("period")) {
      options.period = period == 6.5 ? Scalar(period) : Scalar(static_cast<int>(period));
    }
    return {xp::unwrap(c.in[0], options)};
  };
  auto axis_of = [](const Call& c) {
    return c.has("axis") ? OptionalAxis(c.axis()) : OptionalAxis(none);
  };
  table["packbits"] = [axis_of](const Call& c) -> List {
    return {xp::packbits(c.in[0], axis_of(c), c.text("bitorder"))};
  };
  table["unpackbits"] = [axis_of](const Call& c) -> List {
    std::optional<std::int64_t> count;
    if (c.has("count")) count = c.integer("count");
    return {xp::unpackbits(c.in[0], axis_of(c), count, c.text("bitorder"))};
  };
  table["real_if_close"] = [](const Call& c) -> List {
    return {xp::real_if_close(c.in[0], c.real("tol"))};
  };
}

Axes axes_of(const Call& c) {
  auto list = c.integers("axis");
  if (list.size() == 1) return static_cast<int>(list[0]);
  return {static_cast<int>(list[0]), static_cast<int>(list[1])};
}

void add_methods(Routines& table) {
  for (const auto& [name, f] : binary()) {
    table[name + ".reduce"] = [f = f](const Call& c) -> List {
      xp::UfuncReduceOptions options = {
          .axis = axes_of(c), .keepdims = c.flag("keepdims"), .dtype = dtype_of_call(c)};
      if (c.has("initial")) options.initial = c.integer("initial");
      if (c.has("where")) options.where = c.in[1];
      return {f.reduce(c.in[0], options)};
    };
    table[name + ".accumulate"] = [f = f](const Call& c) -> List {
      return {f.accumulate(c.in[0], {.axis = c.axis(0), .dtype = dtype_of_call(c)})};
    };
    table[name + ".reduceat"] = [f = f](const Call& c) -> List {
      return {f.reduceat(c.in[0], c.in[1], c.axis(0))};
    };
    table[name + ".outer"] = [f = f](const Call& c) -> List { return {f.outer(c.in[0], c.in[1])}; };
    table[name + ".at"] = [f = f](const Call& c) -> List {
      f.at(c.in[0], c.in[1], c.in[2]);
      return {c.in[0]};
    };
  }
  for (const auto& [name, f] : unary()) {
    table[name + ".at"] = [f = f](const Call& c) -> List {
      f.at(c.in[0], c.in[1]);
      return {c.in[0]};
    };
  }
}

TEST(Ufuncs, MethodsAgreeWithNumpy) {
  Routines table;
  add_functions(table);
  add_methods(table);
  replay("numpy_ufuncs.txt", table, 3800, [](const Call& c, Dtype d) -> Closeness {
    // NumPy's i0 of float16 is computed in 16 bits.
    double factor = c.routine == "i0" && itemsize(d) == 2 ? 16 : 4;
    return {factor * tolerance(d), 4 * tolerance(d), false};
  });
}

TEST(Ufuncs, ComplexNumbersAtTheEndsOfTheRange) {
  Routines table;
  auto parts = [](const Array& z) -> List { return {xp::real(z).copy(), xp::imag(z).copy()}; };
  for (const auto& [name, f] : unary()) {
    table[name] = [f = f, parts](const Call& c) { return parts(f(c.in[0])); };
  }
  table["power"] = [parts](const Call& c) { return parts(xp::power(c.in[0], c.in[1])); };
  // Part by part, zeros with their signs.
  replay("numpy_complex.txt", table, 200, [](const Call& c, Dtype d) -> Closeness {
    bool general = c.routine == "power" && c.in[1].to(cpu()).size() > 0;
    double rtol = d == float32 ? 1e-5 : 2e-14;
    return {general ? 16 * rtol : rtol, d == float32 ? 1e-44 : 4e-323, true};
  });
}

class UfuncTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, UfuncTest, ::testing::ValuesIn(test_devices()));

using V = std::vector<double>;
V values(const Array& a) { return a.to_vector<double>(); }
using Names = std::vector<std::string>;

TEST(Ufuncs, TellsWhatNumpyTells) {
  EXPECT_EQ(xp::add.name(), "add");
  EXPECT_EQ(xp::add.nin(), 2);
  EXPECT_EQ(xp::add.nout(), 1);
  EXPECT_EQ(xp::exp.nargs(), 2);
  EXPECT_EQ(xp::true_divide.name(), "divide");
  EXPECT_EQ(xp::divide.types(), Names({"ee->e", "ff->f", "dd->d", "FF->F", "DD->D"}));
  EXPECT_EQ(xp::float_power.ntypes(), 2);
  EXPECT_EQ(xp::add.identity()->as<int>(), 0);
  EXPECT_EQ(xp::multiply.identity()->as<int>(), 1);
  EXPECT_EQ(xp::logical_and.identity()->kind(), 'b');
  EXPECT_EQ(xp::bitwise_and.identity()->as<int>(), -1);
  EXPECT_EQ(xp::logaddexp.identity()->real(), -INFINITY);
  EXPECT_FALSE(xp::maximum.identity());
  EXPECT_FALSE(xp::subtract.identity());
}

TEST(Ufuncs, TypesAndIdentitiesAsNumpys) {
  std::ifstream file(testing::data_file("dtype_tables.txt"));
  auto compare = [](const xp::UfuncObject& f, const std::string& identity, Names want) {
    Names got = f.types();
    // Complex numbers have no order here.
    if (got.back().find('F') == std::string::npos && got.back().find('D') == std::string::npos) {
      std::erase_if(want, [](const std::string& loop) { return loop[0] == 'F' || loop[0] == 'D'; });
    }
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    EXPECT_EQ(got, want) << f.name();
    EXPECT_EQ(f.identity().has_value(), identity != "None") << f.name();
  };
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name, identity;
    words >> word >> name >> identity;
    if (word != "types") continue;
    Names want;
    while (words >> word) want.push_back(word);
    if (unary().count(name)) compare(unary().at(name), identity, want);
    else compare(binary().at(name), identity, want);
    ++compared;
  }
  EXPECT_GT(compared, 75);
}

TEST_P(UfuncTest, ReducesAsItIsWritten) {
  Array a = xp::arange(6, float32).reshape({2, 3}), out = xp::zeros({2}, float64);
  EXPECT_EQ(values(xp::add.reduce(a)), V({3, 5, 7}));  // the first axis, as in NumPy
  EXPECT_EQ(values(xp::add.reduce(a, 1)), V({3, 12}));
  EXPECT_EQ(values(xp::add.reduce(a, none)), V({15}));
  EXPECT_EQ(values(xp::add.reduce(a, {0, 1})), V({15}));
  EXPECT_EQ(xp::add.reduce(a, 1, true).shape(), Shape({2, 1}));
  EXPECT_EQ(values(xp::hypot.reduce(a, {.axis = 1, .out = out})).size(), 2u);
  EXPECT_NEAR(values(out)[1], std::sqrt(50.0), 1e-6);
  EXPECT_EQ(values(xp::subtract.reduce(a, {.axis = 1})), V({-3, -6}));
  EXPECT_EQ(values(xp::subtract.reduce(a, {.axis = 1, .initial = 20})), V({17, 8}));
  EXPECT_EQ(values(xp::maximum.accumulate(xp::array({1, 3, 2, 5, 4}))), V({1, 3, 3, 5, 5}));
  EXPECT_EQ(values(xp::multiply.accumulate(a, 1)), V({0, 0, 0, 3, 12, 60}));
  Array places = xp::array({0, 1});
  EXPECT_EQ(values(xp::add.reduceat(a, places, {.axis = 1})), V({0, 3, 3, 9}));
  EXPECT_EQ(xp::add.outer(a, xp::ones({4})).shape(), Shape({2, 3, 4}));
  EXPECT_EQ(xp::add.outer(xp::ones({2}, int8), xp::ones({2}, int8), {.dtype = int32}).dtype(),
            int32);
}

TEST_P(UfuncTest, ReducesLongAxes) {
  Array a = xp::arange(100003, int64);
  std::int64_t common = 0, ones = 0;
  for (std::int64_t i = 0; i < 100003; ++i) common ^= i, ones |= i;
  EXPECT_EQ(xp::bitwise_xor.reduce(a).item<std::int64_t>(), common);
  EXPECT_EQ(xp::bitwise_or.reduce(a).item<std::int64_t>(), ones);
  EXPECT_EQ(xp::gcd.reduce(a * 6).item<std::int64_t>(), 6);
  Array highest = xp::maximum.accumulate(xp::remainder(a, 1000));
  EXPECT_EQ(highest[999].item<int>(), 999);
  EXPECT_EQ(highest[500].item<int>(), 500);
  EXPECT_EQ(xp::min(highest[Slice(1000, none)]).item<int>(), 999);
  Array starts = xp::arange(0, 100003, 1000);
  Array sums = xp::add.reduceat(xp::ones({100003}, float32), starts);
  EXPECT_EQ(sums.size(), 101);
  EXPECT_EQ(values(sums)[0], 1000);
  EXPECT_EQ(values(sums)[100], 3);
}

TEST_P(UfuncTest, UpdatesAtAnIndex) {
  Array a = xp::arange(6, float32).reshape({2, 3});
  xp::add.at(a, {1, xp::array({0, 0, 2})}, 10);
  EXPECT_EQ(values(a), V({0, 1, 2, 23, 4, 15}));
  xp::multiply.at(a, {Slice(), xp::array({1, 1})}, xp::array({2.f, 3.f}));
  EXPECT_EQ(values(a), V({0, 6, 2, 23, 24, 15}));
  xp::negative.at(a.T(), {xp::array({0, 0, 1})});  // a view whose elements do not follow each other
  EXPECT_EQ(values(a), V({0, -6, 2, 23, -24, 15}));
  xp::subtract.at(a, a < 0, 1);
  EXPECT_EQ(values(a), V({0, -7, 2, 23, -25, 15}));
  EXPECT_THROW(xp::multiply.at(a, xp::array({0}), xp::ones({4})), ShapeError);
  EXPECT_THROW(xp::multiply.at(a.broadcast_to({2, 2, 3}), xp::array({0}), 1), ValueError);
  EXPECT_THROW(xp::bitwise_or.at(a, xp::array({0}), 1), DtypeError);
}

TEST_P(UfuncTest, ErrorsNameTheMethod) {
  Array a = xp::ones({2, 3}, float32);
  auto names = [](const std::string& text, const char* name) {
    return text.find(name) != text.npos;
  };
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::less.reduce(a); }), "less.reduce"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::subtract.reduce(a, none); }), "subtract.reduce"));
  EXPECT_TRUE(
      names(thrown<ValueError>([&] { xp::lcm.reduce(xp::zeros({0}, int32)); }), "lcm.reduce"));
  EXPECT_TRUE(names(thrown<IndexError>([&] { xp::hypot.accumulate(a, 2); }), "hypot.accumulate"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::hypot.reduce(a, {.axis = 0, .out = a}); }),
                    "hypot.reduce"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] {
                      xp::add.reduceat(a, xp::zeros({1, 1}, int64));
                    }),
                    "add.reduceat"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::add.reduceat(a, a[0]); }), "add.reduceat"));
}

TEST_P(UfuncTest, PairsOfOutputs) {
  Array a = xp::array({7.5, -7.5, 3.}), fraction = xp::zeros({3}, float32);
  Array whole = xp::zeros({3}, float64);
  auto [f, w] = xp::modf(a, {.out = {fraction, whole}});
  EXPECT_EQ(f.data(), fraction.data());
  EXPECT_EQ(values(fraction), V({0.5, -0.5, 0}));
  EXPECT_EQ(values(w), V({7, -7, 3}));
  xp::divmod(a, 2, {.out = {a, whole}});  // the operand is overwritten
  EXPECT_EQ(values(a), V({3, -4, 1}));
  EXPECT_EQ(values(whole), V({1.5, 0.5, 1}));
  Array mask = xp::array({true, false, true});
  auto [m, e] = xp::frexp(xp::array({8., 8., 3.}), {.where = mask, .dtype = float32});
  EXPECT_EQ(m.dtype(), float32);
  EXPECT_EQ(values(m), V({0.5, 0, 0.75}));
  EXPECT_EQ(e.dtype(), int32);
  EXPECT_EQ(values(e), V({4, 0, 2}));
  Array exponents = xp::zeros({1}, int64);
  xp::frexp(xp::array({6.f}), {.out = {xp::zeros({1}), exponents}});
  EXPECT_EQ(values(exponents), V({3}));
  EXPECT_THROW(xp::modf(a, {.casting = "perhaps"}), ValueError);
}

TEST_P(UfuncTest, OptionsOfFormerFunctions) {
  Array a = xp::array({1.f, 2.f}), out = xp::zeros({2}, float64);
  xp::nextafter(a, 5, {.out = out});
  EXPECT_EQ(values(out), V({std::nextafter(1.f, 5.f), std::nextafter(2.f, 5.f)}));
  EXPECT_EQ(xp::nextafter(a, a, {.dtype = float64}).dtype(), float64);
  xp::ldexp(a, xp::array({3, 4}), {.out = out});
  EXPECT_EQ(values(out), V({8, 32}));
  EXPECT_EQ(values(xp::float_power(a, 3, {.where = xp::array({false, true})})), V({0, 8}));
  Array bytes = xp::array({1, 200}).astype(uint8);
  xp::clip(bytes, none, 300, {.out = out});
  EXPECT_EQ(values(out), V({1, 200}));
  xp::clip(bytes, 7, none, {.out = out});
  EXPECT_EQ(values(out), V({7, 200}));
  // uint64 holds what float64 would round on the way.
  Array big = xp::full({1}, (1ull << 53) + 1, uint64), signed_out = xp::zeros({1}, int64);
  xp::add(big, xp::zeros({1}, uint64), {.out = signed_out, .where = xp::array({true})});
  EXPECT_EQ(signed_out.item<std::int64_t>(), (1ll << 53) + 1);
}

TEST(Ufuncs, BinaryRepr) {
  EXPECT_EQ(xp::binary_repr(0), "0");
  EXPECT_EQ(xp::binary_repr(0, 0), "0");
  EXPECT_EQ(xp::binary_repr(5), "101");
  EXPECT_EQ(xp::binary_repr(-5), "-101");
  EXPECT_EQ(xp::binary_repr(5, 6), "000101");
  EXPECT_EQ(xp::binary_repr(-5, 6), "111011");
  EXPECT_EQ(xp::binary_repr(-4, 3), "100");
  EXPECT_EQ(xp::binary_repr(-1, 1), "1");
  EXPECT_EQ(xp::binary_repr(-1, 70), std::string(70, '1'));
  EXPECT_EQ(xp::binary_repr(INT64_MIN, 64), "1" + std::string(63, '0'));
  EXPECT_EQ(xp::binary_repr(INT64_MIN), "-1" + std::string(63, '0'));
  EXPECT_THROW(xp::binary_repr(5, 2), ValueError);
  EXPECT_THROW(xp::binary_repr(-5, 3), ValueError);
  EXPECT_THROW(xp::binary_repr(3, -1), ValueError);
}

TEST(Ufuncs, ResultsOfThreeDtypesInAnyOrder) {
  Array a = xp::ones({1}, uint16), b = xp::ones({1}, int8), c = xp::ones({1}, float32);
  EXPECT_EQ(xp::concatenate({a, b, c}).dtype(), float32);
  EXPECT_EQ(xp::stack({b, a, c}).dtype(), float32);
  EXPECT_EQ(xp::result_type(a, b, c), float32);
  EXPECT_EQ(xp::clip(a, b, c).dtype(), float32);
  Array yes = xp::ones({1}, bool_);
  EXPECT_EQ(xp::select({yes, yes, yes}, {a, b, c}).dtype(), float32);
  EXPECT_EQ(xp::choose(xp::zeros({1}, int64), {a, b, c}).dtype(), float32);
  EXPECT_EQ(xp::einsum("i,i,i", {a, b, c}).dtype(), float32);
}

}  // namespace
}  // namespace rensa::testing
