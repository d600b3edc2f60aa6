// Copies on the CPU: transpositions by squares with ragged borders, runs by vectors, and elements
// that stand for a whole row.
#include "rensa/backend/cpu/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "rensa/array/routines.h"

namespace rensa::testing {
namespace {

const char* bytes_of(const Array& a) { return static_cast<const char*>(a.data()); }

// All bytes differ from their neighbours, whatever the dtype.
Array counted_bytes(const Shape& shape, Dtype dtype) {
  Array a = xp::empty(shape, dtype, cpu());
  auto* bytes = static_cast<unsigned char*>(a.data());
  for (std::int64_t i = 0; i < a.nbytes(); ++i) {
    bytes[i] = static_cast<unsigned char>((i * 167 + i / 251) % 256);
  }
  return a;
}

TEST(CpuCopy, TransposesEverySize) {
  for (Dtype dtype : {uint8, float16, float32, float64, complex128}) {
    auto size = static_cast<std::size_t>(itemsize(dtype));
    for (std::int64_t rows : {1, 2, 4, 7, 8, 15, 16, 17, 63, 64, 65, 130}) {
      for (std::int64_t columns : {1, 3, 8, 16, 31, 64, 67, 200}) {
        // A part of a wider array, so that rows of `in` are not aligned to one another.
        Array whole = counted_bytes({columns, rows + 3}, dtype);
        Array a = whole[{Slice(), Slice(1, rows + 1)}];
        Array t = a.T().copy();
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            const char* want = bytes_of(whole) + (j * (rows + 3) + i + 1) * itemsize(dtype);
            const char* got = bytes_of(t) + (i * columns + j) * itemsize(dtype);
            ASSERT_EQ(std::memcmp(want, got, size), 0) << dtype_name(dtype) << " (" << rows << ", "
                                                       << columns << ") at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(CpuCopy, RunsByVectorsStayInBounds) {
  std::vector<char> in(9000), out(9000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * 31 % 127 + 1);
  for (std::int64_t n : {0, 1, 63, 64, 65, 127, 2047, 2048, 2049, 8191}) {
    for (std::int64_t from : {0, 1, 12, 64}) {
      for (std::int64_t to : {1, 16, 60}) {
        std::fill(out.begin(), out.end(), '\0');
        host::copy_by_vectors(out.data() + to, in.data() + from, n);
        EXPECT_EQ(std::memcmp(out.data() + to, in.data() + from, static_cast<std::size_t>(n)), 0);
        EXPECT_EQ(out[static_cast<std::size_t>(to - 1)], '\0') << n;
        EXPECT_EQ(out[static_cast<std::size_t>(to + n)], '\0') << n;
      }
    }
  }
}

TEST(CpuCopy, OneElementStandsForARow) {
  for (Dtype dtype : {bool_, int8, float16, float32, complex128}) {
    for (std::int64_t columns : {2, 5, 300, 3000}) {
      Array column = (xp::arange(3, float64) + 1).reshape({3, 1}).astype(dtype);
      Array want = xp::empty({3, columns}, dtype);
      for (std::int64_t i = 0; i < 3; ++i) want[i].fill(column[{i, 0}].item_scalar());
      Array ones = xp::ones({3, columns}, dtype);
      EXPECT_TRUE(xp::array_equal(column * ones, want)) << dtype_name(dtype) << " " << columns;
      EXPECT_TRUE(xp::array_equal(ones * column, want)) << dtype_name(dtype) << " " << columns;
    }
  }
}

}  // namespace
}  // namespace rensa::testing
