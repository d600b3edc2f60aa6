// Sorts, searches, sets, quantiles and histograms: NumPy's answers
// (tests/answers/make_sorting_cases.py), and what their files are too small for.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/array/sorting.h"

namespace rensa {
namespace {

using testing::axes_of;
using testing::Call;
using testing::Closeness;
using testing::replay;
using testing::Routines;
using testing::sizes;
using testing::thrown;
using Arrays = std::vector<Array>;

Closeness exactly(const Call&, Dtype) { return {}; }

TEST(Sorting, AgreesWithNumPy) {
  Routines routines = {
      {"sort", [](const Call& c) { return Arrays{xp::sort(c.in[0], c.axis())}; }},
      {"argsort", [](const Call& c) { return Arrays{xp::argsort(c.in[0], c.axis())}; }},
      {"sort_flat", [](const Call& c) { return Arrays{xp::sort(c.in[0], none)}; }},
      {"argsort_flat", [](const Call& c) { return Arrays{xp::argsort(c.in[0], none)}; }},
      {"msort", [](const Call& c) { return Arrays{xp::msort(c.in[0])}; }},
      {"sort_complex", [](const Call& c) { return Arrays{xp::sort_complex(c.in[0])}; }},
      {"lexsort", [](const Call& c) { return Arrays{xp::lexsort(c.in, c.axis())}; }},
      {"lexsort_rows", [](const Call& c) { return Arrays{xp::lexsort(c.in[0])}; }},
      {"partition_raises", [](const Call& c) { return Arrays{xp::partition(c.in[0], 4)}; }},
  };
  replay("numpy_sorting.txt", routines, 1000, exactly);
}

TEST(Searching, AgreesWithNumPy) {
  Routines routines = {
      {"searchsorted",
       [](const Call& c) {
         return Arrays{xp::searchsorted(c.in[0], c.in[1], c.text("side"),
                                        c.in.size() > 2 ? c.in[2] : Array())};
       }},
      {"digitize",
       [](const Call& c) { return Arrays{xp::digitize(c.in[0], c.in[1], c.flag("right"))}; }},
  };
  replay("numpy_searching.txt", routines, 350, exactly);
}

Arrays all_of(const xp::UniqueResult& r) {
  Arrays arrays;
  for (const Array& a : {r.values, r.indices, r.inverse, r.counts}) {
    if (a.defined()) arrays.push_back(a);
  }
  return arrays;
}

TEST(Sets, AgreeWithNumPy) {
  auto of_two = [](auto routine) {
    return [routine](const Call& c) {
      return Arrays{routine(c.in[0], c.in[1], c.flag("assume_unique"))};
    };
  };
  Routines routines = {
      {"unique", [](const Call& c) { return Arrays{xp::unique(c.in[0])}; }},
      {"unique_full",
       [](const Call& c) {
         return all_of(xp::unique(c.in[0], {.return_index = true,
                                            .return_inverse = true,
                                            .return_counts = true,
                                            .equal_nan = c.integer("equal_nan", 1) != 0}));
       }},
      {"unique_axis",
       [](const Call& c) {
         return all_of(xp::unique(c.in[0], {.return_index = true,
                                            .return_inverse = true,
                                            .return_counts = true,
                                            .axis = c.axis()}));
       }},
      {"unique_all", [](const Call& c) { return all_of(xp::unique_all(c.in[0])); }},
      {"unique_counts", [](const Call& c) { return all_of(xp::unique_counts(c.in[0])); }},
      {"unique_inverse", [](const Call& c) { return all_of(xp::unique_inverse(c.in[0])); }},
      {"unique_values", [](const Call& c) { return Arrays{xp::unique_values(c.in[0])}; }},
      {"isin",
       [](const Call& c) { return Arrays{xp::isin(c.in[0], c.in[1], false, c.flag("invert"))}; }},
      {"intersect1d", of_two(xp::intersect1d)},
      {"setdiff1d", of_two(xp::setdiff1d)},
      {"setxor1d", of_two(xp::setxor1d)},
      {"union1d", [](const Call& c) { return Arrays{xp::union1d(c.in[0], c.in[1])}; }},
      {"intersect1d_indices",
       [](const Call& c) {
         auto [values, left, right] = xp::intersect1d_indices(c.in[0], c.in[1]);
         return Arrays{values, left, right};
       }},
  };
  replay("numpy_sets.txt", routines, 1400, exactly);
}

TEST(OrderStatistics, AgreeWithNumPy) {
  using Median = Array (*)(const Array&, const xp::AxisOptions&);
  using Quantile = Array (*)(const Array&, const xp::Shares&, const xp::QuantileOptions&);
  auto median = [](Median routine) {
    return [routine](const Call& c) {
      return Arrays{routine(c.in[0], {.axis = axes_of(c), .keepdims = c.flag("keepdims")})};
    };
  };
  auto quantile = [](Quantile routine) {
    return [routine](const Call& c) {
      return Arrays{routine(
          c.in[0], c.in[1],
          {.axis = axes_of(c), .method = c.text("method"), .keepdims = c.flag("keepdims")})};
    };
  };
  auto weighted = [](Quantile routine) {
    return [routine](const Call& c) {
      return Arrays{routine(c.in[0], c.in[1].to_vector<double>(),
                            {.axis = axes_of(c), .method = "inverted_cdf", .weights = c.in[2]})};
    };
  };
  Routines routines = {
      {"median", median(xp::median)},
      {"nanmedian", median(xp::nanmedian)},
      {"quantile", quantile(xp::quantile)},
      {"percentile", quantile(xp::percentile)},
      {"nanquantile", quantile(xp::nanquantile)},
      {"nanpercentile", quantile(xp::nanpercentile)},
      {"weighted_quantile", weighted(xp::quantile)},
      {"weighted_nanquantile", weighted(xp::nanquantile)},
  };
  replay("numpy_order_statistics.txt", routines, 1000, [](const Call&, Dtype d) {
    return Closeness{4 * testing::tolerance(d), 8 * testing::tolerance(d), false};
  });
}

TEST(Histograms, AgreeWithNumPy) {
  Routines routines = {
      {"bincount",
       [](const Call& c) {
         return Arrays{
             xp::bincount(c.in[0], c.in.size() > 1 ? c.in[1] : Array(), c.integer("minlength"))};
       }},
      {"histogram",
       [](const Call& c) {
         xp::HistogramRange range;
         if (c.has("low")) range = {{c.real("low"), c.real("high")}};
         auto r = xp::histogram(c.in[0], c.integer("bins"),
                                {.range = range, .density = c.flag("density")});
         return Arrays{r.hist, r.bin_edges};
       }},
      {"histogram_edges",
       [](const Call& c) {
         xp::HistogramOptions options;
         if (c.in.size() > 2) options.weights = c.in[2];
         auto r = xp::histogram(c.in[0], c.in[1], options);
         return Arrays{r.hist, r.bin_edges};
       }},
      {"histogram2d",
       [](const Call& c) {
         xp::HistogramDdOptions options = {.density = c.flag("density")};
         if (c.flag("ranged")) options.range = {{{-2, 2}}, {{-1, 3}}};
         if (c.in.size() > 2) options.weights = c.in[2];
         auto r = xp::histogram2d(c.in[0], c.in[1], c.integer("bins"), options);
         return Arrays{r.hist, r.edges[0], r.edges[1]};
       }},
  };
  replay("numpy_histograms.txt", routines, 500);
}

// Numbers of many equal ones, NaN and zeros of both signs among floats.
Array numbers(std::int64_t n, Dtype dtype, Device device, int seed = 3) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<double> values(static_cast<std::size_t>(n));
  std::int64_t span = std::max<std::int64_t>(3, n / 3);
  for (double& v : values) {
    v = static_cast<double>(random() % static_cast<unsigned>(span)) - static_cast<double>(span / 2);
    if (dtype_kind(dtype) == 'f' && random() % 50 == 0) v = std::nan("");
    if (dtype_kind(dtype) == 'f' && random() % 50 == 0) v = -0.0;
    if (dtype_kind(dtype) == 'f' && random() % 50 == 0) v = -std::nan("");
  }
  if (dtype_kind(dtype) == 'u' || dtype == bool_) {
    for (double& v : values) v = std::abs(v);
  }
  Array a = xp::array(values).astype(dtype);
  if (dtype_kind(dtype) == 'c') {
    for (double& v : values) v = static_cast<double>(random() % 5);
    a = a + xp::array(values).astype(dtype) * xp::full({}, std::complex<double>(0, 1), dtype);
  }
  return a.to(device);
}

constexpr Dtype kDtypes[] = {bool_,    int8,    int16,   int32,     int64,
                             uint8,    uint16,  uint32,  uint64,    float16,
                             bfloat16, float32, float64, complex64, complex128};

// NumPy's order by comparison, of values read as complex128 (or int64).
template <class T> bool before(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return a < b;
  } else {
    return a.real() < b.real() || (a.real() == a.real() && b.real() != b.real()) ||
           (a.real() == b.real() && a.imag() < b.imag());
  }
}

template <class T> std::vector<std::int64_t> wanted_order(const Array& a, bool descending) {
  auto values = a.to_vector<T>();
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t k) {
    auto x = static_cast<std::size_t>(i), y = static_cast<std::size_t>(k);
    return descending ? before(values[y], values[x]) : before(values[x], values[y]);
  });
  return order;
}

std::vector<std::int64_t> wanted_order(const Array& a, bool descending) {
  char kind = dtype_kind(a.dtype());
  return kind == 'f' || kind == 'c' ? wanted_order<std::complex<double>>(a, descending)
                                    : wanted_order<std::int64_t>(a, descending);
}

TEST(Sorting, LongRowsOfEveryDtype) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : kDtypes) {
      for (std::int64_t n : sizes()) {
        if (n > 5000 && n != 131073 && dtype != float32) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(n) + device.str());
        Array a = numbers(n, dtype, device);
        for (bool descending : {false, true}) {
          std::vector<std::int64_t> want = wanted_order(a, descending);
          ASSERT_EQ(xp::argsort(a, {.axis = 0, .descending = descending}).to_vector<std::int64_t>(),
                    want);
          Array sorted = xp::sort(a, {.axis = 0, .descending = descending});
          ASSERT_TRUE(
              testing::matches(sorted.to(cpu()), xp::take(a.to(cpu()), xp::array(want)), {}));
        }
      }
    }
  }
}

TEST(Sorting, ManyRowsAndOtherAxes) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {int8, float16, float32, int64, float64, complex64, complex128}) {
      Array a = numbers(300 * 70, dtype, device).reshape({300, 70});
      Array by_row = xp::sort(a, 1), by_column = xp::sort(a, 0);
      Array order = xp::argsort(a, {.axis = 1, .descending = true});
      for (int i = 0; i < 70; i += 9) {
        Array row = xp::sort(Array(a[i])), column = xp::sort(Array(a[{Slice(), i}]));
        EXPECT_TRUE(testing::matches(Array(by_row[i]).to(cpu()), row.to(cpu()), {}));
        EXPECT_TRUE(
            testing::matches(Array(by_column[{Slice(), i}]).to(cpu()), column.to(cpu()), {}));
        EXPECT_EQ(Array(order[i]).to_vector<std::int64_t>(), wanted_order(a[i], true));
      }
    }
  }
}

TEST(Sorting, NansOfEitherSignComeLast) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      double nan = std::nan("");
      Array a = xp::array({-nan, 2., -nan, -HUGE_VAL, nan, HUGE_VAL, -1.}).to(device).astype(dtype);
      std::vector<double> got = xp::sort(a).to_vector<double>();
      EXPECT_EQ(std::vector<double>(got.begin(), got.begin() + 4),
                (std::vector<double>{-HUGE_VAL, -1, 2, HUGE_VAL}));
      for (std::size_t i = 4; i < 7; ++i) EXPECT_TRUE(std::isnan(got[i]));
      Array negative = xp::full({1000}, -nan, dtype, device);
      EXPECT_TRUE(xp::all(xp::isnan(xp::sort(negative))).item<bool>());
    }
  }
}

TEST(Sorting, InPlace) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({{3, 1, 2}, {9, 7, 8}}).to(device);
    detail::sort_in_place(a);
    EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{1, 2, 3, 7, 8, 9}));
    detail::sort_in_place(a.transpose(), 1, true);
    EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{7, 8, 9, 1, 2, 3}));
    EXPECT_THROW(detail::sort_in_place(a[0].broadcast_to({2, 3})), ValueError);
  }
}

TEST(Sorting, Partitions) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : kDtypes) {
      Array a = numbers(3 * 1001, dtype, device).reshape({3, 1001});
      Array sorted = xp::sort(a);
      for (std::int64_t kth : {0, 500, 1000, -1}) {
        Array part = xp::partition(a, kth);
        Array places = xp::argpartition(a, kth);
        auto at = static_cast<int>(kth < 0 ? kth + 1001 : kth);
        auto same = [&](const Array& x, const Array& y) {
          return testing::matches(x.to(cpu()), y.to(cpu()), {});
        };
        EXPECT_TRUE(same(part[{Slice(), at}], sorted[{Slice(), at}]));
        EXPECT_TRUE(same(xp::sort(part[{Slice(), Slice(at)}]), sorted[{Slice(), Slice(at)}]));
        EXPECT_TRUE(same(xp::sort(part), sorted));
        for (int row : {0, 2}) {
          Array taken = xp::take(a[row], places[row]);
          EXPECT_TRUE(same(taken[at], sorted[{row, at}]));
          EXPECT_TRUE(same(xp::sort(taken[Slice(at)]), sorted[{row, Slice(at)}]));
          EXPECT_TRUE(same(xp::sort(taken), sorted[row]));
        }
      }
      EXPECT_TRUE(testing::matches(Array(xp::partition(a, {3, 700})[{Slice(), 700}]).to(cpu()),
                                   Array(sorted[{Slice(), 700}]).to(cpu()), {}));
    }
  }
}

TEST(Searching, NumbersOfEverySize) {
  for (Device device : testing::test_devices()) {
    for (std::int64_t n : sizes()) {
      Array sorted = xp::sort(numbers(n, float32, device)), v = numbers(5000, float32, device, 9);
      auto s = sorted.to_vector<float>(), values = v.to_vector<float>();
      auto left = xp::searchsorted(sorted, v).to_vector<std::int64_t>();
      auto right = xp::searchsorted(sorted, v, "right").to_vector<std::int64_t>();
      auto less = [](float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(left[i], std::lower_bound(s.begin(), s.end(), values[i], less) - s.begin());
        ASSERT_EQ(right[i], std::upper_bound(s.begin(), s.end(), values[i], less) - s.begin());
      }
    }
    EXPECT_EQ(xp::searchsorted(xp::array({1, 2, 3}).to(device), 2.5).item<int>(), 2);
    // The nearest places stand for those out of range.
    xp::searchsorted(xp::array({1, 2}).to(device), 2, "left", xp::array({99, -7}).to(device)).get();
  }
}

TEST(Sets, LargeArrays) {
  for (Device device : testing::test_devices()) {
    std::int64_t n = testing::quick() ? 3000 : 300000;
    Array a = xp::remainder(xp::arange(n, int64, device) * 7919, 1009);
    xp::UniqueResult r = xp::unique(a, {true, true, true});
    EXPECT_EQ(r.values.to_vector<int>(), xp::arange(1009).to_vector<int>());
    EXPECT_TRUE(xp::array_equal(xp::take(a, r.indices), r.values));
    EXPECT_TRUE(xp::array_equal(xp::take(r.values, r.inverse), a));
    EXPECT_TRUE(xp::array_equal(r.counts, xp::bincount(a)));
    EXPECT_EQ(r.indices.to_vector<int>()[7919 % 1009], 1);  // the first of many
    EXPECT_EQ(xp::unique(xp::array({2.f, 1.f, 2.f}).to(device).astype(bfloat16)).to_vector<int>(),
              (std::vector<int>{1, 2}));
  }
}

// The edges that NumPy's own arithmetic of the dtype gives (numpy.histogram_bin_edges of NumPy 2).
TEST(Histograms, EdgesOfNarrowDtypesAreNumPys) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({0.469548f, 99.0339f, 3.3f}).to(device);
    auto edges = [&](Dtype dtype, xp::HistogramRange range = {}) {
      return xp::histogram_bin_edges(a.astype(dtype), 4, range).astype(float64).to_vector<double>();
    };
    EXPECT_EQ(edges(float32),
              (std::vector<double>{0.46954798698425293, 25.110633850097656, 49.7517204284668,
                                   74.39281463623047, 99.03389739990234}));
    EXPECT_EQ(edges(float16),
              (std::vector<double>{0.469482421875, 25.109375, 49.75, 74.4375, 99.0625}));
    EXPECT_EQ(edges(float32, {{0.1, 99.}}),
              (std::vector<double>{0.10000000149011612, 24.825000762939453, 49.54999923706055,
                                   74.2750015258789, 99}));
  }
}

TEST(Histograms, LargeArrays) {
  for (Device device : testing::test_devices()) {
    std::int64_t n = testing::quick() ? 5000 : 400000;
    for (std::int64_t bins : {1, 7, 2000, 5000, 100000}) {
      Array x = xp::remainder(xp::arange(n, int64, device) * 7919, bins);
      std::vector<std::int64_t> want(static_cast<std::size_t>(bins));
      for (std::int64_t i = 0; i < n; ++i) ++want[static_cast<std::size_t>(i * 7919 % bins)];
      for (Dtype dtype : {int32, uint64, int64}) {
        ASSERT_EQ(xp::bincount(x.astype(dtype), {}, bins).to_vector<std::int64_t>(), want);
      }
      Array weights = xp::full({n}, 0.5, device);
      std::vector<double> halves(want.begin(), want.end());
      for (double& h : halves) h /= 2;
      ASSERT_EQ(xp::bincount(x, weights, bins).to_vector<double>(), halves);
      auto top = static_cast<double>(bins);
      xp::HistogramRange range = {{0, top}};
      ASSERT_EQ(
          xp::histogram(x.astype(float32), bins, {.range = range}).hist.to_vector<std::int64_t>(),
          want);
      Array edges = xp::arange(bins + 1, int64, device);
      ASSERT_EQ(xp::histogram(x, edges).hist.to_vector<std::int64_t>(), want);
      Array complex = weights.astype(complex128) * xp::full({}, std::complex<double>(0, 2), device);
      Array sums = xp::histogram(x, edges, {.weights = complex}).hist;
      ASSERT_EQ(sums.dtype(), complex128);
      ASSERT_EQ(sums.to_vector<std::complex<double>>()[0],
                std::complex<double>(0, static_cast<double>(want[0])));
    }
  }
}

TEST(Histograms, OfSeveralCoordinates) {
  for (Device device : testing::test_devices()) {
    Array x = xp::array({0.5, 1.5, 1.5, 9., std::nan(""), 2.}).to(device);
    Array y = xp::array({0.5, 0.5, 1., 1., 1., -1.}).to(device);
    Array z = xp::array({1., 1., 1., 1., 1., 1.}).to(device);
    Array weights = xp::array({1., 2., 3., 4., 5., 6.}).to(device);
    Array sample = xp::stack(std::vector<Array>{x, y, z}, 1);
    Array thirds = xp::array({0., 1., 2., 3.}).to(device), pair = xp::array({0., 1.}).to(device);
    auto r = xp::histogramdd(sample, {thirds, pair, pair}, {.weights = weights});
    EXPECT_EQ(r.hist.shape(), (Shape{3, 1, 1}));
    EXPECT_EQ(r.hist.to_vector<double>(), (std::vector<double>{1, 5, 0}));
    auto density = xp::histogramdd(sample, {thirds, pair, pair}, {.density = true});
    EXPECT_EQ(density.hist.to_vector<float>(), (std::vector<float>{1 / 3.f, 2 / 3.f, 0}));
    EXPECT_EQ(xp::histogram2d(x, y, thirds, pair).hist.to_vector<int>(),
              (std::vector<int>{1, 2, 0}));
    Array edges = xp::histogram_bin_edges(xp::array({1, 5}).to(device), 4);
    EXPECT_EQ(edges.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5}));
    EXPECT_EQ(edges.dtype(), float64);
  }
}

TEST(Sets, OfBfloatAndOldNames) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({{1.f, 2.f}, {3.f, 1.f}}).to(device).astype(bfloat16);
    Array test = xp::array({1., 7.}).to(device);
    EXPECT_EQ(xp::in1d(a, test).to_vector<int>(), (std::vector<int>{1, 0, 0, 1}));
    EXPECT_EQ(xp::searchsorted(xp::sort(a, none), test).to_vector<int>(), (std::vector<int>{0, 4}));
    EXPECT_EQ(xp::union1d(a, test).dtype(), float64);
  }
}

TEST(Sorting, LexsortOfLargeArrays) {
  for (Device device : testing::test_devices()) {
    std::int64_t n = testing::quick() ? 3000 : 100000;
    Array first = xp::remainder(xp::arange(n, int64, device) * 7919, 10);
    Array second = numbers(n, float32, device);
    Array order = xp::lexsort({second, first});
    auto places = order.to_vector<std::int64_t>();
    auto major = first.to_vector<int>();
    auto minor = xp::argsort(xp::argsort(second)).to_vector<std::int64_t>();  // ranks
    auto at = [](const auto& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
    for (std::size_t i = 1; i < places.size(); ++i) {
      std::int64_t p = places[i - 1], q = places[i];
      ASSERT_TRUE(at(major, p) < at(major, q) ||
                  (at(major, p) == at(major, q) && at(minor, p) < at(minor, q)));
    }
  }
}

TEST(OrderStatistics, BfloatAndLargeArrays) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({3.f, 1.f, 2.f, 4.f}).to(device).astype(bfloat16);
    EXPECT_EQ(xp::median(a).dtype(), bfloat16);
    EXPECT_EQ(xp::median(a).item<double>(), 2.5);
    EXPECT_EQ(xp::quantile(a, 0.5).dtype(), bfloat16);
    Array wide = xp::remainder(xp::arange(300001, int64, device) * 7919, 300001);
    EXPECT_EQ(xp::median(wide).item<double>(), 150000);
    EXPECT_EQ(xp::percentile(wide, 25).item<double>(), 75000);
    EXPECT_EQ(xp::median(wide[Slice(1, none)].astype(float32)).item<double>(), 150000.5);
    // Between -100 and 100 lie more than an int8 holds.
    EXPECT_EQ(xp::quantile(xp::array({-100, 100}).to(device).astype(int8), 0.25).item<double>(),
              -50);
  }
}

TEST(Sorting, ErrorsNameTheRoutine) {
  Array a = xp::ones({2, 3});
  auto names = [](const std::string& text, const char* name) {
    return text.find(std::string(name) + ":") != std::string::npos;
  };
  EXPECT_TRUE(names(thrown<IndexError>([&] { xp::sort(a, 2); }), "sort"));
  EXPECT_TRUE(names(thrown<IndexError>([&] { xp::argsort(a, -3); }), "argsort"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::sort(a, {0, 1}); }), "sort"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::sort(Array()); }), "sort"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::partition(a, 3); }), "partition"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::argpartition(a, -4); }), "argpartition"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::lexsort(std::vector<Array>()); }), "lexsort"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::searchsorted(a, a); }), "searchsorted"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::searchsorted(a[0], a, "up"); }), "searchsorted"));
  EXPECT_TRUE(names(thrown<ValueError>([&] {
                      xp::digitize(a, xp::array({1, 3, 2}));
                    }),
                    "digitize"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::cumulative_sum(a); }), "cumulative_sum"));
  EXPECT_TRUE(names(thrown<IndexError>([&] { xp::cumsum(a, 2); }), "cumsum"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::quantile(a, 2); }), "quantile"));
  EXPECT_TRUE(names(thrown<DtypeError>([&] { xp::bincount(a[0]); }), "bincount"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::histogram(a, 0); }), "histogram"));
  EXPECT_TRUE(names(thrown<ValueError>([&] {
                      xp::histogram(xp::array({1., HUGE_VAL}));
                    }),
                    "histogram"));
  EXPECT_TRUE(names(thrown<ValueError>([&] { xp::histogram(a, xp::array({2, 1})); }), "histogram"));
  EXPECT_TRUE(names(thrown<ShapeError>([&] { xp::histogramdd(a, {2, 2}); }), "histogramdd"));
}

}  // namespace
}  // namespace rensa
