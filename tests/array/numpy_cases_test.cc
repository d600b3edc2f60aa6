// Replays what NumPy answered (tests/answers/make_numpy_cases.py): results, dtypes and shapes.
#include <fstream>
#include <map>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::Closeness;
using testing::read_array;

const std::map<std::string, Ufunc>& ufuncs() {
  static const std::map<std::string, Ufunc> table = [] {
    std::map<std::string, Ufunc> by_name;
    for (Ufunc ufunc : all_ufuncs()) by_name[ufunc_info(ufunc).name] = ufunc;
    return by_name;
  }();
  return table;
}

Scalar read_number(const std::string& text) {
  std::string value = text.substr(1);
  if (text[0] == 'b') return value == "1";
  if (text[0] == 'i') return std::stoll(value);
  return std::stod(value);
}

bool is_number(const std::string& text) { return text.find(':') == text.npos; }

// A line of the file: "sum/0,2/1" with its result and operands.
struct Case {
  std::string name, axes, keepdims, result;
  std::vector<std::string> operands;
};

Case read_case(const std::string& line) {
  Case c;
  std::istringstream stream(line);
  std::string head;
  stream >> head >> c.result;
  std::istringstream parts(head);
  std::getline(parts, c.name, '/');
  std::getline(parts, c.axes, '/');
  std::getline(parts, c.keepdims, '/');
  for (std::string operand; stream >> operand;) c.operands.push_back(operand);
  return c;
}

Array run_elementwise(Ufunc f, const Case& c, Device device) {
  std::vector<Array> arrays(c.operands.size());
  std::vector<xp::ElementwiseArgument> arguments;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const std::string& text = c.operands[i];
    if (is_number(text)) {
      arguments.emplace_back(read_number(text));
    } else {
      arrays[i] = read_array(text, device);
      arguments.emplace_back(arrays[i]);
    }
  }
  switch (arguments.size()) {
    case 1: return xp::elementwise(f, {arguments[0]});
    case 2: return xp::elementwise(f, {arguments[0], arguments[1]});
    default: return xp::elementwise(f, {arguments[0], arguments[1], arguments[2]});
  }
}

Axes read_axes(const std::string& text) {
  if (text == "all") return {};
  std::size_t comma = text.find(',');
  if (comma == text.npos) return std::stoi(text);
  return {std::stoi(text), std::stoi(text.substr(comma + 1))};
}

Array run_reduction(const Case& c, const Array& a) {
  using F = Array (*)(const Array&, const Axes&, bool);
  static const std::map<std::string, F> table = {
      {"sum", xp::sum}, {"prod", xp::prod}, {"mean", xp::mean}, {"max", xp::max},
      {"min", xp::min}, {"any", xp::any},   {"all", xp::all}};
  bool keepdims = c.keepdims == "1";
  if (table.count(c.name)) return table.at(c.name)(a, read_axes(c.axes), keepdims);
  return (c.name == "argmax" ? F(xp::argmax) : F(xp::argmin))(a, read_axes(c.axes), keepdims);
}

Array run_case(const Case& c, Device device) {
  auto f = ufuncs().find(c.name);
  if (f != ufuncs().end()) return run_elementwise(f->second, c, device);
  Array a = read_array(c.operands.at(0), device);
  if (c.name == "astype") return a.astype(parse_dtype(c.axes));
  if (c.name == "matmul") return xp::matmul(a, read_array(c.operands.at(1), device));
  if (c.name == "dot") return xp::dot(a, read_array(c.operands.at(1), device));
  return run_reduction(c, a);
}

Closeness closeness(const Case& c, Dtype dtype) {
  bool elementwise = ufuncs().count(c.name) != 0;
  double rtol = testing::tolerance(dtype);
  // Which zero a maximum of two gives is left open.
  bool order = c.name == "maximum" || c.name == "minimum" || c.name == "fmax" || c.name == "fmin" ||
               c.name == "clip";
  return {rtol, elementwise ? std::numeric_limits<float>::denorm_min() : 8 * rtol,
          elementwise && !order};
}

TEST(NumpyCases, Agree) {
  std::ifstream file(testing::data_file("numpy_cases.txt"));
  int count = 0, failures = 0;
  for (std::string line; std::getline(file, line) && failures < 20; ++count) {
    if (testing::quick() && count % 4 != 0) continue;
    Case c = read_case(line);
    for (Device device : testing::test_devices()) {
      SCOPED_TRACE(line);
      Array want = read_array(c.result, cpu());
      Array got = run_case(c, device);
      bool same = got.device() == device &&
                  testing::matches(got.to(cpu()), want, closeness(c, want.dtype()));
      EXPECT_TRUE(testing::matches(got.to(cpu()), want, closeness(c, want.dtype())));
      failures += !same;
    }
  }
  EXPECT_GT(count, 3000) << "the file is not the one that the script writes";
}

}  // namespace
}  // namespace rensa
