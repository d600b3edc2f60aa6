// Arrays that others have computed, as the scripts of tests/answers write them: "values", all
// elements behind one another as float32, and "layout", a line for each array: its name, f, i or b
// for what it was of, its shape.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/io.h"
#include "tests/testing.h"

namespace rensa::testing {

/// By their names, in the file's order: float64, int32 or bool, on the CPU.
inline std::vector<std::pair<std::string, Array>> recorded_arrays(const std::string& file_name) {
  xp::NpzFile file = xp::load_npz(data_file(file_name));
  std::string layout;
  for (auto byte : file["layout"].to_vector<std::uint8_t>()) layout += static_cast<char>(byte);
  Array values = file["values"];
  std::vector<std::pair<std::string, Array>> arrays;
  std::int64_t begin = 0;
  std::istringstream lines(layout);
  for (std::string name, kind, extents; std::getline(lines, name, '\t');) {
    std::getline(lines, kind, '\t'), std::getline(lines, extents);
    Shape shape;
    std::istringstream numbers(extents);
    for (std::int64_t n; numbers >> n;) shape.push_back(n);
    std::int64_t end = begin + shape.total();
    Dtype dtype = kind == "f" ? Dtype::float64 : kind == "i" ? Dtype::int32 : Dtype::bool_;
    arrays.emplace_back(name, values[Slice(begin, end)].astype(dtype).reshape(shape));
    begin = end;
  }
  EXPECT_EQ(begin, values.size());
  return arrays;
}

}  // namespace rensa::testing
