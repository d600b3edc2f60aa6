// Gather, scatter and sorting of the CPU backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "rensa/core/error.h"
#include "rensa/operations/indexing/indexing.h"
#include "rensa/operations/sort/sort.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::testing {
namespace {

TestArray indices_of(const Shape& shape, const std::vector<int>& values, Dtype dtype = int64,
                     Layout layout = Layout::contiguous) {
  TestArray indices(shape, dtype, layout);
  for (std::size_t i = 0; i < values.size(); ++i) {
    indices.set(static_cast<std::int64_t>(i), values[i]);
  }
  return indices;
}

void take(const TestArray& in, const TestArray& indices, const TestArray& out) {
  operations::Gather op;
  op.by.count = 1;
  op.by.indices[0] = indices.operand();
  op.by.list_shape = indices.view().shape;
  op.in = in.operand();
  op.out = out.operand();
  op.run_cpu();
}

void put(bool add, const TestArray& in, const TestArray& indices, const TestArray& out) {
  operations::Scatter op("scatter",
                         add ? operations::ScatterMode::add : operations::ScatterMode::assign);
  op.by.count = 1;
  op.by.indices[0] = indices.operand();
  op.by.list_shape = indices.view().shape;
  op.in = in.operand();
  op.out = out.operand();
  op.run_cpu();
}

TEST(CpuGather, EveryDtypeAndLayout) {
  for (Dtype d : all_dtypes()) {
    for (Dtype index_dtype : {int64, int32, int8, uint8, uint64}) {
      for (Layout layout : kLayouts) {
        bool is_signed = dtype_kind(index_dtype) == 'i';
        TestArray in({5, 3, 2}, d, layout), out({2, 3, 3, 2}, d, layout);
        TestArray indices = indices_of({2, 3}, {4, 0, 2, 2, is_signed ? -1 : 1, is_signed ? -5 : 3},
                                       index_dtype, layout);
        in.fill(1);
        take(in, indices, out);
        for (std::int64_t i = 0; i < out.size(); ++i) {
          auto row = static_cast<std::int64_t>(indices.real(i / 6));
          ASSERT_EQ(out.get(i), in.get((row < 0 ? row + 5 : row) * 6 + i % 6)) << dtype_name(d);
        }
      }
    }
  }
}

TEST(CpuGather, EdgesOfShapes) {
  TestArray vector({4}, float32), one({}, float32);
  vector.fill(1);
  take(vector, indices_of({}, {2}), one);
  EXPECT_EQ(one.real(0), vector.real(2));
  TestArray none({0}, float32);
  take(vector, indices_of({0}, {}), none);
  TestArray wide({4, 0}, float32), taken({2, 0}, float32);
  take(wide, indices_of({2}, {3, 1}), taken);
}

TEST(CpuGather, OutOfRange) {
  TestArray in({10, 2}, float32), out({2, 2}, float32);
  out.fill(1);
  std::vector<char> before = out.bytes();
  for (int bad : {10, 12, -11}) {
    try {
      take(in, indices_of({2}, {0, bad}), out);
      FAIL();
    } catch (const IndexError& e) {
      EXPECT_EQ(std::string(e.what()), "getitem: index " + std::to_string(bad) +
                                           " is out of bounds for axis 0 with size 10");
    }
  }
  EXPECT_EQ(out.bytes(), before);
}

TEST(CpuScatter, AssignsAndAdds) {
  for (bool add : {false, true}) {
    for (Dtype d : {float32, float16, int16, int64, complex64}) {
      for (Layout layout : kLayouts) {
        TestArray in({6, 40}, d), out({4, 40}, d, layout), before({4, 40}, d);
        in.fill(1);
        out.fill(2);
        before.fill(2);
        TestArray indices = indices_of({6}, {3, 0, 3, -1, 1, 0});
        put(add, in, indices, out);
        for (std::int64_t row = 0; row < 4; ++row) {
          for (std::int64_t j = 0; j < 40; ++j) {
            std::complex<double> want = before.get(row * 40 + j);
            for (std::int64_t i = 0; i < 6; ++i) {
              if ((static_cast<int>(indices.real(i)) + 4) % 4 != row) continue;
              want = add ? want + in.get(i * 40 + j) : in.get(i * 40 + j);
            }
            ASSERT_EQ(out.get(row * 40 + j), want) << dtype_name(d);
          }
        }
      }
    }
  }
}

TEST(CpuScatter, OutOfRangeChangesNothing) {
  TestArray in({2, 3}, float32), out({4, 3}, float32);
  in.fill(1);
  out.fill(2);
  std::vector<char> before = out.bytes();
  EXPECT_THROW(put(true, in, indices_of({2}, {0, 4}), out), IndexError);
  EXPECT_EQ(out.bytes(), before);
}

TEST(CpuScatter, SumsAreRepeatable) {
  TestArray in({500, 3000}, float32);
  std::mt19937 random(1);
  for (std::int64_t i = 0; i < in.size(); ++i) in.set(i, static_cast<double>(random()) * 1e-7);
  std::vector<int> rows;
  for (int i = 0; i < 500; ++i) rows.push_back(i * i % 7);
  std::vector<char> first;
  for_thread_counts([&](int threads) {
    TestArray out({7, 3000}, float32);
    out.fill(1);
    put(true, in, indices_of({500}, rows), out);
    if (threads == 1) first = out.bytes();
    EXPECT_EQ(out.bytes(), first);
  });
}

TEST(CpuArgsort, IsStable) {
  for (Dtype d : {uint32, uint64}) {
    for (std::int64_t n : {0, 1, 2, 1000, 5000}) {
      TestArray keys({1, n}, d), order({n}, int64);
      std::mt19937 random(7);
      for (std::int64_t i = 0; i < n; ++i) keys.set(i, static_cast<double>(random() % 50) * 8e7);
      operations::Sort op("argsort");
      op.in = keys.operand();
      op.order = order.operand();
      op.run_cpu();
      std::vector<std::int64_t> want(static_cast<std::size_t>(n));
      std::iota(want.begin(), want.end(), 0);
      std::stable_sort(want.begin(), want.end(),
                       [&](std::int64_t a, std::int64_t b) { return keys.real(a) < keys.real(b); });
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(order.real(i), static_cast<double>(want[static_cast<std::size_t>(i)]));
      }
    }
  }
}

}  // namespace
}  // namespace rensa::testing
