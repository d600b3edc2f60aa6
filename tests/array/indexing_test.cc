// Indexing: slices as Python's, views, gathers, scatters and masks.
#include "rensa/array/random_basics.h"
#include "rensa/core/thread_pool.h"
#include "tests/array/arrays.h"
#include "tests/num_threads.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

// --- what an index means is known when it is compiled ---
static_assert(std::is_same_v<decltype(Array()[{1, Slice(), newaxis}]), View>);
static_assert(std::is_same_v<decltype(Array()[{1}]), View>);
static_assert(std::is_same_v<decltype(Array()[{Array(), Slice(), 1}]), Selection>);
static_assert(std::is_same_v<decltype(Array()[{1, View(Array())}]), Selection>);
static_assert(std::is_same_v<decltype(Array()[{Array()}]), Selection>);
static_assert(std::is_same_v<decltype(Array()[Array()]), Selection>);

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
  EXPECT_NE(text.find("getitem: index 3 is out of bounds for axis 1 with size 3"), text.npos)
      << text;
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

TEST_P(Indexing, MasksWaitOnceWhereTheCountMatters) {
  if (GetParam().is_cpu()) GTEST_SKIP() << "about the waits of a GPU";
  Array a = xp::arange(6, float32), mask = a > 3, ones = xp::ones({2});
  std::int64_t before = cuda::sync_count();
  a[mask] += 1;
  a[mask] = xp::ones({1});
  EXPECT_EQ(cuda::sync_count(), before);
  Array some = a[mask];
  EXPECT_EQ(cuda::sync_count(), before + 1);
  a[mask] = ones;
  EXPECT_EQ(cuda::sync_count(), before + 2);
}

TEST_P(Indexing, MixedIndexes) {
  Array a = xp::arange(24).reshape({2, 3, 4}), i = xp::array({1, 0}), j = xp::array({2, 3});
  EXPECT_EQ(Array(a[{i, Slice(), j}]).shape(), Shape({2, 3}));
  EXPECT_EQ(values(a[{i, Slice(), j}]), V({14, 18, 22, 3, 7, 11}));
  EXPECT_EQ(Array(a[{Slice(), i, j}]).shape(), Shape({2, 2}));
  EXPECT_EQ(values(a[{0, i, j}]), V({6, 3}));
  EXPECT_EQ(Array(a[{0, Slice(), i}]).shape(), Shape({2, 3}));  // apart: to the front
  EXPECT_EQ(Array(a[{newaxis, i.reshape({2, 1}), ellipsis, -1}]).shape(), Shape({2, 1, 1, 3}));
  EXPECT_EQ(values(a[a % 5 == 0]), V({0, 5, 10, 15, 20}));
  EXPECT_EQ(values(a[{xp::array({false, true}), 2}]), V({20, 21, 22, 23}));
  Array chosen = a[{1, xp::array({true, false, true})}];
  EXPECT_EQ(values(chosen), V({12, 13, 14, 15, 20, 21, 22, 23}));
}

TEST_P(Indexing, SelectionsStandForArrays) {
  Array a = xp::arange(5, float32), i = xp::array({3, 1}), mask = a > 2;
  EXPECT_EQ(values(a[i] + 1), V({4, 2}));
  EXPECT_EQ(values(1 - a[i]), V({-2, 0}));
  EXPECT_EQ(values(a[i] * a[mask]), V({9, 4}));
  EXPECT_EQ(values(a + a[xp::array({0})]), values(a));
  EXPECT_EQ(values(-a[i]), V({-3, -1}));
  EXPECT_EQ(values(a[i] == a[i]), V({1, 1}));
  EXPECT_EQ(values(xp::square(a[i])), V({9, 1}));
  EXPECT_EQ(values(a[i[xp::array({1})]]), V({1}));
  EXPECT_EQ(values(a.reshape({5, 1})[{i[xp::array({1})], 0}]), V({1}));
  a[i] = a[mask];  // elements for elements, not a new meaning for the left side
  EXPECT_EQ(values(a), V({0, 4, 2, 3, 4}));
  a[xp::array({0, 1})] = a[0];
  EXPECT_EQ(values(a), V({0, 0, 2, 3, 4}));
}

TEST_P(Indexing, AugmentedAssignment) {
  Array a = xp::arange(6).reshape({2, 3});
  a[xp::array({1, 1, 0})] +=
      xp::array({{1}, {10}, {100}});  // read, added, assigned: the last stays
  EXPECT_EQ(values(a), V({100, 101, 102, 13, 14, 15}));
  a[{Slice(), xp::array({0, 2})}] -= 100;
  EXPECT_EQ(values(a), V({0, 101, 2, -87, 14, -85}));
  a[a < 0] *= -1;
  a[a > 90] %= xp::array({10});
  EXPECT_EQ(values(a), V({0, 1, 2, 87, 14, 85}));
  a[xp::array({0})] |= 8;
  a[xp::array({0})] &= 9;
  a[xp::array({0})] ^= 1;
  EXPECT_EQ(values(a), V({9, 8, 9, 87, 14, 85}));
  EXPECT_THROW(a[xp::array({0})] /= 2, DtypeError);
  EXPECT_THROW(a[a > 0] += 0.5, DtypeError);
}

TEST_P(Indexing, ErrorsNameTheOperation) {
  Array a = xp::arange(12).reshape({4, 3}), i = xp::array({0, 1});
  auto says = [](const std::string& text, const char* what) {
    EXPECT_NE(text.find(what), text.npos) << text;
  };
  says(thrown<IndexError>([&] {
         Array(a[{i, i, i}]);
       }),
       "getitem: too many indices: the array is 2-dimensional, but 3 were indexed");
  says(thrown<IndexError>([&] { Array(a[{i, xp::arange(3)}]); }), "(2,) and (3,) do not broadcast");
  says(thrown<IndexError>([&] {
         Array(a[{Slice(), xp::ones({4}, bool_)}]);
       }),
       "does not have the extents of");
  says(thrown<IndexError>([&] {
         a[{i, 3}] = 1;
       }),
       "setitem: index 3 is out of bounds for axis 1 with size 3");
  says(thrown<DtypeError>([&] { Array(a[{xp::ones({2}), 0}]); }), "integer dtype");
  says(thrown<ShapeError>([&] { a[{i, 0}] = xp::ones({3}, int64); }), "setitem: ");
  says(thrown<ShapeError>([&] { a[a > 6] = xp::ones({4}, int64); }), "shape (5,)");
  says(thrown<ValueError>([&] {
         xp::scatter_add(a.broadcast_to({2, 4, 3}), i, a);
       }),
       "scatter_add");
  says(thrown<DtypeError>([&] { xp::scatter_max(a.astype(complex64), i, 1); }), "scatter_max");
  says(thrown<ShapeError>([&] { xp::take_along_axis(a, i, 0); }), "take_along_axis");
  says(thrown<ValueError>([&] { xp::choose(i, {}); }), "choose");
  auto read = [](const Array& taken) { taken.get(); };  // a GPU tells of it at the next wait
  says(thrown<IndexError>([&] {
         read(xp::choose(xp::array({0, -1}), {i, i}));
       }),
       "index -1 is out of bounds");
  xp::TakeOptions strict{.axis = 0, .mode = IndexMode::strict};
  EXPECT_EQ(xp::take(a, i, strict).get().shape()[0], i.shape()[0]);
  says(thrown<IndexError>([&] {
         read(xp::take(a, xp::array({1, -2}), strict));
       }),
       "index -2 is out of bounds");
  says(thrown<ValueError>([&] { xp::select({a > 1}, {}); }), "select");
  says(thrown<ValueError>([&] { xp::nonzero(xp::array(1)); }), "nonzero");
  EXPECT_THROW(Array(a[{ellipsis, i, ellipsis}]), IndexError);
  EXPECT_THROW((void)a[Array()].sum(), ValueError);
  std::string text = thrown<IndexError>([&] {
    a[{Slice(), xp::array({1, 7})}] = 1;
    a.get();
  });
  says(text, "setitem: index 7 is out of bounds");
  says(text, GetParam().is_cpu() ? "axis 1 with size 3" : "of size 3");
}

// --- sizes that cross the borders of blocks and runs ---
Array random_indices(std::int64_t below, std::int64_t n) {
  return xp::random::randint(-below, below, {n}, int64, cpu());
}

TEST_P(Indexing, LargeGathers) {
  xp::random::seed(1);
  for (std::int64_t columns : {1, 3, 4, 70}) {
    std::int64_t rows = 5000, n = 2500000 / columns / (testing::quick() ? 10 : 1);
    Array a = xp::arange(rows * columns, int32).reshape({rows, columns}),
          i = random_indices(rows, n);
    std::vector<std::int32_t> got = xp::take(a, i.to(GetParam()), 0).to_vector<std::int32_t>();
    std::vector<std::int64_t> index = i.to_vector<std::int64_t>();
    for (std::size_t at = 0; at < got.size(); ++at) {
      std::int64_t row = index[at / static_cast<std::size_t>(columns)];
      std::int64_t want =
          (row < 0 ? row + rows : row) * columns + static_cast<std::int64_t>(at) % columns;
      ASSERT_EQ(got[at], want) << at << " of " << columns;
    }
  }
}

// Rows of one piece and of several, few and many, at addresses for vectors and at any others.
TEST_P(Indexing, GathersRowsOfAnyLength) {
  xp::random::seed(5);
  for (std::int64_t columns : {1, 2, 5, 8, 24, 40, 66, 130, 258, 264, 512, 520, 1031, 3000}) {
    Array room = xp::arange(40 * (columns + 8), int32, cpu()) % 251;
    room = room.astype(bfloat16).reshape({40, columns + 8});
    std::int64_t many = 4600000 / columns / (testing::quick() ? 10 : 1);
    for (auto [n, skip] : std::vector<std::pair<std::int64_t, int>>{
             {1, 0}, {50, 0}, {50, 1}, {50, 2}, {50, 8}, {many, 0}}) {
      Slice part(skip, skip + columns);
      Array i = random_indices(40, n), want = xp::take(Array(room[{Slice(), part}]), i, 0);
      auto taken = [&](const Array& index) {
        return xp::take(Array(room.to(GetParam())[{Slice(), part}]), index, 0).to(cpu());
      };
      SCOPED_TRACE(std::to_string(n) + " of " + std::to_string(columns) + " from " +
                   std::to_string(skip));
      EXPECT_TRUE(xp::array_equal(taken(i.to(GetParam())), want));
      EXPECT_TRUE(xp::array_equal(taken(i.astype(int32).to(GetParam())), want));
      Array apart = xp::stack({i, i * 0}, 1).to(GetParam());
      EXPECT_TRUE(xp::array_equal(taken(apart[{Slice(), 0}]), want));
    }
  }
}

TEST_P(Indexing, RowsOutOfRange) {
  Array a = xp::arange(5 * 1040, float32).reshape({5, 1040}), i = xp::array({1, -6, 7, -1});
  auto rows = [&](IndexMode mode) { return xp::take(a, i, {.axis = 0, .mode = mode}); };
  EXPECT_TRUE(xp::array_equal(rows(IndexMode::clip), a[xp::array({1, 0, 4, 0})]));
  EXPECT_TRUE(xp::array_equal(rows(IndexMode::wrap), a[xp::array({1, 4, 2, 4})]));
  for (std::int64_t bad : {5, -6}) {  // where a row has several pieces it is reported too
    std::string text = thrown<IndexError>([&] {
      xp::take(a, xp::array({std::int64_t{2}, bad}), 0).get();
    });
    EXPECT_NE(text.find("index " + std::to_string(bad)), text.npos) << text;
  }
  EXPECT_TRUE(xp::array_equal(xp::take(a, xp::array({3}), 0)[0], a[3]));  // still usable
}

TEST_P(Indexing, LargeScattersAreOrdered) {
  xp::random::seed(2);
  for (std::int64_t n : {1, 256, 257, 512, 513, 1023, 1024, 1025, 5000, 200000}) {
    for (std::int64_t rows : {1, 7, 3000}) {
      for (std::int64_t columns : {1, 5, 300}) {
        if (n * columns > 1000000) continue;
        Array i = random_indices(rows, n),
              v = xp::random::randint(-99, 99, {n, columns}, int64, cpu());
        std::vector<std::int64_t> index = i.to_vector<std::int64_t>(),
                                  value = v.to_vector<std::int64_t>();
        auto size = static_cast<std::size_t>(rows * columns);
        std::vector<std::int64_t> last(size), sum(size), most(size), least(size);
        for (std::size_t at = 0; at < value.size(); ++at) {
          std::int64_t row = index[at / static_cast<std::size_t>(columns)];
          auto to = static_cast<std::size_t>((row < 0 ? row + rows : row) * columns +
                                             static_cast<std::int64_t>(at) % columns);
          last[to] = value[at];
          sum[to] += value[at];
          most[to] = std::max(most[to], value[at]);
          least[to] = std::min(least[to], value[at]);
        }
        i = i.to(GetParam());
        v = v.to(GetParam());
        auto run = [&](auto write) {
          Array a = xp::zeros({rows, columns}, int64);
          write(a);
          return a.to_vector<std::int64_t>();
        };
        SCOPED_TRACE(std::to_string(n) + " into " + std::to_string(rows) + ", " +
                     std::to_string(columns));
        ASSERT_EQ(run([&](const Array& a) { a[i] = v; }), last);
        ASSERT_EQ(run([&](const Array& a) { xp::scatter_add(a, i, v); }), sum);
        ASSERT_EQ(run([&](const Array& a) { xp::scatter_max(a, i, v); }), most);
        ASSERT_EQ(run([&](const Array& a) { xp::scatter_min(a, i, v); }), least);
      }
    }
  }
}

TEST_P(Indexing, FloatSumsAreInOrderAndRepeatable) {
  xp::random::seed(3);
  for (Dtype d : {float32, float16, bfloat16, float64}) {
    for (auto [n, columns] : {std::pair{900, 33}, {400, 64}}) {
      Array v = xp::random::uniform(0, 1, {n, columns}, float32, cpu()).astype(d),
            i = random_indices(3, n);
      Array want = xp::zeros({3, columns}, d, cpu());  // one by one: what no rounding differs from
      for (std::int64_t row = 0; row < n; ++row) {
        want[{i[row].item<std::int64_t>()}] += v[row];
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        Array sums = xp::zeros({3, columns}, d);
        xp::scatter_add(sums, i.to(GetParam()), v.to(GetParam()));
        EXPECT_TRUE(xp::array_equal(sums.to(cpu()), want)) << dtype_name(d) << ", " << n;
      }
    }
  }
  Array v = xp::random::uniform(0, 1, {100000}), i = xp::zeros({100000}, int64);  // many runs
  Array once = xp::zeros({1}), again = xp::zeros({1});
  xp::scatter_add(once, i, v);
  xp::scatter_add(again, i, v);
  EXPECT_TRUE(xp::array_equal(once, again));
  EXPECT_NEAR(once.item<double>(), v.astype(float64).sum().item<double>(), 20);
}

// Rows are shared out by their parts, as many as the threads want.
TEST_P(Indexing, SumsOfRowsAreThoseOfAnyNumberOfThreads) {
  testing::NumThreads scope(get_num_threads());
  for (std::int64_t columns : {1, 63, 65, 200, 1000}) {
    for (bool strided : {false, true}) {
      Array v = xp::random::uniform(0, 1, {300, columns}, float32, cpu()),
            i = random_indices(7, 300);
      Array want = xp::zeros({7, columns}, float32, cpu());
      for (std::int64_t row = 0; row < 300; ++row) {
        want[{i[row].item<std::int64_t>()}] += v[row];
      }
      if (strided) v = v.T().ascontiguous().T();
      for (int threads : {1, 3, 8}) {
        set_num_threads(threads);
        Array sums = xp::zeros({7, columns});
        xp::scatter_add(sums, i.to(GetParam()), v.to(GetParam()));
        EXPECT_TRUE(xp::array_equal(sums.to(cpu()), want)) << columns << ", " << threads;
      }
    }
  }
}

TEST_P(Indexing, LargeNonzero) {
  for (std::int64_t n : {1, 4095, 4096, 4097, 70000, 1000003}) {
    for (Dtype d : {bool_, float32}) {
      Array a = (xp::arange(n) * 7919 % 13 < 4).astype(d);
      std::vector<bool> truth = a.to_vector<bool>();
      std::vector<std::int64_t> want;
      for (std::int64_t at = 0; at < n; ++at) {
        if (truth[static_cast<std::size_t>(at)]) want.push_back(at);
      }
      ASSERT_EQ(xp::flatnonzero(a).to_vector<std::int64_t>(), want) << n;
      ASSERT_EQ(xp::flatnonzero(a[Slice(none, none, -1)]).size(),
                a.astype(int64).sum().item<int>());
    }
  }
  Array grid = xp::arange(300 * 401).reshape({300, 401}) % 11 == 0;
  std::vector<Array> rows = xp::nonzero(grid), columns = xp::nonzero(grid.T());
  EXPECT_TRUE(xp::array_equal(rows[0] * 401 + rows[1], xp::flatnonzero(grid)));
  EXPECT_TRUE(xp::array_equal(columns[0] * 300 + columns[1], xp::flatnonzero(grid.T().copy())));
  EXPECT_TRUE(xp::array_equal(xp::argwhere(grid.T())[{Slice(), 1}], columns[1]));
  EXPECT_TRUE(
      xp::array_equal(xp::arange(300 * 401).reshape({300, 401})[grid], xp::arange(10937) * 11));
}

}  // namespace
}  // namespace rensa
