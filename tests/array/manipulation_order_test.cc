// How results lie in memory: as NumPy's do, which tests/answers/make_layout_cases.py wrote down.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

std::vector<std::string> words(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Shape numbers(const std::string& text) {
  Shape result;
  for (const std::string& number : words(text, ',')) result.push_back(std::stoll(number));
  return result;
}

/// Of "2,3,4:2,0,1s": extents, the axes from the slowest to the fastest, s where the elements are
/// every second one.
Array operand(const std::string& spec, Device device) {
  auto colon = spec.find(':');
  bool sliced = spec.back() == 's';
  Shape shape = numbers(spec.substr(0, colon)), order = numbers(spec.substr(colon + 1)), stored;
  Shape back = order;
  for (int i = 0; i < order.ndim(); ++i) {
    stored.push_back(shape[static_cast<int>(order[i])]);
    back[static_cast<int>(order[i])] = i;
  }
  if (sliced) stored[stored.ndim() - 1] *= 2;
  Array a = xp::arange(stored.total(), float32, device).reshape(stored);
  if (sliced) a = a[{ellipsis, Slice(0, none, 2)}];
  return a.transpose(back);
}

Array call(const std::string& name, const std::vector<Array>& x) {
  if (name == "negative") return -x[0];
  if (name == "add") return x[0] + x[1];
  if (name == "where") return xp::where(x[0] != 0, x[1], x[2]);
  return xp::concatenate(x, 1);
}

Shape steps(const Array& a) {
  Shape result;
  for (std::int64_t stride : a.strides()) result.push_back(stride / itemsize(a.dtype()));
  return result;
}

TEST(ManipulationOrder, ResultsLieAsNumPys) {
  for (Device device : testing::test_devices()) {
    std::ifstream file(testing::data_file("numpy_layouts.txt"));
    int count = 0;
    for (std::string line; std::getline(file, line); ++count) {
      SCOPED_TRACE(line);
      std::vector<std::string> parts = words(line, ' ');
      std::vector<Array> x, plain;
      for (std::size_t k = 1; k + 1 < parts.size(); ++k) {
        x.push_back(operand(parts[k], device));
        plain.push_back(x.back().ascontiguous());
      }
      Array got = call(parts[0], x);
      EXPECT_EQ(steps(got), numbers(parts.back()));
      EXPECT_TRUE(xp::array_equal(got, call(parts[0], plain)));
    }
    EXPECT_GT(count, 200);
  }
}

}  // namespace
}  // namespace rensa
