// a[i, j] without braces, which C++23 has. This file alone is compiled as such, where the compiler
// can.
#include "tests/array/arrays.h"

namespace rensa {
namespace {

#ifdef __cpp_multidimensional_subscript

using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

static_assert(std::is_same_v<decltype(Array()[1, 2]), View>);
static_assert(std::is_same_v<decltype(Array()[1, Slice(), newaxis, ellipsis]), View>);
static_assert(std::is_same_v<decltype(Array()[Array(), 2]), Selection>);
static_assert(std::is_same_v<decltype(Array()[1, Array()]), Selection>);

TEST(Subscripts, MeanWhatListsMean) {
  for (Device device : testing::test_devices()) {
    DeviceScope scope(device);
    Array a = xp::arange(24).reshape(2, 3, 4), rows = xp::array({1, 0}),
          mask = a[0, Slice(), 0] > 0;
    EXPECT_EQ((a[1, 2, 3].item<int>()), 23);
    EXPECT_EQ(values(a[1, Slice(), std::size_t{3}]), V({15, 19, 23}));
    EXPECT_EQ(values(a[ellipsis, -1]), values(a[{ellipsis, -1}]));
    EXPECT_EQ(values(a[rows, 1]), values(a[{rows, 1}]));
    EXPECT_EQ(values(a[0, mask, Slice(2)]), values(a[{0, mask, Slice(2)}]));
    EXPECT_EQ(values(a[newaxis, rows, Slice(), newaxis, rows, newaxis]),
              values(a[{newaxis, rows, Slice(), newaxis, rows, newaxis}]));
    auto named = a[rows, 1];
    a[rows, 1] = 7;
    a[0, 0, 0] = -1;
    EXPECT_EQ(values(named), V({16, 17, 18, 19, 4, 5, 6, 7}));
    EXPECT_EQ(values(a[Slice(), 1]), V(8, 7));
    EXPECT_EQ((a[0, 0, 0].item<int>()), -1);
    EXPECT_THROW((void)(a[rows, 9].sum()), IndexError);
    EXPECT_THROW((void)(a[0, 0, 0, 0]), IndexError);
  }
}

#else

TEST(Subscripts, MeanWhatListsMean) { GTEST_SKIP() << "the compiler has no C++23 subscripts"; }

#endif

}  // namespace
}  // namespace rensa
