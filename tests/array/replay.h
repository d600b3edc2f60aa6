// Replays the calls that a generator of tests/answers wrote down with NumPy's answers:
// on every device, the operands C-contiguous and in another layout.
#pragma once

#include <fstream>
#include <functional>
#include <map>

#include "tests/array/arrays.h"
#include "tests/optional_parts.h"

namespace rensa::testing {

/// One call: operands, attributes and the results that NumPy gave.
struct Call {
  std::string routine;
  std::map<std::string, std::string> attributes;
  std::vector<Array> in;        // numbers stand as 0-d arrays
  std::vector<Scalar> numbers;  // of the same places; 0 for arrays
  Device device;

  bool has(const std::string& key) const { return attributes.count(key) != 0; }
  const std::string& text(const std::string& key) const { return attributes.at(key); }
  /// axis=1, or `otherwise` where the call has no such attribute.
  std::int64_t integer(const std::string& key, std::int64_t otherwise = 0) const {
    return has(key) ? std::stoll(text(key)) : otherwise;
  }
  int axis(int otherwise = -1) const { return static_cast<int>(integer("axis", otherwise)); }
  bool flag(const std::string& key) const { return integer(key) != 0; }
  double real(const std::string& key, double otherwise = 0) const {
    return has(key) ? std::stod(text(key)) : otherwise;
  }
  /// shape=2,3; "-" is the empty list.
  std::vector<std::int64_t> integers(const std::string& key) const {
    std::vector<std::int64_t> values;
    if (!has(key) || text(key) == "-") return values;
    std::istringstream stream(text(key));
    for (std::string part; std::getline(stream, part, ',');) values.push_back(std::stoll(part));
    return values;
  }
  Shape shape(const std::string& key) const {
    Shape shape;
    for (std::int64_t extent : integers(key)) shape.push_back(extent);
    return shape;
  }
};
using Routines = std::map<std::string, std::function<std::vector<Array>(const Call&)>>;

/// The values of `a` in memory of another order: 1 is Fortran's, 2 every second element backwards.
inline Array relaid(const Array& a, int layout) {
  if (layout == 0 || a.ndim() == 0) return a;
  Array view;
  if (layout == 1) {
    Shape reversed;
    for (int i = a.ndim(); i-- > 0;) reversed.push_back(a.shape()[i]);
    view = xp::empty(reversed, a.dtype(), a.device()).transpose();
  } else {
    Shape wide = a.shape();
    wide[a.ndim() - 1] = 2 * wide[a.ndim() - 1];
    view = xp::zeros(wide, a.dtype(), a.device())[{ellipsis, Slice(none, none, -2)}];
  }
  view.assign(a);
  return view;
}

inline Call read_call(const std::string& line, Device device, int layout,
                      std::vector<Array>* want) {
  Call call;
  call.device = device;
  std::istringstream stream(line);
  stream >> call.routine;
  std::string word;
  for (; stream >> word && word != "|";) {
    std::size_t equals = word.find('=');
    call.attributes[word.substr(0, equals)] = word.substr(equals + 1);
  }
  for (; stream >> word && word != "|";) {
    Scalar number = 0;
    Array array;
    if (word.find(':') != word.npos) {
      array = relaid(read_array(word, device), layout);
    } else {
      std::string value = word.substr(1);
      if (word[0] == 'b') number = value == "1";
      else if (word[0] == 'i') number = std::stoll(value);
      else number = std::stod(value);
      array = xp::full({}, number, device);
    }
    call.in.push_back(array);
    call.numbers.push_back(number);
  }
  for (; stream >> word && word != "raises";) want->push_back(read_array(word, cpu()));
  return call;
}

/// Runs every line of tests/answers/`file`. `closeness` says how near a result has to be (the
/// default: a few roundings of its dtype). A line that ends in "raises" has to throw an Error.
/// Fails when fewer than `at_least` lines are there, and after 20 failures.
inline void replay(const std::string& file, const Routines& routines, int at_least,
                   std::function<Closeness(const Call&, Dtype)> closeness = nullptr) {
  std::ifstream stream(testing::data_file(file));
  int count = 0, failures = 0;
  for (std::string line; std::getline(stream, line) && failures < 20; ++count) {
    if (quick() && count % 4 != 0) continue;
    for (Device device : test_devices()) {
      for (int layout : {0, 1 + count % 2}) {
        std::vector<Array> want;
        Call call = read_call(line, device, layout, &want);
        SCOPED_TRACE(line.substr(0, 2000) + " on " + device.str() + ", layout " +
                     std::to_string(layout));
        auto routine = routines.find(call.routine);
        ASSERT_NE(routine, routines.end()) << "no such routine in the test's table";
        std::vector<Array> got;
        bool raised = false, raises = line.ends_with("| raises");
        try {
          got = routine->second(call);
          if (device.is_cuda()) cuda::synchronize(device);  // throws what the device has found
        } catch (const Error& e) {
          if (left_out(e.what())) continue;
          raised = true;
          EXPECT_TRUE(raises) << e.what();
        }
        bool good = raised == raises && (raised || got.size() == want.size());
        EXPECT_TRUE(good) << "results: " << got.size() << ", wanted: " << want.size();
        for (std::size_t i = 0; i < want.size() && good; ++i) {
          Dtype dtype = want[i].dtype();
          Closeness near{tolerance(dtype), 8 * tolerance(dtype), false};
          if (closeness) near = closeness(call, dtype);
          auto match = matches(got[i].to(cpu()), want[i], near);
          EXPECT_TRUE(match) << "result " << i;
          EXPECT_EQ(got[i].device(), device);
          good = static_cast<bool>(match);
        }
        failures += !good;
      }
    }
  }
  EXPECT_GE(count, at_least) << file << " is not the file that its script writes";
}

}  // namespace rensa::testing
