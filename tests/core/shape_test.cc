// Shapes, broadcasting, layout questions and device names.
#include "rensa/core/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include "rensa/core/array_view.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa {
namespace {

TEST(Shape, PrintsAsAPythonTuple) {
  EXPECT_EQ(Shape().str(), "()");
  EXPECT_EQ(Shape({5}).str(), "(5,)");
  EXPECT_EQ(Shape({2, -3, 4}).str(), "(2, -3, 4)");
}

TEST(Shape, Edits) {
  Shape s = {1, 2, 3};
  s.insert(1, 9);
  EXPECT_EQ(s, Shape({1, 9, 2, 3}));
  s.erase(0);
  s.push_back(7);
  EXPECT_EQ(s, Shape({9, 2, 3, 7}));
  EXPECT_NE(s, Shape({9, 2, 3}));
  EXPECT_THROW(Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  Shape full = Shape::filled(kMaxNdim, 1);
  EXPECT_THROW(full.push_back(1), ShapeError);
  EXPECT_EQ(full, Shape::filled(kMaxNdim, 1));
}

TEST(Shape, CountsFromTheEndOrThrows) {
  Shape s = {2, 3, 4};
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s[-3], 2);
  s[-2] = 9;
  EXPECT_EQ(s, Shape({2, 9, 4}));
  for (int i : {3, -4, 8, 100}) EXPECT_THROW((void)s[i], IndexError) << i;
  EXPECT_THROW((void)Shape()[0], IndexError);
}

TEST(Shape, OfAnyIntegralType) {
  EXPECT_EQ(Shape(5), Shape({5}));
  EXPECT_EQ(Shape(std::size_t{5}).ndim(), 1);
  EXPECT_EQ(Shape({std::size_t{2}, 3u, std::int8_t{4}}), Shape({2, 3, 4}));
  EXPECT_THROW(Shape({~std::uint64_t{0}}), ShapeError);
  EXPECT_THROW(Shape(~std::uint64_t{0}), ShapeError);
}

TEST(Shape, AndDtypesPrintToStreams) {
  std::ostringstream os;
  os << Shape({2, 3}) << " " << float32;
  EXPECT_EQ(os.str(), "(2, 3) float32");
}

TEST(Shape, HasNoPlacesBeyondItsEnds) {
  Shape none, two = {3, 4};
  EXPECT_THROW(none.erase(0), IndexError);
  EXPECT_THROW(two.erase(2), IndexError);
  EXPECT_THROW(two.erase(-1), IndexError);
  EXPECT_THROW(two.insert(3, 1), IndexError);
  EXPECT_EQ(two, Shape({3, 4}));
}

TEST(Checked, ThrowsWhereInt64WrapsAround) {
  constexpr std::int64_t kMost = INT64_MAX, kLeast = INT64_MIN;
  EXPECT_EQ(checked_add("pad", kMost - 1, 1), kMost);
  EXPECT_EQ(checked_subtract("pad", kLeast + 1, 1), kLeast);
  EXPECT_EQ(checked_multiply("pad", std::int64_t{1} << 31, std::int64_t{1} << 31),
            std::int64_t{1} << 62);
  EXPECT_THROW(checked_add("pad", kMost, 1), ShapeError);
  EXPECT_THROW(checked_subtract("pad", 0, kLeast), ShapeError);
  EXPECT_THROW(checked_multiply("pad", kLeast, -1), ShapeError);
  try {
    checked_multiply("tile", kMost, 2);
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "tile: 9223372036854775807 * 2 is more than can be counted");
  }
}

TEST(View, ReachesNoFurtherThanAnAddressCounts) {
  ArrayView view;
  std::int64_t begin = 0, end = 0;
  for (auto [shape, strides] : {std::pair{Shape{INT64_MAX / 2}, Shape{5}},
                                {Shape{3}, {INT64_MIN}},
                                {Shape{2, 2}, {INT64_MAX, INT64_MAX}}}) {
    view.shape = shape;
    view.strides = strides;
    EXPECT_THROW(view.byte_range(&begin, &end), ShapeError) << shape.str() << strides.str();
  }
  view.shape = {3, 2};
  view.strides = {-8, 4};
  view.byte_range(&begin, &end);
  EXPECT_EQ(begin, -16);
  EXPECT_EQ(end, 8);
  view.strides = {0, 0};
  view.shape = {std::int64_t{1} << 62, 1};
  EXPECT_THROW(view.nbytes(), ShapeError);
}

TEST(Shape, TotalNeverOverflowsUnseen) {
  EXPECT_EQ(Shape().total(), 1);
  EXPECT_EQ(Shape({3, 0, 4}).total(), 0);
  std::int64_t big = std::int64_t{1} << 32;
  EXPECT_THROW(Shape({big, big}).total(), ShapeError);
  EXPECT_EQ(Shape({big, big, 0}).total(), 0);
}

TEST(Broadcast, FollowsNumpy) {
  struct Case {
    Shape a, b, result;
  };
  for (const Case& c :
       {Case{{3, 4}, {4}, {3, 4}}, Case{{3, 1}, {1, 4}, {3, 4}}, Case{{}, {2, 2}, {2, 2}},
        Case{{2, 1, 3}, {5, 1}, {2, 5, 3}}, Case{{0}, {1}, {0}}, Case{{1, 3}, {0, 1}, {0, 3}}}) {
    EXPECT_EQ(broadcast_shapes("add", c.a, c.b), c.result);
    EXPECT_EQ(broadcast_shapes("add", c.b, c.a), c.result);
  }
  try {
    broadcast_shapes("add", {2, 3}, {4});
    FAIL();
  } catch (const ShapeError& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("add"), text.npos);
    EXPECT_NE(text.find("(2, 3)"), text.npos);
    EXPECT_NE(text.find("(4,)"), text.npos);
  }
  EXPECT_THROW(broadcast_shapes("add", {0}, {2}), ShapeError);
}

TEST(Axis, CountsFromTheEnd) {
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", 0, 3), 0);
  EXPECT_THROW(normalize_axis("sum", 3, 3), IndexError);
  EXPECT_THROW(normalize_axis("sum", -4, 3), IndexError);
  EXPECT_THROW(normalize_axis("sum", 0, 0), IndexError);
}

ArrayView view_of(const Shape& shape, const Shape& strides, Dtype dtype = float32) {
  return {nullptr, dtype, cpu(), shape, strides};
}

TEST(ArrayView, KnowsItsLayout) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}, 4), Shape({48, 16, 4}));
  EXPECT_TRUE(view_of({2, 3}, {12, 4}).is_c_contiguous());
  EXPECT_TRUE(view_of({2, 1, 3}, {12, 999, 4}).is_c_contiguous());
  EXPECT_TRUE(view_of({2, 0}, {7, 7}).is_c_contiguous());
  EXPECT_FALSE(view_of({3, 2}, {4, 12}).is_c_contiguous());
  std::int64_t begin, end;
  view_of({2, 3}, {12, -4}).byte_range(&begin, &end);
  EXPECT_EQ(begin, -8);
  EXPECT_EQ(end, 16);
  view_of({2, 0}, {12, 4}).byte_range(&begin, &end);
  EXPECT_EQ(begin, end);
  EXPECT_EQ(view_of({5, 4}, {16, 4}).describe(), "cpu (5, 4) float32");
}

TEST(ArrayView, Broadcasts) {
  ArrayView v = broadcast_view(view_of({3, 1}, {4, 4}), {2, 3, 5});
  EXPECT_EQ(v.shape, Shape({2, 3, 5}));
  EXPECT_EQ(v.strides, Shape({0, 4, 0}));
}

TEST(ArrayView, Collapses) {
  ArrayView a = view_of({2, 3, 1, 4}, {48, 16, 777, 4});
  ArrayView b = view_of({2, 3, 1, 4}, {48, 16, 0, 4});
  ArrayView* pair[] = {&a, &b};
  collapse_axes(pair, 2);
  EXPECT_EQ(a.shape, Shape({24}));
  EXPECT_EQ(a.strides, Shape({4}));
  EXPECT_EQ(b.strides, Shape({4}));

  ArrayView c = view_of({2, 3, 4}, {48, 16, 4}), d = view_of({2, 3, 4}, {0, 16, 4});
  ArrayView* broadcast[] = {&c, &d};
  collapse_axes(broadcast, 2);
  EXPECT_EQ(c.shape, Shape({2, 12}));
  EXPECT_EQ(d.strides, Shape({0, 4}));

  ArrayView e = view_of({4, 6}, {-24, -4});
  ArrayView* reversed[] = {&e};
  collapse_axes(reversed, 1);
  EXPECT_EQ(e.shape, Shape({24}));
  EXPECT_EQ(e.strides, Shape({-4}));

  ArrayView one = view_of({1, 1}, {4, 4});
  ArrayView* single[] = {&one};
  collapse_axes(single, 1);
  EXPECT_EQ(one.ndim(), 0);
  EXPECT_EQ(one.size(), 1);
}

TEST(DeviceName, CountsGpusFromNoughtToTheLast) {
  EXPECT_EQ(gpu(kMaxGpus - 1).index, kMaxGpus - 1);
  for (int index : {-1, kMaxGpus, 40000, 65536, INT32_MAX, INT32_MIN}) {
    EXPECT_THROW(gpu(index), DeviceError) << index;
  }
  EXPECT_THROW(Device("cuda:99999999999"), DeviceError);
  EXPECT_THROW(Device("cuda:65536"), DeviceError);
}

TEST(DeviceName, ReadsAndPrints) {
  for (const char* text : {"cpu", "@numpy"}) EXPECT_EQ(Device(text), cpu());
  for (const char* text : {"cuda", "cuda:0", "gpu", "gpu:0", "@cupy:0"}) {
    EXPECT_EQ(Device(text), gpu(0)) << text;
  }
  EXPECT_EQ(Device("cuda:3"), gpu(3));
  EXPECT_EQ(gpu(3).str(), "cuda:3");
  std::ostringstream os;
  os << cpu() << " " << gpu(1);
  EXPECT_EQ(os.str(), "cpu cuda:1");
  for (const char* bad : {"", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "cuda:99",
                          "CPU", "cuda: 1"}) {
    EXPECT_THROW(Device device{std::string_view(bad)}, DeviceError) << bad;
  }
}

}  // namespace
}  // namespace rensa
