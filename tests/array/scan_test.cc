// Running sums and products: NumPy's answers (tests/answers/make_sorting_cases.py), and what their
// file is too small for.
#include <limits>

#include "rensa/array/random_basics.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/signs.h"
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

TEST(Scans, AgreeWithNumPy) {
  using Scan = Array (*)(const Array&, const xp::ScanOptions&);
  using Cumulative = Array (*)(const Array&, const xp::CumulativeOptions&);
  auto with = [](Scan routine) {
    return [routine](const Call& c) {
      std::optional<Dtype> dtype;
      if (c.has("dtype")) dtype = parse_dtype(c.text("dtype"));
      return Arrays{routine(c.in[0], {.axis = axes_of(c), .dtype = dtype})};
    };
  };
  auto cumulative = [](Cumulative routine) {
    return [routine](const Call& c) {
      return Arrays{routine(c.in[0], {.axis = axes_of(c), .include_initial = c.flag("initial")})};
    };
  };
  Routines routines = {
      {"cumsum", with(xp::cumsum)},
      {"cumprod", with(xp::cumprod)},
      {"nancumsum", with(xp::nancumsum)},
      {"nancumprod", with(xp::nancumprod)},
      {"cumulative_sum", cumulative(xp::cumulative_sum)},
      {"cumulative_prod", cumulative(xp::cumulative_prod)},
  };
  // NumPy rounds each sum of float16; here only the results are.
  replay("numpy_scans.txt", routines, 1500, [](const Call&, Dtype d) {
    double factor = d == float16 ? 4 : 1;
    return Closeness{factor * testing::tolerance(d), 8 * factor * testing::tolerance(d), false};
  });
}

TEST(Scans, LongRowsAndColumns) {
  for (Device device : testing::test_devices()) {
    for (std::int64_t n : sizes()) {
      for (Dtype dtype : {int32, uint8, float32, float64, complex64, bfloat16}) {
        if (dtype == bfloat16 && n > 300) continue;
        Array a = xp::remainder(xp::arange(n, int64, device), 7).astype(dtype);
        auto want = std::vector<double>(static_cast<std::size_t>(n));
        double running = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          want[static_cast<std::size_t>(i)] = running += static_cast<double>(i % 7);
        }
        Array got = xp::cumsum(a);
        if (dtype == bfloat16) {
          EXPECT_TRUE(testing::matches(got.to(cpu()), xp::array(want).astype(bfloat16), {}));
        } else {
          ASSERT_EQ(got.to_vector<double>(), want) << n << dtype_name(dtype);  // sums are exact
        }
      }
    }
    for (Shape shape : {Shape{3, 70000, 2}, Shape{2, 300, 700}, Shape{5, 9, 4000}, Shape{700, 90},
                        Shape{6, 5000}, Shape{3000, 5}, Shape{2, 200000}, Shape{4000, 2, 3}}) {
      for (Dtype dtype : {float32, int64, complex128}) {
        Array a = xp::remainder(xp::arange(shape.total(), int64, device), 5).reshape(shape);
        auto values = a.to_vector<std::int64_t>();
        for (int axis = 0; axis < shape.ndim(); ++axis) {
          std::int64_t inner = 1, n = shape[axis];
          for (int i = axis + 1; i < shape.ndim(); ++i) inner *= shape[i];
          std::vector<std::int64_t> want = values;
          for (std::size_t i = 0; i < want.size(); ++i) {
            auto step = static_cast<std::size_t>(inner);
            if (i / step % static_cast<std::size_t>(n) != 0) want[i] += want[i - step];
          }
          ASSERT_EQ(xp::cumsum(a.astype(dtype), axis).to_vector<std::int64_t>(), want)
              << shape.str() << axis << dtype_name(dtype) << device.str();
        }
      }
    }
  }
}

// Of 16 bits only the results are rounded, wherever the rows begin.
TEST(Scans, NarrowElementsAreCarriedInFloat) {
  for (Device device : testing::test_devices()) {
    for (Shape shape : {Shape{40, 1024}, Shape{7, 2050}, Shape{90, 300}, Shape{3000, 5},
                        Shape{2, 20001}, Shape{1, 40000}, Shape{3, 900, 8}}) {
      Array all = xp::random::uniform(0.75, 1.25, {shape.total() + 1}, float32, device);
      for (Dtype dtype : {float16, bfloat16}) {
        Array narrow = all.astype(dtype);
        for (std::int64_t start : {0, 1}) {
          Array a = narrow[Slice(start, start + shape.total())].reshape(shape);
          Array wide = a.astype(float32);
          for (int axis = 0; axis < shape.ndim(); ++axis) {
            EXPECT_TRUE(xp::array_equal(xp::cumsum(a, axis), xp::cumsum(wide, axis).astype(dtype)))
                << shape.str() << axis << dtype_name(dtype) << start << device.str();
            Array got = xp::cumprod(a, axis), want = xp::cumprod(wide, axis).astype(dtype);
            EXPECT_TRUE(xp::array_equal(got, want, true))
                << shape.str() << axis << dtype_name(dtype) << start << device.str();
          }
        }
      }
    }
  }
}

// A wave of a GPU's blocks takes some rounds over such rows; the last one is not whole, and the odd
// start leaves no vectors.
TEST(Scans, RowsOfManyRounds) {
  for (Device device : testing::test_devices()) {
    std::int64_t n = device.is_cpu() ? 300007 : testing::quick() ? 5000011 : 24000011;
    for (Dtype dtype : {int32, float64, complex128}) {
      Array all = xp::remainder(xp::arange(n + 1, int64, device), 3).astype(dtype);
      for (std::int64_t start : {0, 1}) {
        Array a = all[Slice(start, start + n)];
        Array got = xp::cumsum(a);
        // 0 1 3, 3 4 6, ...; the one that starts later lacks nothing, as it begins with 0.
        Array i = xp::arange(start, start + n, 1, int64, device);
        Array third = xp::floor_divide(i, 3), place = i - third * 3;
        Array want = third * 3 + xp::where(place == 2, xp::array(3).to(device), place);
        ASSERT_TRUE((got == want).all().item<bool>()) << dtype_name(dtype) << start << device.str();
        xp::cumsum(a, {.axis = 0, .out = a});  // in its own place
        ASSERT_TRUE((a == want).all().item<bool>()) << dtype_name(dtype) << start << device.str();
        all = xp::remainder(xp::arange(n + 1, int64, device), 3).astype(dtype);
      }
    }
    for (Dtype dtype : {float32, float64}) {
      Array noise = xp::random::normal(0, 1, {n}, dtype, device);
      Array sums = xp::cumsum(noise);
      ASSERT_TRUE(xp::array_equal(sums, xp::cumsum(noise))) << "another order of sums";
      Array odd = xp::empty({n + 1}, dtype, device)[Slice(1, none)];  // not 16 bytes at a time
      odd.assign(noise);
      ASSERT_TRUE(xp::array_equal(sums, xp::cumsum(odd))) << "another order where it lies oddly";
    }
  }
}

TEST(Scans, WhatComesFirstStaysAsItIs) {
  const double inf = std::numeric_limits<double>::infinity();
  for (Device device : testing::test_devices()) {
    for (std::int64_t n :
         {std::int64_t{1}, std::int64_t{40}, std::int64_t{3000}, std::int64_t{300007}}) {
      for (Dtype dtype : {float16, float32, float64, complex64, complex128}) {
        for (Shape shape : {Shape{n}, Shape{n, 3}}) {
          Array sums = xp::cumsum(xp::full(shape, -0.0, dtype, device), 0);
          EXPECT_TRUE(xp::signbit(xp::real(sums)).all().item<bool>())
              << shape.str() << dtype_name(dtype) << device.str();
        }
        if (dtype_kind(dtype) != 'c') continue;
        Array ones = xp::ones({n}, dtype, device);
        ones[Slice(0, 1)] = inf;
        Array products = xp::cumprod(ones);
        EXPECT_TRUE((products == xp::full({n}, inf, dtype, device)).all().item<bool>())
            << n << dtype_name(dtype) << device.str();
      }
    }
  }
}

TEST(Scans, ProductsOfLongRows) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {int64, uint8, float32, float64, complex64, complex128}) {
      std::int64_t n = 200000;
      Array a = xp::ones({n}, dtype, device);
      a[Slice(70000, 70001)] = 3;
      a[Slice(150000, 150001)] = 2;
      auto got = xp::cumprod(a).to_vector<double>();
      for (std::int64_t i : {0, 69999, 70000, 149999, 150000, 199999}) {
        EXPECT_EQ(got[static_cast<std::size_t>(i)], i < 70000 ? 1 : i < 150000 ? 3 : 6) << i;
      }
    }
  }
}

TEST(Scans, WriteIntoOut) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({{1, 2}, {3, 4}}).to(device), out = xp::zeros({2, 4}, float32, device);
    Array view = out[{Slice(), Slice(none, none, 2)}];
    xp::cumsum(a, {.axis = 0, .out = view});
    EXPECT_EQ(out.to_vector<int>(), (std::vector<int>{1, 0, 2, 0, 4, 0, 6, 0}));
    xp::cumsum(a, {.axis = 1, .out = a});
    EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{1, 3, 3, 7}));
    Array narrow = xp::zeros({2, 2}, bool_, device), flat = xp::zeros({3}, int64, device);
    EXPECT_NE(thrown<DtypeError>([&] { xp::cumsum(a, {.axis = 0, .out = narrow}); }).find("cumsum"),
              std::string::npos);
    EXPECT_NE(thrown<ShapeError>([&] { xp::cumprod(a, {.axis = 0, .out = flat}); }).find("cumprod"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rensa
