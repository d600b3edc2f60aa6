// What an array looks like to who writes with it: selections and views as arrays, indices of every
// kind, arrays of host values, iteration.
#include <array>
#include <list>
#include <memory>
#include <thread>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class Surface : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, Surface, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// --- selections that are read ---
TEST_P(Surface, SelectionsHaveTheMethodsOfArrays) {
  Array a = xp::arange(6, float32).reshape(3, 2), rows = xp::array({2, 0}), mask = a > 2;
  EXPECT_EQ(a[mask].sum().item<float>(), 12);
  EXPECT_EQ(values(a[rows].sum(0)), V({4, 6}));
  EXPECT_EQ(values(a[rows][0]), V({4, 5}));
  EXPECT_EQ(values(a[rows][{ellipsis, -1}]), V({5, 1}));
  EXPECT_EQ(values(a[rows][xp::array({1})]), V({0, 1}));
  EXPECT_EQ(values(a[mask] + 1), V({4, 5, 6}));
  EXPECT_EQ(values(2 * a[mask]), V({6, 8, 10}));
  EXPECT_EQ(values(a[mask] < a[mask]), V({0, 0, 0}));
  EXPECT_EQ(a[rows].shape(), Shape({2, 2}));
  EXPECT_EQ(a[rows].shape(-1), 2);
  EXPECT_EQ(a[rows].ndim(), 2);
  EXPECT_EQ(a[mask].size(), 3);
  EXPECT_EQ(a[mask].dtype(), float32);
  EXPECT_EQ(a[mask].device(), GetParam());
  EXPECT_EQ(values(a[rows].T().reshape(4)), V({4, 0, 5, 1}));
  EXPECT_EQ(a[mask].astype(int8).dtype(), int8);
  EXPECT_EQ(a[mask].to(cpu()).to_vector<double>(), V({3, 4, 5}));
  EXPECT_EQ((a[rows][{0, 1}].item<int>()), 5);
  EXPECT_EQ(values(a[rows].take(xp::array({0, 3}))), V({4, 1}));
  EXPECT_EQ(values(xp::concatenate({a[mask], a[0]})), V({3, 4, 5, 0, 1}));
  EXPECT_EQ(a[mask].str(), Array(a[mask]).str());
  std::ostringstream os;
  os << a[mask];
  EXPECT_EQ(os.str(), Array(a[mask]).str());
}

// A selection with a name is a copy, as NumPy's is, whatever is written afterwards.
TEST_P(Surface, ANamedSelectionDoesNotSeeLaterWrites) {
  Array a = xp::arange(5, float32), rows = xp::array({3, 1}), mask = a > 2;
  auto by_rows = a[rows];
  auto by_mask = a[mask];
  auto by_list = a[{rows}];
  const auto& bound = a[rows];
  auto&& moved = a[rows];
  Selection several[] = {a[rows], a[mask]};
  struct Member {
    Selection selection;
  } member{a[mask]};
  auto allocated = std::make_unique<Selection>(a[rows]);
  auto copy = by_rows;
  auto returned = [&] { return a[rows]; }();
  a.fill(7);
  mask.fill(0);
  rows.fill(0);
  for (const Selection* s : std::initializer_list<const Selection*>{
           &by_rows, &by_list, &bound, &moved, &several[0], &copy, &returned, allocated.get()}) {
    EXPECT_EQ(s->to_vector<double>(), V({3, 1}));
  }
  for (const Selection* s :
       std::initializer_list<const Selection*>{&by_mask, &several[1], &member.selection}) {
    EXPECT_EQ(s->sum().item<double>(), 7);
    EXPECT_EQ(values(*s + 1), V({4, 5}));
  }
  // One of temporaries: its array and its indices are gone as well.
  auto of_temporaries = xp::arange(4)[xp::array({2})];
  EXPECT_EQ(values(of_temporaries), V({2}));
}

TEST_P(Surface, AnAssignmentGathersNothing) {
  Array a = xp::arange(5, float32), mask = a > 2;
  std::int64_t before = cuda::sync_count();
  a[mask] = 0;  // nobody has to know how many elements there are
  a[mask] += 1;
  EXPECT_EQ(cuda::sync_count(), before);
  EXPECT_EQ(values(a), V({0, 1, 2, 1, 1}));
  // An index that cannot be read is not read by who writes nothing there.
  EXPECT_THROW((a[{mask, 0}] = 1), IndexError);
  // What was read is a copy, and says so.
  auto s = a[mask];
  EXPECT_NE(thrown<ValueError>([&] { std::move(s) = 5; }).find("a copy"), std::string::npos);
}

TEST_P(Surface, ASelectionThatCannotBeReadThrowsWhereItStands) {
  Array a = xp::arange(6).reshape(3, 2), mask = xp::ones({2}, bool_);
  EXPECT_THROW(auto s = a[mask], IndexError);
  EXPECT_THROW(auto s = a[xp::ones({2})], DtypeError);
  EXPECT_THROW((void)a[mask].sum(), IndexError);
  // An exception elsewhere in the expression is the one that comes out.
  auto fail = []() -> int { throw std::runtime_error("mine"); };
  EXPECT_THROW(a[mask] = xp::array(fail()), std::runtime_error);
  auto second = [](const Selection&, int) {};
  EXPECT_THROW(second(a[mask], fail()), std::runtime_error);
}

TEST_P(Surface, ListsKnownAtRunTime) {
  Array a = xp::arange(24).reshape(2, 3, 4), rows = xp::array({1, 0});
  std::vector<BasicIndex> basic = {1, Slice(), -1};
  EXPECT_EQ(values(a[basic]), V({15, 19, 23}));
  a[basic] = 0;
  EXPECT_EQ(values(a[basic]), V({0, 0, 0}));
  std::vector<Index> list = {rows, 2};
  EXPECT_EQ(values(a[list]), values(a[{rows, 2}]));
  EXPECT_EQ(values(a[std::span<const Index>(list)]), values(a[{rows, 2}]));
  a[list] = xp::array({{1}, {2}});
  EXPECT_EQ(values(a[{rows, 2}]), V({1, 1, 1, 1, 2, 2, 2, 2}));
  // Without arrays in it, it is what basic indexing gives.
  list = {0, Slice(0, 2)};
  Array view = a[list];
  EXPECT_EQ(view.storage(), a.storage());
  a[list] = -1;
  EXPECT_EQ(values(view), V(8, -1));
}

// --- views ---
TEST_P(Surface, IndicesOfAnyIntegralType) {
  Array a = xp::arange(12).reshape(3, 4);
  EXPECT_EQ((a[{std::size_t{1}, 2u}].item<int>()), 6);
  EXPECT_EQ((a[{std::int8_t{-1}, std::uint16_t{3}}].item<int>()), 11);
  EXPECT_EQ(values(a[std::size_t{2}]), V({8, 9, 10, 11}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(a[i].shape(), Shape({4}));
  EXPECT_EQ(values(a[{Slice(none), Slice(std::size_t{1})}]), V({0, 4, 8}));
  EXPECT_THROW((void)a[std::numeric_limits<std::uint64_t>::max()], IndexError);
  enum { kRow = 1 };
  enum class Row { first };
  static_assert(!std::is_convertible_v<decltype(kRow), BasicIndex>);
  static_assert(!std::is_convertible_v<Row, BasicIndex>);
  static_assert(!std::is_convertible_v<bool, BasicIndex>);
  static_assert(!std::is_convertible_v<double, BasicIndex>);
}

TEST_P(Surface, IterationGoesAlongTheFirstAxis) {
  Array a = xp::zeros({3, 2}, int64);
  int i = 0;
  for (auto row : a) {
    EXPECT_EQ(row.shape(), Shape({2}));
    row += ++i;
  }
  EXPECT_EQ(values(a), V({1, 1, 2, 2, 3, 3}));
  V sums;
  for (auto row : a[xp::array({2, 0})]) sums.push_back(row.sum().item<double>());
  EXPECT_EQ(sums, V({6, 2}));
  std::vector<Array> rows(a.begin(), a.end());
  EXPECT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].storage(), a.storage());
  for (auto row : xp::zeros({0, 4})) FAIL() << row;
  EXPECT_NE(thrown<ShapeError>([] {
              for (auto row : xp::array(1.)) FAIL() << row;
            }).find("iteration"),
            std::string::npos);
  EXPECT_THROW(Array().begin(), ValueError);
}

TEST_P(Surface, ShapesAsNumbers) {
  Array a = xp::arange(6);
  EXPECT_EQ(xp::zeros(5).shape(), Shape({5}));
  EXPECT_EQ(xp::full(std::size_t{2}, 7).shape(), Shape({2}));
  EXPECT_EQ(a.reshape(3, 2).shape(), Shape({3, 2}));
  EXPECT_EQ(a.reshape(-1, std::size_t{2}, 1).shape(), Shape({3, 2, 1}));
  EXPECT_EQ(a.reshape(3, 2).reshape(-1).shape(), Shape({6}));
  EXPECT_EQ(a.reshape(1, 2, 3).transpose(2, 0, 1).shape(), Shape({3, 1, 2}));
  EXPECT_EQ(a.reshape(2, 3).shape()[-1], 3);
  EXPECT_EQ(a.reshape(2, 3).shape()[-2], 2);
  EXPECT_NE(thrown<IndexError>([&] { (void)a.shape()[1]; }).find("index 1 is out of bounds"),
            std::string::npos);
  EXPECT_THROW((void)a.shape()[-2], IndexError);
  EXPECT_THROW((void)a.sum().shape()[0], IndexError);
}

// --- arrays of host values ---
TEST_P(Surface, ArraysOfListsOfAnyDepth) {
  Array a = xp::array({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}});
  EXPECT_EQ(a.shape(), Shape({3, 2, 2}));
  EXPECT_EQ(a.dtype(), int64);
  EXPECT_EQ(a.device(), GetParam());
  EXPECT_EQ(values(a), values(xp::arange(1, 13)));
  Array deep = xp::array({{{{{{{{1, 2.5}}}}}}}});
  EXPECT_EQ(deep.shape(), Shape({1, 1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(values(deep), V({1, 2.5}));
  EXPECT_THROW(xp::array({{{{{{{{{1, 2.5}}}}}}}}}), ShapeError);
  EXPECT_EQ(xp::array({{1}}).shape(), Shape({1, 1}));
  EXPECT_EQ(xp::array({{{0}}}).shape(), Shape({1, 1, 1}));
  EXPECT_EQ(xp::array({}).shape(), Shape({0}));
  EXPECT_EQ(xp::array({}).dtype(), float64);
}

TEST_P(Surface, MixedNumbersMeetAsArraysDo) {
  EXPECT_EQ(xp::array({1, 2.5}).dtype(), float64);
  EXPECT_EQ(values(xp::array({{1, 2.5}, {true, 4.f}})), V({1, 2.5, 1, 4}));
  EXPECT_EQ(xp::array({true, 2}).dtype(), int64);
  EXPECT_EQ(xp::array({1.f, true}).dtype(), float32);
  EXPECT_EQ(xp::array({std::int8_t{1}, std::uint8_t{2}}).dtype(), int16);
  EXPECT_EQ(xp::array({1., std::complex<double>(0, 1)}).dtype(), complex128);
  EXPECT_EQ(xp::array({std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1}})
                .str()
                .find("array([18446744073709551615,"),
            0u);
}

TEST_P(Surface, ArraysOfADtypeOnADevice) {
  EXPECT_EQ(xp::array({1, 2}, float16).dtype(), float16);
  EXPECT_EQ(xp::array({1, 2}, float16).device(), GetParam());
  EXPECT_EQ(xp::array({1, 2}, int8, cpu()).device(), cpu());
  EXPECT_EQ(xp::array({{1, 2.5}, {3, 4}}, cpu()).device(), cpu());
  EXPECT_EQ(values(xp::array({1.5, 2.}, int32)), V({1, 2}));
  EXPECT_NE(thrown<ValueError>([] {
              xp::array({1, 300}, uint8);
            }).find("300 is out of bounds"),
            std::string::npos);
  EXPECT_THROW(xp::array({{1, -1}, {true, 0}}, uint64), ValueError);
  EXPECT_EQ(values(xp::array(std::vector<float>{1, 2}, cpu())), V({1, 2}));
  Array a = xp::array({1, 2});
  EXPECT_NE(xp::array(a).storage(), a.storage());
  EXPECT_NE(xp::array(a, int64).storage(), a.storage());
  EXPECT_EQ(xp::array(a, float32, cpu()).device(), cpu());
  EXPECT_EQ(values(xp::array(a[a > 1])), V({2}));
  EXPECT_EQ(values(xp::array(a[1])), V({2}));
}

TEST_P(Surface, ArraysOfContainers) {
  using Rows = std::vector<std::vector<double>>;
  EXPECT_EQ(values(xp::array(Rows{{1, 2}, {3, 4}})), V({1, 2, 3, 4}));
  EXPECT_EQ(xp::array(Rows{{1, 2}, {3, 4}}).shape(), Shape({2, 2}));
  EXPECT_EQ(xp::array(Rows{}).shape(), Shape({0, 0}));
  EXPECT_EQ(xp::array(Rows{{}, {}}).shape(), Shape({2, 0}));
  EXPECT_EQ(xp::array(std::vector<int>{1, 2}).dtype(), int64);
  EXPECT_EQ(xp::array(std::vector<int>{1, 2}, int32).dtype(), int32);
  Array bools = xp::array(std::vector<bool>{true, false});
  EXPECT_EQ(bools.dtype(), bool_);
  EXPECT_EQ(values(bools), V({1, 0}));
  EXPECT_EQ(xp::array(std::vector<std::vector<bool>>{{true}, {false}}).shape(), Shape({2, 1}));
  std::array<std::array<float, 3>, 2> fixed = {{{1, 2, 3}, {4, 5, 6}}};
  EXPECT_EQ(xp::array(fixed).shape(), Shape({2, 3}));
  EXPECT_EQ(values(xp::array(fixed)), V({1, 2, 3, 4, 5, 6}));
  int table[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  EXPECT_EQ(xp::array(table).shape(), Shape({2, 2, 2}));
  EXPECT_EQ(values(xp::array(table)), values(xp::arange(1, 9)));
  float row[] = {1, 2};
  EXPECT_EQ(xp::array(row).dtype(), float32);
  EXPECT_EQ(values(xp::array(std::span<const float>(row))), V({1, 2}));
  EXPECT_EQ(values(xp::array(std::span<float>(row))), V({1, 2}));
  EXPECT_EQ(values(xp::array(std::list<short>{1, 2})), V({1, 2}));
  EXPECT_EQ(values(xp::asarray(std::list<short>{1, 2})), V({1, 2}));
  EXPECT_EQ(xp::asarray({{1, 2.5}}, float32).dtype(), float32);
  // The caller's memory is read before the call returns.
  Array copied = xp::array(row);
  row[0] = 9;
  EXPECT_EQ(values(copied), V({1, 2}));
}

TEST_P(Surface, RaggedListsThrow) {
  EXPECT_THROW(xp::array({{1, 2}, {3}}), ValueError);
  EXPECT_THROW(xp::array({{1, 2.5}, {3}}), ValueError);
  EXPECT_THROW(xp::array({{{1}, {2}}, {{3}}}), ValueError);
  EXPECT_THROW(xp::array({{{1, 2}}, {{3}}}), ValueError);
  EXPECT_THROW(xp::array({{{1}}, {2, 3}}), ValueError);
  using Rows = std::vector<std::vector<double>>;
  EXPECT_THROW(xp::array(Rows{{1, 2}, {3}}), ValueError);
  EXPECT_THROW(xp::array(Rows{{}, {3}}), ValueError);
  EXPECT_NE(thrown<ValueError>([] {
              xp::array({{1, 2}, {3}});
            }).find("one at depth 1 has 1 items where the first one has 2"),
            std::string::npos);
}

TEST_P(Surface, AsarrayCopiesWhereItMustOrMay) {
  Array a = xp::arange(3, float32);
  EXPECT_EQ(xp::asarray(a).storage(), a.storage());
  EXPECT_EQ(xp::asarray(a, float32).storage(), a.storage());
  EXPECT_EQ(xp::asarray(a, {.copy = false}).storage(), a.storage());
  EXPECT_NE(xp::asarray(a, {.copy = true}).storage(), a.storage());
  EXPECT_EQ(xp::asarray(a, {.dtype = int8}).dtype(), int8);
  EXPECT_EQ(xp::asarray(a, float64, cpu()).device(), cpu());
  EXPECT_NE(thrown<ValueError>([&] {
              xp::asarray(a, {.dtype = int8, .copy = false});
            }).find("without a copy"),
            std::string::npos);
}

}  // namespace
}  // namespace rensa
