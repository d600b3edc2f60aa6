// The array routines as a table of calls, from routines.def: what the coverage test runs on small
// operands and benchmarks/array_routines on large ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::testing {

/// The operands that routines.def names, and the table over them.
class RoutineTable {
 public:
  /// Vectors of `n` elements (a multiple of 8), matrices of r x r and of t x t, on `device`. Files
  /// are written as `path` with an ending.
  RoutineTable(std::int64_t n, std::int64_t r, std::int64_t t, Device device, std::string path);

  struct Row {
    const char* name;
    bool timed;
    std::function<void()> call;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void fill_rows();
  std::string file(const char* ending) const { return path_ + ending; }

  std::int64_t n, r, t;
  Device device;
  std::string path_, bytes;
  Array x, y, z, g, o, a, b, c, i, u, k, l, w, v, j, p, q, m, s, e, f;
  std::vector<Row> rows_;
};

}  // namespace rensa::testing
