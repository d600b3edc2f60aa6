// Arrays as text, against numpy.array_repr.
#include <fstream>
#include <thread>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

// NumPy's text says the dtype only where it is not obvious and no device: what stands before.
std::string before_dtype(std::string text) {
  for (const char* end : {" dtype=", " shape=", "dtype=", "shape="}) {
    text = text.substr(0, text.find(end));
  }
  while (!text.empty() && std::string(", )\n").find(text.back()) != std::string::npos) {
    text.pop_back();
  }
  return text;
}

TEST(Print, AsNumpy) {
  std::ifstream file(testing::data_file("numpy_reprs.txt"));
  int count = 0;
  for (std::string head, line; std::getline(file, head); ++count) {
    std::string want;
    while (std::getline(file, line) && line != ".") want += line + "\n";
    for (Device device : testing::test_devices()) {
      Array a = testing::read_array(head, device);
      std::string text = xp::array_repr(a);
      EXPECT_EQ(before_dtype(text), before_dtype(want)) << head.substr(0, 200);
      std::string end =
          "dtype=" + std::string(dtype_name(a.dtype())) + ", device='" + device.str() + "')";
      EXPECT_TRUE(text.ends_with(end)) << text;
      EXPECT_EQ(text.find("shape=") != text.npos, want.find("shape=") != want.npos) << text;
    }
  }
  EXPECT_GT(count, 50) << "the file is not the one that the script writes";
}

TEST(Print, WholeText) {
  EXPECT_EQ(xp::arange(6, float32).reshape({2, 3}).str(),
            "array([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32, device='cpu')");
  EXPECT_EQ(xp::zeros({2, 0}, float32).str(),
            "array([], shape=(2, 0), dtype=float32, device='cpu')");
  EXPECT_EQ(xp::array({1.f, 2.5f}).astype(bfloat16).str(),
            "array([1. , 2.5], dtype=bfloat16, device='cpu')");
  EXPECT_EQ(Array().str(), "array(undefined)");
  std::ostringstream stream;
  stream << xp::array(true) << xp::array({1});
  EXPECT_EQ(stream.str(), "Truearray([1], dtype=int64, device='cpu')");
  EXPECT_EQ(xp::array_repr(xp::array(true)), "array(True, dtype=bool, device='cpu')");
}

TEST(Print, ViewsAreWrittenInTheirOwnOrder) {
  Array a = xp::arange(6).reshape({2, 3});
  EXPECT_EQ(a.T().str(), a.T().copy().str());
  EXPECT_EQ(Array(a[{Slice(), Slice(none, none, -1)}]).str().substr(0, 17), "array([[2, 1, 0],");
}

TEST(Print, Array2StringAsNumpy) {
  Array a = xp::arange(6, float64).reshape({2, 3}) / 7;
  EXPECT_EQ(xp::array_str(a),
            "[[0.         0.14285714 0.28571429]\n [0.42857143 0.57142857 0.71428571]]");
  EXPECT_EQ(xp::array2string(a, {.precision = 3, .separator = ", ", .prefix = "x = "}),
            "[[0.   , 0.143, 0.286],\n     [0.429, 0.571, 0.714]]");
  EXPECT_EQ(xp::array2string(xp::arange(40), {.max_line_width = 40}),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12\n 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
            " 26 27 28 29 30 31 32 33 34 35 36 37 38\n 39]");
  Array wide = xp::array({1e-10, 1.0});
  EXPECT_EQ(xp::array2string(wide), "[1.e-10 1.e+00]");
  EXPECT_EQ(xp::array2string(wide, {.suppress_small = true}), "[0. 1.]");
  EXPECT_EQ(xp::array2string(xp::arange(20).reshape({4, 5}), {.threshold = 3, .edgeitems = 1}),
            "[[ 0 ...  4]\n ...\n [15 ... 19]]");
  EXPECT_EQ(xp::array2string(xp::array(1.5)), "1.5");
  EXPECT_EQ(xp::array2string(xp::zeros({0})), "[]");
  EXPECT_EQ(xp::array2string(xp::array({1, 0}).astype(bool_)), "[ True False]");
  EXPECT_EQ(xp::array2string(xp::arange(3), {.separator = ""}), "[012]");
  EXPECT_EQ(xp::array_repr(a), a.str());
  EXPECT_THROW(xp::array2string(a, {.precision = -1}), ValueError);
  EXPECT_THROW(xp::array2string(Array()), ValueError);
}

// numpy.array_str of arrays of no axes: Python's numbers.
TEST(Print, ANumberByItself) {
  using C = std::complex<double>;
  auto text = [](Scalar value, Dtype dtype) { return xp::array_str(xp::full({}, value, dtype)); };
  double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  EXPECT_EQ(text(2, float64), "2.0");
  EXPECT_EQ(text(-0.0, float32), "-0.0");
  EXPECT_EQ(text(0.1, float32), "0.1");
  EXPECT_EQ(text(0.1, float16), "0.1");
  EXPECT_EQ(text(1 / 3., float64), "0.3333333333333333");
  EXPECT_EQ(text(123456789.123, float64), "123456789.123");
  EXPECT_EQ(text(1e-5, float64), "1e-05");
  EXPECT_EQ(text(1e-4, float64), "0.0001");
  EXPECT_EQ(text(1e15, float64), "1000000000000000.0");
  EXPECT_EQ(text(1.5e16, float64), "1.5e+16");
  EXPECT_EQ(text(5e-324, float64), "5e-324");
  EXPECT_EQ(text(nan, float64), "nan");
  EXPECT_EQ(text(-inf, float32), "-inf");
  EXPECT_EQ(text(C(2, 0), complex128), "(2+0j)");
  EXPECT_EQ(text(C(0, 2), complex128), "2j");
  EXPECT_EQ(text(C(0, -2.5), complex64), "-2.5j");
  EXPECT_EQ(text(C(-0.0, 1e20), complex128), "(-0+1e+20j)");
  EXPECT_EQ(text(C(1 / 3., 2), complex64), "(0.33333334+2j)");
  EXPECT_EQ(text(C(1, nan), complex128), "(1+nanj)");
  EXPECT_EQ(text(C(-inf, -inf), complex128), "(-inf-infj)");
  EXPECT_EQ(text(7, uint8), "7");
  EXPECT_EQ(text(true, bool_), "True");
}

// str() of 0-d arrays by NumPy 2.4.
TEST(Print, ANumberAloneAsPython) {
  struct Case {
    double value;
    const char *float64_text, *float32_text, *float16_text;
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const Case& c : {
           Case{0., "0.0", "0.0", "0.0"},
           Case{-0., "-0.0", "-0.0", "-0.0"},
           Case{2.5, "2.5", "2.5", "2.5"},
           Case{1. / 3, "0.3333333333333333", "0.33333334", "0.3333"},
           Case{1001., "1001.0", "1001.0", "1.001e+03"},
           Case{1234567., "1234567.0", "1.234567e+06", "inf"},
           Case{123456789.125, "123456789.125", "1.2345679e+08", "inf"},
           Case{1e15, "1000000000000000.0", "1e+15", "inf"},
           Case{1e16, "1e+16", "1e+16", "inf"},
           Case{1e-4, "0.0001", "1e-04", "0.0001"},
           Case{1.5e-7, "1.5e-07", "1.5e-07", "2e-07"},
           Case{-inf, "-inf", "-inf", "-inf"},
           Case{std::nan(""), "nan", "nan", "nan"},
       }) {
    for (Device device : testing::test_devices()) {
      Array a = xp::array(c.value, device);
      EXPECT_EQ(a.str(), c.float64_text);
      EXPECT_EQ(a.astype(float32).str(), c.float32_text);
      EXPECT_EQ(a.astype(float16).str(), c.float16_text);
    }
  }
  using C = std::complex<double>;
  EXPECT_EQ(xp::array(C(0, 0)).str(), "0j");
  EXPECT_EQ(xp::array(C(1, 2)).str(), "(1+2j)");
  EXPECT_EQ(xp::array(C(1. / 3, -0.5)).str(), "(0.3333333333333333-0.5j)");
  EXPECT_EQ(xp::array(C(std::nan(""), inf)).str(), "(nan+infj)");
  EXPECT_EQ(xp::array(C(1, -0.)).str(), "(1-0j)");
  EXPECT_EQ(xp::array(true).str(), "True");
  EXPECT_EQ(xp::array(-3).str(), "-3");
  EXPECT_EQ(xp::array_str(xp::array(2.)), "2.0");
}

// array2string() under printoptions() by NumPy 2.4.
TEST(Print, OptionsAsNumpy) {
  const double inf = std::numeric_limits<double>::infinity();
  Array a = xp::array({1. / 3, -2.5, 100., 1e-3}), b = xp::array({1.5, std::nan(""), -inf, 2.}),
        c = xp::array({1, -20, 300}), positive = xp::array({1, 20}),
        d = xp::array({std::complex<double>(1, 2.5), std::complex<double>(-1. / 3, -1)}),
        e = xp::array({1e-10, 1., 123456.789});
  struct Case {
    xp::PrintOptionsChange options;
    Array array;
    const char* text;
  };
  for (const Case& k : {
           Case{{.precision = 3}, a, "[ 3.333e-01 -2.500e+00  1.000e+02  1.000e-03]"},
           Case{{.precision = 3}, d, "[ 1.   +2.5j -0.333-1.j ]"},
           Case{{.precision = 3, .floatmode = "fixed"},
                a,
                "[ 3.333e-01 -2.500e+00  1.000e+02  1.000e-03]"},
           Case{{.precision = 3, .floatmode = "fixed"}, b, "[1.500   nan  -inf 2.000]"},
           Case{{.precision = 3, .floatmode = "fixed"}, d, "[ 1.000+2.500j -0.333-1.000j]"},
           Case{{.floatmode = "unique"}, b, "[ 1.5  nan -inf  2. ]"},
           Case{{.floatmode = "unique"}, d, "[ 1.                +2.5j -0.3333333333333333-1.j ]"},
           Case{{.floatmode = "unique"}, e, "[1.00000000e-10 1.00000000e+00 1.23456789e+05]"},
           Case{{.precision = 4, .floatmode = "maxprec_equal"}, b, "[ 1.5  nan -inf  2.0]"},
           Case{{.precision = 4, .floatmode = "maxprec_equal"}, d, "[ 1.0000+2.5j -0.3333-1.0j]"},
           Case{{.sign = '+'}, b, "[+1.5 +nan -inf +2. ]"},
           Case{{.sign = '+'}, c, "[  +1  -20 +300]"},
           Case{{.sign = ' '}, c, "[  1 -20 300]"},
           Case{{.sign = ' '}, positive, "[  1  20]"},
           Case{{.sign = ' '}, e, "[ 1.00000000e-10  1.00000000e+00  1.23456789e+05]"},
           Case{{.nanstr = "NA", .infstr = "INFINITY"},
                b,
                "[      1.5        NA -INFINITY       2. ]"},
           Case{{.suppress = true}, a, "[  0.33333333  -2.5        100.           0.001     ]"},
           Case{{.linewidth = 20}, b, "[ 1.5  nan -inf\n  2. ]"},
           Case{{.threshold = 3, .edgeitems = 1}, a, "[0.33333333 ... 0.001     ]"},
       }) {
    xp::printoptions scope(k.options);
    EXPECT_EQ(xp::array2string(k.array), k.text);
  }
  EXPECT_EQ(xp::get_printoptions().precision, 8);
  EXPECT_EQ(xp::array2string(c), "[  1 -20 300]");
}

TEST(Print, OptionsAreTheThreads) {
  xp::set_printoptions({.precision = 2});
  int elsewhere = 0;
  std::thread([&] { elsewhere = xp::get_printoptions().precision; }).join();
  EXPECT_EQ(elsewhere, 8);
  EXPECT_EQ(xp::array({0.12345}).str(), "array([0.12], dtype=float64, device='cpu')");
  xp::set_printoptions({.precision = 8});
  EXPECT_THROW(xp::set_printoptions({.threshold = 5, .floatmode = "short"}), ValueError);
  EXPECT_THROW(xp::set_printoptions({.sign = 'x'}), ValueError);
  EXPECT_THROW(xp::set_printoptions({.precision = -1}), ValueError);
  EXPECT_EQ(xp::get_printoptions().threshold, 1000);
}

}  // namespace
}  // namespace rensa
