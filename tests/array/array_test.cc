// Arrays: creation, views, copies, in-place writes.
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

// --- what must not compile (tests/slips has what the compiler says of more) ---
static_assert(!std::is_convertible_v<int, Array>);
static_assert(std::is_assignable_v<View, int>);
static_assert(std::is_assignable_v<View, Array>);
static_assert(std::is_assignable_v<View, View>);
static_assert(std::is_assignable_v<Selection, int>);

class ArrayTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, ArrayTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// --- creation ---
TEST_P(ArrayTest, CreationUsesTheCurrentDevice) {
  for (const Array& a : {xp::empty({2}), xp::zeros({2}), xp::ones({2}), xp::full({2}, 3),
                         xp::arange(3), xp::linspace(0, 1), xp::eye(2), xp::array({1, 2})}) {
    EXPECT_EQ(a.device(), GetParam());
  }
  EXPECT_EQ(xp::zeros({2}, float32, cpu()).device(), cpu());
}

TEST_P(ArrayTest, CreationHasNumpysDtypes) {
  EXPECT_EQ(xp::zeros({2}).dtype(), float32);
  EXPECT_EQ(xp::array({1, 2}).dtype(), int64);
  EXPECT_EQ(xp::array({1.f}).dtype(), float32);
  EXPECT_EQ(xp::array({1.}).dtype(), float64);
  EXPECT_EQ(xp::array({true, false}).dtype(), bool_);
  EXPECT_EQ(xp::array(std::vector<std::uint8_t>{1}).dtype(), uint8);
  EXPECT_EQ(xp::arange(3).dtype(), int64);
  EXPECT_EQ(xp::arange(3.).dtype(), float64);
  EXPECT_EQ(xp::full({2}, 1.5).dtype(), float64);
}

TEST_P(ArrayTest, CreationValues) {
  EXPECT_EQ(values(xp::full({2, 2}, 1.5, int32)), V({1, 1, 1, 1}));
  EXPECT_EQ(values(xp::array({{1, 2}, {3, 4}})), V({1, 2, 3, 4}));
  EXPECT_EQ(xp::array({{1, 2}, {3, 4}}).shape(), Shape({2, 2}));
  EXPECT_EQ(values(xp::array(7.5)), V({7.5}));
  EXPECT_EQ(xp::array(7.5).shape(), Shape());
  EXPECT_EQ(values(xp::arange(2, 11, 3)), V({2, 5, 8}));
  EXPECT_EQ(values(xp::arange(5, 0, -2)), V({5, 3, 1}));
  EXPECT_EQ(values(xp::arange(0, 1, 0.25)), V({0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(xp::arange(3, 3).size(), 0);
  EXPECT_EQ(values(xp::arange(4, float16)), V({0, 1, 2, 3}));
  EXPECT_EQ(values(xp::linspace(1, 2, 5)), V({1, 1.25, 1.5, 1.75, 2}));
  EXPECT_EQ(values(xp::linspace(1, 2, 1)), V({1}));
  EXPECT_EQ(values(xp::eye(2)), V({1, 0, 0, 1}));
  EXPECT_EQ(values(xp::full_like(xp::zeros({2}), 4)), V({4, 4}));
  EXPECT_THROW(xp::array({{1, 2}, {3}}), ValueError);
  EXPECT_THROW(xp::arange(0, 1, 0), ValueError);
  EXPECT_THROW(xp::empty({2, -1}), ShapeError);
  EXPECT_THROW(xp::full({2}, 300, uint8), ValueError);
}

TEST_P(ArrayTest, HostValuesMayChangeAfterTheCall) {
  std::vector<float> source(1000, 1.f);
  Array a = xp::array(source);
  std::fill(source.begin(), source.end(), 2.f);
  EXPECT_EQ(a.sum().item<float>(), 1000.f);
}

TEST(ArraySizes, ThatNoMemoryHasAreAnError) {
  EXPECT_THROW(xp::empty({std::int64_t{1} << 40, std::int64_t{1} << 40}), OutOfMemoryError);
}

// --- views ---
TEST_P(ArrayTest, ViewsShareTheirStorage) {
  Array a = xp::arange(6).reshape({2, 3});
  for (const Array& v : {a.reshape({3, 2}), a.T(), a.swapaxes(0, 1), a.expand_dims(1), a.ravel(),
                         a.transpose({1, 0}), a.broadcast_to({4, 2, 3}),
                         a.reshape({2, 1, 3}).squeeze(), Array(a[1]), Array(a[{Slice(), 2}])}) {
    EXPECT_EQ(v.storage(), a.storage());
  }
  a.reshape({6})[5] = 50;
  EXPECT_EQ(values(a), V({0, 1, 2, 3, 4, 50}));
  a.T()[{0, 1}] = 30;
  EXPECT_EQ(values(a), V({0, 1, 2, 30, 4, 50}));
}

TEST_P(ArrayTest, ReshapeInfersOneExtent) {
  Array a = xp::arange(24).reshape({2, -1, 4});
  EXPECT_EQ(a.shape(), Shape({2, 3, 4}));
  EXPECT_EQ(a.reshape({-1}).shape(), Shape({24}));
  EXPECT_EQ(xp::zeros({0, 3}).reshape({3, -1}).shape(), Shape({3, 0}));
  EXPECT_THROW(xp::zeros({0, 3}).reshape({0, -1}), ShapeError);
  EXPECT_THROW(a.reshape({-1, -1}), ShapeError);
  EXPECT_THROW(a.reshape({5, -1}), ShapeError);
  std::string text = thrown<ShapeError>([&] { a.reshape({5, 5}); });
  EXPECT_NE(text.find("reshape"), text.npos);
  EXPECT_NE(text.find("(2, 3, 4) int64"), text.npos);
  EXPECT_NE(text.find("(5, 5)"), text.npos);
}

TEST_P(ArrayTest, ReshapeCopiesOnlyWhereStridesDoNotAllowAView) {
  Array a = xp::arange(24).reshape({2, 3, 4});
  Array part = a[{Slice(), Slice(), Slice(0, 2)}];
  Array merged = part.reshape({6, 2});
  EXPECT_EQ(merged.storage(), a.storage());
  EXPECT_EQ(values(merged), values(part));
  Array split = part.reshape({1, 2, 3, 1, 2, 1});
  EXPECT_EQ(split.storage(), a.storage());
  EXPECT_EQ(values(split), values(part));
  Array flat = part.reshape({12});
  EXPECT_NE(flat.storage(), a.storage());
  EXPECT_EQ(values(flat), values(part));
  Array reversed = a[Slice(none, none, -1)];
  EXPECT_EQ(reversed.reshape({2, 12}).storage(), a.storage());
  EXPECT_EQ(values(reversed.reshape({2, 2, 6})), values(reversed));
  EXPECT_EQ(values(a.T().reshape({4, 6})), values(a.T()));
  EXPECT_EQ(values(a.broadcast_to({2, 2, 3, 4}).reshape({48})),
            values(a.broadcast_to({2, 2, 3, 4})));
}

TEST_P(ArrayTest, AxesOfViews) {
  Array a = xp::arange(24).reshape({2, 3, 4});
  EXPECT_EQ(a.T().shape(), Shape({4, 3, 2}));
  EXPECT_EQ(a.transpose({2, 0, 1}).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(a.transpose({-1, 0, 1}).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(values(a.transpose({2, 0, 1})[1]), V({1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(a.expand_dims(-1).shape(), Shape({2, 3, 4, 1}));
  EXPECT_EQ(a.expand_dims(0).squeeze(0).shape(), a.shape());
  EXPECT_EQ(a.shape(-1), 4);
  EXPECT_THROW(a.shape(3), IndexError);
  EXPECT_THROW(a.transpose({0, 0, 1}), ShapeError);
  EXPECT_THROW(a.transpose({0, 1}), ShapeError);
  EXPECT_THROW(a.squeeze(0), ShapeError);
  EXPECT_THROW(a.broadcast_to({3, 4}), ShapeError);
  EXPECT_THROW(a.swapaxes(0, 3), IndexError);
}

// --- copies ---
TEST_P(ArrayTest, Copies) {
  Array a = xp::arange(6, float32).reshape({2, 3});
  Array copy = a.T().copy();
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_NE(copy.storage(), a.storage());
  EXPECT_EQ(values(copy), V({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(a.ascontiguous().storage(), a.storage());
  EXPECT_NE(a.T().ascontiguous().storage(), a.storage());
  EXPECT_EQ(a.astype(float32, false).storage(), a.storage());
  EXPECT_NE(a.astype(float32).storage(), a.storage());
  EXPECT_EQ(a.astype(int8).dtype(), int8);
}

TEST_P(ArrayTest, UndefinedArraysAreAnError) {
  Array nothing, a = xp::ones({2});
  EXPECT_FALSE(nothing.defined());
  EXPECT_THROW(nothing + a, ValueError);
  EXPECT_THROW(a + nothing, ValueError);
  EXPECT_THROW(nothing.sum(), ValueError);
  EXPECT_THROW(nothing.reshape({1}), ValueError);
  EXPECT_THROW(nothing.item<float>(), ValueError);
  EXPECT_THROW(xp::matmul(a, nothing), ValueError);
  EXPECT_THROW(nothing[0], ValueError);
  EXPECT_NE(thrown<ValueError>([&] { a* nothing; }).find("multiply"), std::string::npos);
}

// --- in place ---
TEST_P(ArrayTest, Fill) {
  Array a = xp::zeros({2, 3}, int32);
  a.fill(2.0);
  EXPECT_EQ(values(a), V(6, 2));
  EXPECT_THROW(a.fill(2.5), DtypeError);
  EXPECT_EQ(values(xp::zeros({2}, bool_).fill(2)), V({1, 1}));
  EXPECT_THROW(xp::zeros({2}, uint8).fill(256), ValueError);
  EXPECT_THROW(xp::zeros({1}).broadcast_to({3}).fill(1), ValueError);
  a[{Slice(), 1}].fill(9);
  EXPECT_EQ(values(a), V({2, 9, 2, 2, 9, 2}));
}

TEST_P(ArrayTest, InPlaceOperatorsWriteThroughTheStorage) {
  Array a = xp::arange(4, float32), alias = a;
  a += 1;
  a *= xp::array({1.f, 2.f, 3.f, 4.f});
  a -= xp::array({1});
  a /= 2;
  EXPECT_EQ(values(alias), V({0, 1.5, 4, 7.5}));
  Array b = xp::arange(4);
  b %= 3;
  b |= 4;
  b ^= 1;
  b &= 6;
  EXPECT_EQ(values(b), V({4, 4, 6, 4}));
  EXPECT_EQ(b.dtype(), int64);
}

TEST_P(ArrayTest, InPlaceOperatorsKeepTheKind) {
  Array i = xp::arange(3), f = xp::ones({3}, float32);
  std::string text = thrown<DtypeError>([&] { i += xp::ones({3}, float64); });
  EXPECT_NE(text.find("add: cannot write float64 into int64"), text.npos) << text;
  EXPECT_THROW(i += 0.5, DtypeError);
  EXPECT_THROW(i /= 2, DtypeError);
  f += xp::ones({3}, float64);  // same kind: narrowed
  EXPECT_EQ(f.dtype(), float32);
  EXPECT_EQ(values(f), V({2, 2, 2}));
  EXPECT_THROW(f += xp::ones({2, 3}), ShapeError);
  EXPECT_EQ(values(i), V({0, 1, 2}));
}

TEST_P(ArrayTest, OverlappingOperandsActAsIfCopiedFirst) {
  Array a = xp::arange(6);
  Array front = a[Slice(0, 5)], back = a[Slice(1, 6)];
  back += front;
  EXPECT_EQ(values(a), V({0, 1, 3, 5, 7, 9}));
  Array b = xp::arange(6);
  b[Slice(1, 6)] = b[Slice(0, 5)];
  EXPECT_EQ(values(b), V({0, 0, 1, 2, 3, 4}));
  Array c = xp::arange(5);
  c.assign(c[Slice(none, none, -1)]);
  EXPECT_EQ(values(c), V({4, 3, 2, 1, 0}));
  Array d = xp::arange(9).reshape({3, 3});
  d += d.T();
  EXPECT_EQ(values(d), V({0, 4, 8, 4, 8, 12, 8, 12, 16}));
  Array e = xp::arange(3);
  e *= e;
  EXPECT_EQ(values(e), V({0, 1, 4}));
  Array f = xp::ones({3, 3});
  f += f[0];
  f += f[{Slice(), Slice(1, 2)}];
  EXPECT_EQ(values(f), V(9, 4));
}

TEST_P(ArrayTest, Assign) {
  Array a = xp::zeros({2, 3}, float32);
  a.assign(xp::arange(3));
  EXPECT_EQ(values(a), V({0, 1, 2, 0, 1, 2}));
  a.assign(xp::ones({1, 1, 3}));
  EXPECT_EQ(values(a), V(6, 1));
  EXPECT_THROW(a.assign(xp::ones({2, 2})), ShapeError);
  EXPECT_THROW(a.assign(xp::ones({3, 2, 3})), ShapeError);
  EXPECT_THROW(xp::zeros({2}, int32).assign(xp::ones({2})), DtypeError);
  EXPECT_THROW(a.broadcast_to({4, 2, 3}).assign(a), ValueError);
}

}  // namespace
}  // namespace rensa
