// Arrays as text, against numpy.array_repr.
#include <fstream>

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
      std::string text = a.str();
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
  stream << xp::array(true);
  EXPECT_EQ(stream.str(), "array(True, dtype=bool, device='cpu')");
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

}  // namespace
}  // namespace rensa
