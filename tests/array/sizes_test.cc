// Sizes, counts and offsets that no array can have: typed errors in place of sums that wrap around,
// and no work as long as a number says.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rensa/array/random.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

class SizesTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, SizesTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// One element that stands at so many places.
Array wide(std::int64_t n) { return xp::ones({1}).broadcast_to({n}); }

struct Refused {
  const char* text;  // what the error names
  std::function<void()> call;
};

template <class Exception> void expect_refused(const std::vector<Refused>& table) {
  for (const Refused& row : table) {
    SCOPED_TRACE(row.text);
    EXPECT_THAT(thrown<Exception>(row.call), ::testing::HasSubstr(row.text));
  }
}

TEST_P(SizesTest, SumsAndProductsThatWrapAroundAreNamed) {
  Array b = wide(kHuge), v = xp::ones({4}), a = xp::ones({2, 3});
  expect_refused<ShapeError>({
      {"concatenate",
       [&] {
         xp::concatenate({b, b, b, b, xp::ones({3})});
       }},
      {"concatenate",
       [&] {
         xp::hstack({b, b, b, b, xp::ones({3})});
       }},
      {"concatenate", [&] { xp::append(b, b, 0); }},
      {"concatenate", [&] { xp::diff(b, 1, 0, b, b); }},
      {"pad",
       [&] {
         xp::pad(xp::ones({100}), {kMost - 50, kMost});
       }},
      {"pad",
       [&] {
         xp::pad(xp::ones({100}), {kMost, std::int64_t{0}}, "edge");
       }},
      {"tile", [&] { xp::tile(v, kHuge); }},
      {"tile",
       [&] {
         xp::tile(a, {2, kMost});
       }},
      {"repeat", [&] { xp::repeat(v, kHuge); }},
      {"repeat",
       [&] {
         xp::repeat(xp::ones({2}), {kHuge, kHuge});
       }},
      {"kron", [&] { xp::kron(b, v); }},
      {"diag", [&] { xp::diag(v, kMost); }},
      {"diag", [&] { xp::diag(v, kLeast); }},
      {"diagflat", [&] { xp::diagflat(a, -kMost); }},
      {"diag_indices", [] { xp::diag_indices(2, std::numeric_limits<int>::max()); }},
      {"tril_indices", [&] { xp::tril_indices(kMost); }},
      {"triu_indices", [&] { xp::triu_indices(kHuge, 0, 4); }},
      {"histogram", [&] { xp::histogram(v, kMost); }},
      {"bincount", [&] { xp::bincount(xp::array({kMost})); }},
      {"ravel_multi_index",
       [&] {
         Array i = xp::array({std::int64_t{1} << 40});
         xp::ravel_multi_index({i, i}, {std::int64_t{1} << 41, std::int64_t{1} << 41});
       }},
      {"unravel_index",
       [&] {
         xp::unravel_index(xp::array({1}), {kHuge, kHuge});
       }},
      {"unravel_index",
       [&] {
         xp::unravel_index(xp::array({0}), {-1, -1});
       }},
      {"as_strided",
       [&] {
         xp::lib::stride_tricks::as_strided(xp::ones({16}), {std::int64_t{1} << 33},
                                            {std::int64_t{1} << 31});
       }},
      {"as_strided", [&] { xp::lib::stride_tricks::as_strided(v, {5}, {kHuge}); }},
      {"as_strided", [&] { xp::lib::stride_tricks::as_strided(v, {3}, {kLeast}); }},
      {"as_strided", [&] { xp::lib::stride_tricks::as_strided(v, {2}, {-4}); }},
  });
}

TEST_P(SizesTest, NumbersWithoutAMeaningAreNamed) {
  Array v = xp::ones({4});
  expect_refused<ValueError>({
      {"arange", [] { xp::arange(0, std::uint64_t{1} << 63 | 5); }},
      {"arange", [] { xp::arange(0, kLeast, -1); }},
      {"arange", [] { xp::arange(kLeast, kMost); }},
      {"geomspace", [] { xp::geomspace(-1, 1, 3); }},
      {"geomspace", [] { xp::geomspace(1, -1, 3); }},
      {"GridAxis", [] { xp::mgrid({xp::GridAxis::points(0, 1, -5)}); }},
      {"vander", [&] { xp::vander(v, -1); }},
      {"linalg.norm", [&] { xp::linalg::norm(v, static_cast<const char*>(nullptr)); }},
      {"choice", [] { xp::random::choice(5, {-1}, false); }},
  });
}

TEST_P(SizesTest, WhatNoMemoryHoldsIsOutOfMemory) {
  Array v = xp::ones({4});
  for (const Refused& row : std::vector<Refused>{
           {"zeros", [] { xp::zeros({kMost}); }},
           {"arange", [] { xp::arange(kMost); }},
           {"linspace", [] { xp::linspace(0, 1, kMost); }},
           {"eye", [] { xp::eye(kMost); }},
           {"tri", [] { xp::tri(kMost, kMost, kLeast); }},
           {"repeat",
            [&] {
              xp::repeat(v, {kHuge, 0, 0, 0});
            }},
           {"array_split", [&] { xp::array_split(v, kHuge); }},
           {"split", [&] { xp::split(xp::ones({0}), kHuge); }},
           {"hsplit", [&] { xp::hsplit(xp::ones({0}), kMost); }},
           {"unstack", [] { xp::unstack(wide(kMost)); }},
           {"kaiser", [] { xp::kaiser(kMost, 14); }},
           {"hamming", [] { xp::hamming(kMost); }},
           {"vander", [&] { xp::vander(v, kHuge); }},
           {"histogram", [&] { xp::histogram(v, kMost - 1); }},
           {"bytes", [] { xp::random::bytes(kMost); }},
           {"permutation", [] { xp::random::permutation(kMost); }},
           {"indices",
            [] {
              xp::indices({kHuge, 2});
            }},
       }) {
    SCOPED_TRACE(row.text);
    EXPECT_THROW(row.call(), OutOfMemoryError);
  }
}

TEST_P(SizesTest, DiagonalsBeyondTheMatrixAreEmpty) {
  Array a = xp::arange(10).reshape({5, 2});
  for (std::int64_t k : {kLeast, kLeast + 1, std::int64_t{-5}, std::int64_t{2}, kMost}) {
    EXPECT_EQ(xp::linalg::diagonal(a, k).shape(), Shape({0})) << k;
    EXPECT_EQ(xp::diagonal(a, k).shape(), Shape({0})) << k;
    EXPECT_EQ(xp::linalg::trace(a, k).item<int>(), 0) << k;
    EXPECT_EQ(xp::trace(a, k).item<int>(), 0) << k;
    EXPECT_EQ(xp::tril(a, k).sum().item<int>(), k > 0 ? 45 : 0) << k;
    EXPECT_EQ(xp::triu(a, k).sum().item<int>(), k < 0 ? 45 : 0) << k;
    EXPECT_EQ(xp::tri(3, 4, k).sum().item<int>(), k > 2 ? 12 : k == 2 ? 11 : 0) << k;
    EXPECT_EQ(xp::tril_indices(3, k, 2)[0].size(), k > 0 ? 6 : 0) << k;
    EXPECT_EQ(xp::triu_indices(3, k, 2)[0].size(), k < 0 ? 6 : 0) << k;
    EXPECT_EQ(xp::eye(3, 3, k).sum().item<int>(), k == 2 ? 1 : 0) << k;
  }
  EXPECT_EQ(xp::linalg::diagonal(a, -3).to_vector<int>(), std::vector<int>({6, 9}));
}

TEST_P(SizesTest, StepsBeyondTheAxisTakeOneElement) {
  Array a = xp::arange(5);
  for (std::int64_t step : {kMost, std::int64_t{7}}) {
    EXPECT_EQ(a[Slice(none, none, step)].to_vector<int>(), std::vector<int>({0}));
    EXPECT_EQ(a[Slice(none, none, -step)].to_vector<int>(), std::vector<int>({4}));
  }
  EXPECT_EQ(a[Slice(none, none, kLeast)].to_vector<int>(), std::vector<int>({4}));
  EXPECT_EQ(a[Slice(kLeast, kMost)].size(), 5);
}

// Each has an end that its number of steps does not have.
TEST_P(SizesTest, RepetitionsEndWhereNothingIsLeft) {
  constexpr int kMany = std::numeric_limits<int>::max();
  Array p = xp::array({1., 2., 3.});
  Array none = xp::polyder(p, kMany);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.dtype(), float64);
  EXPECT_EQ(xp::polyder(xp::array({1, 2}), kMany).dtype(), int64);
  EXPECT_EQ(xp::polyder(p, 2).to_vector<double>(), std::vector<double>({2}));
  EXPECT_EQ(xp::polyder(p, 3).size(), 0);
  EXPECT_EQ(xp::polyder(p, 0).to_vector<double>(), std::vector<double>({1, 2, 3}));

  EXPECT_EQ(xp::diff(p, kMany).size(), 0);
  EXPECT_EQ(xp::diff(xp::ones({2, 3}, bool_), kMany, 0).shape(), Shape({0, 3}));
  EXPECT_EQ(xp::diff(xp::ones({2, 3}, bool_), kMany, 0).dtype(), bool_);
  EXPECT_EQ(xp::diff(p, 2).to_vector<double>(), std::vector<double>({0}));
  EXPECT_EQ(xp::diff(p, 3).size(), 0);

  Array integral = xp::polyint(p, 100000);
  EXPECT_EQ(integral.size(), 100003);
  EXPECT_EQ(xp::count_nonzero(integral).item<int>(), 0);
  // numpy.polyint([1., 2., 3.], 3)
  EXPECT_TRUE(testing::matches(xp::polyint(p, 3).to(cpu()),
                               xp::array({1 / 60., 2 / 24., 3 / 6., 0., 0., 0.}, cpu()),
                               {1e-15, 0}));
  double inf = std::numeric_limits<double>::infinity();
  Array kept = xp::polyint(xp::array({inf, std::nan("")}), 2000);
  EXPECT_EQ(kept[0].item<double>(), inf);
  EXPECT_TRUE(std::isnan(kept[1].item<double>()));
}

TEST_P(SizesTest, RangesOfUint64) {
  std::uint64_t start = std::uint64_t{1} << 63;
  Array a = xp::arange(start, start + 3);
  EXPECT_EQ(a.dtype(), uint64);
  EXPECT_EQ(a.to_vector<std::uint64_t>(),
            std::vector<std::uint64_t>({start, start + 1, start + 2}));
  EXPECT_EQ(xp::arange(kLeast, kLeast + 2).to_vector<std::int64_t>(),
            std::vector<std::int64_t>({kLeast, kLeast + 1}));
  EXPECT_EQ(xp::arange(kMost, kMost - 3, -1).size(), 3);
}

// numpy.kaiser(5, beta)
TEST_P(SizesTest, KaisersWindowOfAnyBeta) {
  double inf = std::numeric_limits<double>::infinity();
  Array want = xp::array({7.72686684e-06, 1.64932188e-01, 1.0, 1.64932188e-01, 7.72686684e-06});
  EXPECT_TRUE(testing::matches(xp::kaiser(5, 14), want, {1e-8, 0}));
  EXPECT_TRUE(testing::matches(xp::kaiser(5, -14), want, {1e-8, 0}));
  EXPECT_EQ(xp::kaiser(3, 0).to_vector<double>(), std::vector<double>({1, 1, 1}));
  EXPECT_EQ(xp::kaiser(3, 1e5).to_vector<double>(), std::vector<double>({0, 1, 0}));
  EXPECT_TRUE(testing::matches(xp::kaiser(3, 700).to(cpu()),
                               xp::array({6.53768534e-303, 1., 6.53768534e-303}, cpu()),
                               {1e-8, 0}));
  EXPECT_EQ(xp::kaiser(1, 3).to_vector<double>(), std::vector<double>({1}));
  EXPECT_EQ(xp::kaiser(kLeast, 3).size(), 0);
  EXPECT_TRUE(xp::isnan(xp::kaiser(3, inf)).all().item<bool>());
}

}  // namespace
}  // namespace rensa
