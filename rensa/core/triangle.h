// Where the triangles of a matrix begin and end, for the host compiler and for nvcc.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

/// The elements of a matrix whose column - row is at most k (`lower`) or at least k.
struct TriangleShape {
  bool lower;
  long long k, rows, columns;

  RENSA_FN long long clamped(long long column) const {
    return column < 0 ? 0 : column > columns ? columns : column;
  }
  /// The columns of a row: [begin(row), end(row)).
  RENSA_FN long long begin(long long row) const { return lower ? 0 : clamped(row + k); }
  RENSA_FN long long end(long long row) const { return lower ? clamped(row + k + 1) : columns; }
  /// The elements in front of a row: row = rows gives all.
  RENSA_FN long long before(long long row) const {
    return lower ? sum_of_ends(row, k + 1) : row * columns - sum_of_ends(row, k);
  }

 private:
  /// clamped(shift) + clamped(shift + 1) + ... for `row` terms.
  RENSA_FN long long sum_of_ends(long long row, long long shift) const {
    long long first = shift < 0 ? -shift : 0;  // the terms up to here are 0
    if (first >= row) return 0;
    long long full = columns - shift;  // the terms from here on are `columns`
    full = full < first ? first : full > row ? row : full;
    return (full - first) * (first + full - 1 + 2 * shift) / 2 + (row - full) * columns;
  }
};

}  // namespace rensa
