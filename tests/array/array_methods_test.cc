// The methods of Array beside the routines that they are.
#include "rensa/array/random_basics.h"
#include "tests/array/arrays.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

using testing::matches;

class MethodsTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { xp::random::seed(5); }
  Array numbers() const { return xp::random::normal(0, 1, {4, 6}, float64, GetParam()); }
  static void expect_equal(const Array& got, const Array& want) {
    EXPECT_TRUE(matches(got.to(cpu()), want.to(cpu()), {1e-15, 1e-15}));
  }
};

TEST_P(MethodsTest, StatisticsAndMathematics) {
  Array a = numbers(), c = a * std::complex<double>(1, 2);
  expect_equal(a.var({.axis = 0, .ddof = 1}), xp::var(a, {.axis = 0, .ddof = 1}));
  expect_equal(a.std({.axis = 1, .keepdims = true}), xp::std(a, {.axis = 1, .keepdims = true}));
  expect_equal(a.ptp(1), a.max(1) - a.min(1));
  expect_equal(a.cumsum(1)[{Slice(), -1}], a.sum(1));
  expect_equal(a.cumprod()[-1], a.prod());
  expect_equal(a.trace(), xp::trace(a));
  expect_equal(c.conj(), xp::conjugate(c));
  EXPECT_EQ(xp::array({true}).conj().dtype(), bool_);
  expect_equal(c.real(), a);
  expect_equal(c.imag(), 2 * a);
  expect_equal(a.round(1), xp::round(a, 1));
  expect_equal(a.clip(-0.5, 0.5), xp::minimum(xp::maximum(a, -0.5), 0.5));
  c.real().fill(7);  // a view
  EXPECT_EQ((c[{1, 1}].item<std::complex<double>>().real()), 7);
}

TEST_P(MethodsTest, SortingAndSearching) {
  Array a = numbers(), sorted = a.copy(), part = a.copy();
  sorted.sort();
  expect_equal(sorted, xp::sort(a));
  expect_equal(xp::take_along_axis(a, a.argsort(0), 0), xp::sort(a, 0));
  part.partition(2, 1);
  expect_equal(part[{Slice(), 2}], sorted[{Slice(), 2}]);
  expect_equal(xp::take_along_axis(a, a.argpartition(2), 1)[{Slice(), 2}], sorted[{Slice(), 2}]);
  EXPECT_EQ(sorted[0].searchsorted(sorted[0]).to_vector<int>(),
            (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ((a > 100).nonzero()[0].size(), 0);
}

TEST_P(MethodsTest, Indexing) {
  Array a = xp::arange(6, float32, GetParam()), i = xp::array({4, 0, 4}, GetParam());
  EXPECT_EQ(a.take(i).to_vector<int>(), (std::vector<int>{4, 0, 4}));
  EXPECT_EQ(a.reshape({3, 2}).take(i % 3, 0).shape(), (Shape{3, 2}));
  EXPECT_EQ(a.compress(a > 3).to_vector<int>(), (std::vector<int>{4, 5}));
  EXPECT_EQ((i % 2).choose({a[Slice(3)], a[Slice(3)]}).to_vector<int>(),
            (std::vector<int>{0, 1, 2}));
  a.put(i, xp::array({10.f, 11.f, 12.f}, GetParam()));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{11, 1, 2, 3, 12, 5}));
  a.scatter_add(i, xp::ones({3}, float32, GetParam()));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{12, 1, 2, 3, 14, 5}));
  a.scatter_max(i, xp::full({3}, 13, float32, GetParam()));
  a.scatter_min(i, xp::full({3}, 13.5, float32, GetParam()));
  EXPECT_EQ(a[0].item<float>(), 13.f);
  EXPECT_EQ(a[4].item<float>(), 13.5f);
}

TEST_P(MethodsTest, ShapesAndBytes) {
  Array a = xp::arange(6, float32, GetParam()).reshape({2, 3});
  EXPECT_EQ(a.repeat(2).shape(), Shape{12});
  EXPECT_EQ(a.repeat(2, 0).shape(), (Shape{4, 3}));
  EXPECT_EQ(a.diagonal().to_vector<int>(), (std::vector<int>{0, 4}));
  EXPECT_EQ(a.mT().shape(), (Shape{3, 2}));
  EXPECT_NE(a.flatten().data(), a.data());
  EXPECT_EQ(a.itemsize(), 4);
  EXPECT_EQ(a.T().tobytes().substr(4, 4), a.tobytes().substr(12, 4));
  testing::TemporaryFolder folder;
  a.tofile(folder / "a.bin");
  expect_equal(xp::fromfile(folder / "a.bin", float32), a.flatten());
}

TEST_P(MethodsTest, ViewsAsOtherDtypes) {
  Array a = xp::array({1.f, -2.f, 0.f, 4.f}, GetParam());
  EXPECT_EQ(a.view(int32)[1].item<std::int64_t>(), static_cast<std::int32_t>(0xC0000000u));
  EXPECT_EQ(a.view(complex64)[1].item<std::complex<float>>(), std::complex<float>(0, 4));
  Array words = a.reshape({2, 2}).view(uint16);
  EXPECT_EQ(words.shape(), (Shape{2, 4}));
  words[{0, 1}] = 0x4000;  // the upper half of the first number
  EXPECT_EQ(a[0].item<float>(), 2.f);
  EXPECT_THROW(a[Slice(3)].view(float64), ShapeError);
  EXPECT_THROW(a[Slice(1, 3)].view(complex128), ShapeError);
  EXPECT_THROW(a[Slice(none, none, 2)].view(uint8), ShapeError);
  EXPECT_THROW(a.view(uint8)[Slice(1, 5)].view(float32), ShapeError) << "not aligned";
  EXPECT_THROW(a[0].view(uint16), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Devices, MethodsTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) {
                           return std::string(info.param.is_cpu() ? "cpu" : "cuda");
                         });

}  // namespace
}  // namespace rensa
