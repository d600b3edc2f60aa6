// The layout of a product is checked element by element: where it says that each one lies is where
// the views' own strides say it does.
#include "rensa/operations/matmul/blas_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "rensa/core/error.h"

namespace rensa {
namespace {

/// A view on `data` with the given strides in elements.
ArrayView view_of(double* data, const Shape& shape, const Shape& strides) {
  ArrayView view;
  view.data = reinterpret_cast<char*>(data);
  view.dtype = Dtype::float64;
  view.shape = shape;
  view.strides = strides;
  for (std::int64_t& stride : view.strides) stride *= 8;
  return view;
}

struct Case {
  const char* name;
  Shape a_shape, a_strides, b_shape, b_strides, c_shape, c_strides;
  std::int64_t batch, outer;  // what the layout should make of the leading axes
};

const Case kCases[] = {
    {"plain", {2, 3}, {3, 1}, {3, 4}, {4, 1}, {2, 4}, {4, 1}, 1, 1},
    {"padded rows", {2, 3}, {5, 1}, {3, 4}, {9, 1}, {2, 4}, {7, 1}, 1, 1},
    {"transposed a", {2, 3}, {1, 2}, {3, 4}, {4, 1}, {2, 4}, {4, 1}, 1, 1},
    {"transposed b", {2, 3}, {3, 1}, {3, 4}, {1, 3}, {2, 4}, {4, 1}, 1, 1},
    {"both transposed, padded", {2, 3}, {1, 6}, {3, 4}, {1, 8}, {2, 4}, {4, 1}, 1, 1},
    {"one row with a strange stride", {1, 3}, {0, 1}, {3, 1}, {1, 77}, {1, 1}, {5, 3}, 1, 1},
    {"strided row as a column", {1, 3}, {1, 4}, {3, 2}, {2, 1}, {1, 2}, {2, 1}, 1, 1},
    {"batch", {5, 2, 3}, {6, 3, 1}, {5, 3, 4}, {12, 4, 1}, {5, 2, 4}, {8, 4, 1}, 5, 1},
    {"one b, folded", {5, 2, 3}, {6, 3, 1}, {5, 3, 4}, {0, 4, 1}, {5, 2, 4}, {8, 4, 1}, 1, 1},
    {"one b, rows with a pitch",
     {5, 1, 3},
     {7, 3, 1},
     {5, 3, 4},
     {0, 4, 1},
     {5, 1, 4},
     {9, 4, 1},
     1,
     1},
    {"one b, windows over a row",
     {5, 1, 3},
     {1, 3, 1},
     {5, 3, 4},
     {0, 4, 1},
     {5, 1, 4},
     {9, 4, 1},
     5,
     1},
    {"one b, a transposed", {5, 2, 3}, {6, 1, 2}, {5, 3, 4}, {0, 4, 1}, {5, 2, 4}, {8, 4, 1}, 5, 1},
    {"one a", {5, 2, 3}, {0, 3, 1}, {5, 3, 4}, {12, 4, 1}, {5, 2, 4}, {8, 4, 1}, 5, 1},
    {"two axes that merge",
     {3, 5, 2, 3},
     {30, 6, 3, 1},
     {3, 5, 3, 4},
     {60, 12, 4, 1},
     {3, 5, 2, 4},
     {40, 8, 4, 1},
     15,
     1},
    {"two axes that do not",
     {3, 5, 2, 3},
     {6, 18, 3, 1},
     {3, 5, 3, 4},
     {60, 12, 4, 1},
     {3, 5, 2, 4},
     {40, 8, 4, 1},
     5,
     3},
    {"an axis backwards", {5, 2, 3}, {-6, 3, 1}, {5, 3, 4}, {12, 4, 1}, {5, 2, 4}, {8, 4, 1}, 1, 5},
    {"an axis of one",
     {1, 5, 2, 3},
     {99, 6, 3, 1},
     {1, 5, 3, 4},
     {0, 12, 4, 1},
     {1, 5, 2, 4},
     {3, 8, 4, 1},
     5,
     1},
};

using Matrices = std::set<std::vector<const double*>>;

/// The elements' addresses, matrix by matrix and row by row, as the strides of a view say.
Matrices matrices_of(const double* data, const Shape& shape, const Shape& strides) {
  Matrices matrices;
  int ndim = shape.ndim();
  std::int64_t size = shape[ndim - 2] * shape[ndim - 1];
  for (std::int64_t start = 0; start < shape.total(); start += size) {
    std::vector<const double*> matrix;
    for (std::int64_t i = start; i < start + size; ++i) {
      std::int64_t rest = i, offset = 0;
      for (int axis = ndim - 1; axis >= 0; --axis) {
        offset += rest % shape[axis] * strides[axis];
        rest /= shape[axis];
      }
      matrix.push_back(data + offset);
    }
    matrices.insert(matrix);
  }
  return matrices;
}

/// The same as a layout says, of its a (0), b (1) or c (2); `size` elements make a matrix, for a
/// taller product has several.
Matrices matrices_of(const double* data, const MatmulLayout& layout, int operand,
                     std::int64_t size) {
  const std::int64_t rows[] = {layout.m, layout.k, layout.m},
                     columns[] = {layout.k, layout.n, layout.n},
                     ld[] = {layout.a_ld, layout.b_ld, layout.c_ld},
                     stride[] = {layout.a_stride, layout.b_stride, layout.c_stride};
  const bool transposed[] = {layout.a_transposed, layout.b_transposed, false};
  Matrices matrices;
  std::vector<const double*> matrix;
  for (std::int64_t o = 0; o < layout.outer_count; ++o) {
    std::int64_t offsets[3];
    layout.offsets(o, offsets);
    for (std::int64_t b = 0; b < layout.batch; ++b) {
      const double* start = data + offsets[operand] / 8 + b * stride[operand];
      for (std::int64_t i = 0; i < rows[operand]; ++i) {
        for (std::int64_t j = 0; j < columns[operand]; ++j) {
          matrix.push_back(start +
                           (transposed[operand] ? j * ld[operand] + i : i * ld[operand] + j));
          if (static_cast<std::int64_t>(matrix.size()) < size) continue;
          matrices.insert(matrix);
          matrix.clear();
        }
      }
    }
  }
  return matrices;
}

TEST(MatmulLayout, AddressesEveryElement) {
  std::vector<double> memory(4000);
  for (const Case& c : kCases) {
    double* data = memory.data() + 2000;
    ArrayView a = view_of(data, c.a_shape, c.a_strides), b = view_of(data, c.b_shape, c.b_strides),
              out = view_of(data, c.c_shape, c.c_strides);
    EXPECT_TRUE(is_matmul_operand(a) && is_matmul_operand(b)) << c.name;
    MatmulLayout layout = matmul_layout(a, b, out);
    EXPECT_EQ(layout.batch, c.batch) << c.name;
    EXPECT_EQ(layout.outer_count, c.outer) << c.name;
    const Shape* shapes[] = {&c.a_shape, &c.b_shape, &c.c_shape};
    const Shape* strides[] = {&c.a_strides, &c.b_strides, &c.c_strides};
    for (int i = 0; i < 3; ++i) {
      const Shape& shape = *shapes[i];
      std::int64_t size = shape[shape.ndim() - 2] * shape[shape.ndim() - 1];
      EXPECT_EQ(matrices_of(data, layout, i, size), matrices_of(data, shape, *strides[i]))
          << c.name << ", operand "
          << "abc"[i];
    }
  }
}

TEST(MatmulLayout, TakesEmptyOperands) {
  auto layout = [](const Shape& a, const Shape& b, const Shape& c) {
    return matmul_layout(view_of(nullptr, a, contiguous_strides(a, 1)),
                         view_of(nullptr, b, contiguous_strides(b, 1)),
                         view_of(nullptr, c, contiguous_strides(c, 1)));
  };
  EXPECT_TRUE(layout({0, 3}, {3, 4}, {0, 4}).empty());
  EXPECT_TRUE(layout({2, 3}, {3, 0}, {2, 0}).empty());
  EXPECT_TRUE(layout({0, 2, 3}, {0, 3, 4}, {0, 2, 4}).empty());
  MatmulLayout nothing_to_sum = layout({2, 0}, {0, 4}, {2, 4});
  EXPECT_FALSE(nothing_to_sum.empty());
  EXPECT_EQ(nothing_to_sum.k, 0);
}

TEST(MatmulLayout, RefusesWhatTheLibrariesCannotExpress) {
  double data[100];
  ArrayView good = view_of(data, {3, 3}, {3, 1}), gaps = view_of(data, {3, 3}, {12, 2}),
            overlapping = view_of(data, {3, 3}, {1, 1}), column = view_of(data, {3, 3}, {1, 3});
  EXPECT_FALSE(is_matmul_operand(gaps));
  EXPECT_FALSE(is_matmul_operand(overlapping));
  EXPECT_THROW(matmul_layout(gaps, good, good), NotImplementedError);
  EXPECT_THROW(matmul_layout(good, overlapping, good), NotImplementedError);
  EXPECT_THROW(matmul_layout(good, good, column), NotImplementedError);
}

}  // namespace
}  // namespace rensa
