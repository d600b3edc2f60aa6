// Indexing: slices as Python's, views, gathers, scatters and masks.
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class Indexing : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, Indexing, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// The elements of range(n)[start:stop:step], walked one by one as Python's definition says.
V sliced(int n, int start, int stop, int step) {
  auto clip = [&](int i) {
    if (i < 0) i += n;
    return step > 0 ? std::min(std::max(i, 0), n) : std::min(std::max(i, -1), n - 1);
  };
  V result;
  for (int i = clip(start); step > 0 ? i < clip(stop) : i > clip(stop); i += step) {
    result.push_back(i);
  }
  return result;
}

TEST_P(Indexing, SlicesAsPython) {
  for (int n : {0, 1, 5}) {
    Array a = xp::arange(n);
    for (int start = -7; start <= 7; ++start) {
      for (int stop = -7; stop <= 7; ++stop) {
        for (int step : {-3, -1, 1, 2}) {
          EXPECT_EQ(values(a[Slice(start, stop, step)]), sliced(n, start, stop, step))
              << n << ": " << start << " " << stop << " " << step;
        }
      }
    }
  }
  Array a = xp::arange(5);
  EXPECT_EQ(values(a[Slice(2)]), V({0, 1}));
  EXPECT_EQ(values(a[Slice(3, none)]), V({3, 4}));
  EXPECT_EQ(values(a[Slice(none, -3)]), V({0, 1}));
  EXPECT_EQ(values(a[Slice(none, none, -2)]), V({4, 2, 0}));
  EXPECT_THROW(a[Slice(0, 5, 0)], ValueError);
}

TEST_P(Indexing, BasicIndexes) {
  Array a = xp::arange(24).reshape({2, 3, 4});
  EXPECT_EQ(values(a[{1, 2, 3}]), V({23}));
  EXPECT_EQ(Array(a[{1, 2, 3}]).shape(), Shape());
  EXPECT_EQ(values(a[{-1, 0}]), V({12, 13, 14, 15}));
  EXPECT_EQ(values(a[{ellipsis, -1}]), V({3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(values(a[{0, ellipsis, 1}]), V({1, 5, 9}));
  EXPECT_EQ(Array(a[{newaxis, 0, ellipsis, newaxis}]).shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(values(a[{Slice(), Slice(1, 3), Slice(none, none, 3)}]),
            V({4, 7, 8, 11, 16, 19, 20, 23}));
  EXPECT_EQ(Array(a[{0, 1, 2, ellipsis}]).shape(), Shape());
  EXPECT_THROW((a[{0, 0, 0, 0}]), IndexError);
  EXPECT_THROW((a[{ellipsis, ellipsis}]), IndexError);
  std::string text = thrown<IndexError>([&] { a[{0, 3}]; });
  EXPECT_NE(text.find("index 3 is out of range for axis 1"), text.npos) << text;
  EXPECT_THROW(a[-3], IndexError);
}

TEST_P(Indexing, ViewsWriteThrough) {
  Array a = xp::zeros({2, 3}, float32);
  a[{Slice(0, 1), Slice(1, 3)}] = 7;
  a[1] = xp::array({1, 2, 3});
  a[{1, 1}] = a[{0, 1}];
  EXPECT_EQ(values(a), V({0, 7, 7, 1, 7, 3}));
  Array row = a[0];  // a handle to the row; the name can be bound anew
  row = a[1];
  EXPECT_EQ(values(a), V({0, 7, 7, 1, 7, 3}));
  EXPECT_EQ(values(row), V({1, 7, 3}));
  EXPECT_THROW(a[0] = xp::ones({4}), ShapeError);
}

TEST_P(Indexing, GathersRows) {
  Array a = xp::arange(12, float32).reshape({4, 3});
  for (Dtype d : {int8, int32, int64, uint8, uint64}) {
    Array rows = a[xp::array({2, 0, 2}).astype(d)];
    EXPECT_EQ(rows.shape(), Shape({3, 3}));
    EXPECT_EQ(values(rows), V({6, 7, 8, 0, 1, 2, 6, 7, 8}));
  }
  EXPECT_EQ(values(xp::take(a, xp::array({-1}), 0)), V({9, 10, 11}));
  Array grid = a[xp::array({{0, 1}, {3, 2}})];
  EXPECT_EQ(grid.shape(), Shape({2, 2, 3}));
  EXPECT_EQ(values(xp::take(a, xp::array(1), 0)), V({3, 4, 5}));
  EXPECT_EQ(Array(a[xp::zeros({0}, int64)]).shape(), Shape({0, 3}));
  // Strided arrays and index arrays, and every element size.
  EXPECT_EQ(values(xp::take(a.T(), xp::arange(4)[Slice(none, none, 2)], 0)),
            values(a.T()[Slice(none, none, 2)]));
  for (int d = 0; d < kNumDtypes; ++d) {
    Array b = a.astype(static_cast<Dtype>(d));
    EXPECT_EQ(values(xp::take(b, xp::array({3, 1}), 0)),
              values(xp::concatenate({Array(b[Slice(3, 4)]), Array(b[Slice(1, 2)])})));
  }
}

TEST_P(Indexing, GatherErrors) {
  Array a = xp::arange(12).reshape({4, 3});
  EXPECT_THROW(xp::take(a, xp::array({0.5}), 0), DtypeError);
  EXPECT_THROW(xp::take(xp::array(1), xp::array({0}), 0), IndexError);
  EXPECT_THROW(xp::take(xp::zeros({0, 3}), xp::array({0}), 0), IndexError);
  // On a GPU the wait tells.
  for (std::int64_t bad : {std::int64_t{4}, std::int64_t{-5}}) {
    std::string text = thrown<IndexError>([&] {
      xp::take(a, xp::array({std::int64_t{0}, bad}), 0).get();
    });
    EXPECT_NE(text.find("take"), text.npos) << text;
    EXPECT_NE(text.find(std::to_string(bad)), text.npos) << text;
  }
  EXPECT_EQ(values(xp::take(a, xp::array({0}), 0)), V({0, 1, 2}));  // still usable
}

TEST_P(Indexing, ScattersRows) {
  Array a = xp::zeros({4, 2}, float32);
  a[xp::array({3, 0})] = xp::array({{1, 2}, {3, 4}});
  EXPECT_EQ(values(a), V({3, 4, 0, 0, 0, 0, 1, 2}));
  a[xp::array({1, -2})] = 9;
  EXPECT_EQ(values(a), V({3, 4, 9, 9, 9, 9, 1, 2}));
  a[xp::array({0, 1})] = xp::array({5.f, 6.f});
  EXPECT_EQ(values(a), V({5, 6, 5, 6, 9, 9, 1, 2}));
  a[xp::array({0, 1})] = a[Slice(2, 4)];
  EXPECT_EQ(values(a), V({9, 9, 1, 2, 9, 9, 1, 2}));
  EXPECT_THROW(a[xp::array({0})] = xp::ones({3}), ShapeError);
  EXPECT_THROW(xp::zeros({2}, int64)[xp::array({0})] = 0.5, DtypeError);
  EXPECT_THROW(([&] {
                 a[xp::array({4})] = 1;
                 a.get();
               }()),
               IndexError);
}

TEST_P(Indexing, ScatterAdd) {
  Array a = xp::ones({3, 2}, float32);
  xp::scatter_add(a, xp::array({2, 0, 2}), xp::array({{1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(values(a), V({4, 5, 1, 1, 7, 9}));
  Array strided = xp::zeros({4, 4}, float64)[{Slice(none, none, 2), Slice(none, none, -2)}];
  xp::scatter_add(strided, xp::array({1, 1}), xp::array({{1., 2.}, {10., 20.}}));
  EXPECT_EQ(values(strided), V({0, 0, 11, 22}));
}

TEST_P(Indexing, Masks) {
  Array a = xp::arange(6, float32).reshape({2, 3});
  a[a > 3] = 0;
  EXPECT_EQ(values(a), V({0, 1, 2, 3, 0, 0}));
  a[xp::array({true, false})] = 8;
  EXPECT_EQ(values(a), V({8, 8, 8, 3, 0, 0}));
  a[xp::array({false, true})] = xp::array({1, 2, 3});
  EXPECT_EQ(values(a), V({8, 8, 8, 1, 2, 3}));
  EXPECT_THROW(a[xp::ones({3, 2}, bool_)] = 1, IndexError);
  EXPECT_THROW(a[xp::ones({2, 3}, bool_)] = xp::ones({5}), ShapeError);
  EXPECT_THROW(xp::zeros({2}, int32)[xp::ones({2}, bool_)] = 0.5, DtypeError);
}

TEST_P(Indexing, MasksDoNotWait) {
  if (GetParam().is_cpu()) GTEST_SKIP() << "about the waits of a GPU";
  Array a = xp::arange(6, float32);
  std::int64_t before = cuda::sync_count();
  a[a > 3] = 0;
  Array rows = a[xp::array({1, 2})];
  EXPECT_EQ(cuda::sync_count(), before);
}

}  // namespace
}  // namespace rensa
