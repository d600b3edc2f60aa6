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
  std::ifstream file(RENSA_TEST_DATA "/numpy_reprs.txt");
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

}  // namespace
}  // namespace rensa
