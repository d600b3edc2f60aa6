// Routines that make arrays and index grids, against NumPy and by hand.
#include "tests/array/replay.h"

namespace rensa {
namespace {

using testing::Call;
using testing::Routines;
using testing::test_devices;
using testing::thrown;

Dtype dtype_of_call(const Call& c) { return parse_dtype(c.text("dtype")); }

std::optional<Dtype> optional_dtype(const Call& c) {
  return c.has("dtype") ? std::optional(dtype_of_call(c)) : std::nullopt;
}

std::vector<Array> one(Array a) { return {std::move(a)}; }

#define RENSA_ROUTINE(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return one(__VA_ARGS__); })
#define RENSA_ROUTINES(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return __VA_ARGS__; })

std::vector<Array> grid(const Call& c, bool open) {
  const std::string& form = c.text("form");
  auto make = [&](std::initializer_list<xp::GridAxis> axes) {
    return open ? xp::ogrid(axes, c.device) : one(xp::mgrid(axes, c.device));
  };
  if (form == "ints") return make({3, {-1, 5, 2}});
  if (form == "floats") return make({{0, 1, 0.25}, {2, 4}});
  if (form == "points") {
    return make({xp::GridAxis::points(-1, 1, 5), xp::GridAxis::points(0, 2, 3)});
  }
  if (form == "one") return make({{1, 7, 2}});
  return make({0, 2});
}

xp::Like like_of(const Call& c) {
  xp::Like like;
  like.dtype = optional_dtype(c);
  like.shape = c.shape("shape");
  return like;
}

// fill_diagonal writes into its argument, which is laid out as the call asks.
Array filled(const Call& c) {
  Array a = c.in[0].copy();
  if (!c.in[0].is_contiguous()) {
    Array wide = xp::zeros({2 * a.size() + 1}, a.dtype(), a.device());
    a = xp::lib::stride_tricks::as_strided(wide, a.shape(), [&] {
      Shape strides = contiguous_strides(a.shape(), 2 * itemsize(a.dtype()));
      return strides;
    }());
    a.assign(c.in[0]);
  }
  if (c.in[1].ndim() == 0) xp::fill_diagonal(a, c.in[1].item_scalar(), c.flag("wrap"));
  else xp::fill_diagonal(a, c.in[1], c.flag("wrap"));
  return a;
}

const Routines& table() {
  static const Routines routines = {
      RENSA_ROUTINE(
          eye, xp::eye(c.integer("n"), c.integer("m"), c.integer("k"), dtype_of_call(c), c.device)),
      RENSA_ROUTINE(
          tri, xp::tri(c.integer("n"), c.integer("m"), c.integer("k"), dtype_of_call(c), c.device)),
      RENSA_ROUTINE(identity, xp::identity(c.integer("n"), dtype_of_call(c), c.device)),
      RENSA_ROUTINE(zeros_like, xp::zeros_like(c.in[0], like_of(c))),
      RENSA_ROUTINE(ones_like, xp::ones_like(c.in[0], like_of(c))),
      RENSA_ROUTINE(full_like, xp::full_like(c.in[0], c.integer("value"))),
      RENSA_ROUTINE(linspace, xp::linspace(c.real("start"), c.real("stop"), c.integer("num"),
                                           c.flag("endpoint"), dtype_of_call(c), c.device)),
      RENSA_ROUTINE(logspace,
                    xp::logspace(c.real("start"), c.real("stop"), c.integer("num"),
                                 c.flag("endpoint"), c.real("base"), dtype_of_call(c), c.device)),
      RENSA_ROUTINE(geomspace, xp::geomspace(c.real("start"), c.real("stop"), c.integer("num"),
                                             c.flag("endpoint"), dtype_of_call(c), c.device)),
      RENSA_ROUTINES(linspace_retstep,
                     [&] {
                       auto [values, step] =
                           xp::linspace_retstep(c.real("start"), c.real("stop"), c.integer("num"),
                                                c.flag("endpoint"), dtype_of_call(c), c.device);
                       return std::vector<Array>{values, xp::array(step, c.device)};
                     }()),
      RENSA_ROUTINE(linspace_arrays, xp::linspace(c.in[0], c.in[1], c.integer("num"),
                                                  {.endpoint = c.flag("endpoint"),
                                                   .dtype = optional_dtype(c),
                                                   .axis = c.axis()})),
      RENSA_ROUTINES(mgrid, grid(c, false)),
      RENSA_ROUTINES(ogrid, grid(c, true)),
      RENSA_ROUTINE(diag, xp::diag(c.in[0], c.integer("k"))),
      RENSA_ROUTINE(diagflat, xp::diagflat(c.in[0], c.integer("k"))),
      RENSA_ROUTINE(tril, xp::tril(c.in[0], c.integer("k"))),
      RENSA_ROUTINE(triu, xp::triu(c.in[0], c.integer("k"))),
      RENSA_ROUTINE(vander,
                    xp::vander(c.in[0], c.has("n") ? std::optional(c.integer("n")) : std::nullopt,
                               c.flag("increasing"))),
      RENSA_ROUTINES(meshgrid, xp::meshgrid(c.in, {.indexing = c.text("indexing"),
                                                   .sparse = c.flag("sparse"),
                                                   .copy = c.flag("copy")})),
      RENSA_ROUTINES(tril_indices,
                     xp::tril_indices(c.integer("n"), c.integer("k"), c.integer("m"), c.device)),
      RENSA_ROUTINES(triu_indices,
                     xp::triu_indices(c.integer("n"), c.integer("k"), c.integer("m"), c.device)),
      RENSA_ROUTINES(diag_indices, xp::diag_indices(c.integer("n"),
                                                    static_cast<int>(c.integer("ndim")), c.device)),
      RENSA_ROUTINE(indices, xp::indices(c.shape("shape"), dtype_of_call(c), c.device)),
      RENSA_ROUTINES(ix_, xp::ix_(c.in)),
      RENSA_ROUTINES(unravel_index,
                     xp::unravel_index(c.in[0], c.shape("shape"), c.text("order")[0])),
      RENSA_ROUTINE(ravel_multi_index,
                    xp::ravel_multi_index(c.in, c.shape("shape"), c.text("mode").c_str(),
                                          c.text("order")[0])),
      RENSA_ROUTINE(diagonal,
                    xp::diagonal(c.in[0], c.integer("offset"), static_cast<int>(c.integer("axis1")),
                                 static_cast<int>(c.integer("axis2")))),
      RENSA_ROUTINE(trace, xp::trace(c.in[0], {.offset = c.integer("offset"),
                                               .axis1 = static_cast<int>(c.integer("axis1", 0)),
                                               .axis2 = static_cast<int>(c.integer("axis2", 1)),
                                               .dtype = optional_dtype(c)})),
      RENSA_ROUTINE(fill_diagonal, filled(c)),
  };
  return routines;
}

TEST(Creation, MatchesNumPy) { testing::replay("numpy_creation.txt", table(), 2000); }

TEST(Creation, LikeTakesDtypeShapeAndDevice) {
  for (Device device : test_devices()) {
    Array a = xp::ones({2, 3}, bfloat16, device);
    Array b = xp::empty_like(a, {.dtype = int16, .shape = Shape{4}});
    EXPECT_EQ(b.dtype(), int16);
    EXPECT_EQ(b.shape(), Shape{4});
    EXPECT_EQ(b.device(), device);
    EXPECT_EQ(xp::zeros_like(a, {.device = cpu()}).device(), cpu());
    EXPECT_EQ(xp::full_like(a, 2.5).to_vector<float>(), std::vector<float>(6, 2.5f));
    EXPECT_NE(thrown<ValueError>([&] { xp::full_like(a, 300, {.dtype = int8}); }).find("300"),
              std::string::npos);
  }
}

TEST(Creation, CopiesOnlyWhereItHasTo) {
  for (Device device : test_devices()) {
    Array a = xp::array({{1, 2}, {3, 4}}, device);
    EXPECT_EQ(xp::asarray(a).data(), a.data());
    EXPECT_EQ(xp::asarray(a, int64).data(), a.data());
    EXPECT_EQ(xp::asarray(a, int64, device).data(), a.data());
    EXPECT_EQ(xp::asarray(a, float32, cpu()).dtype(), float32);
    EXPECT_EQ(xp::asarray(a, complex128, cpu()).device(), cpu());
    EXPECT_NE(xp::array(a).data(), a.data());
    EXPECT_NE(xp::copy(a).data(), a.data());
    EXPECT_EQ(xp::ascontiguousarray(a).data(), a.data());
    Array turned = xp::ascontiguousarray(a.T());
    EXPECT_TRUE(turned.is_contiguous());
    EXPECT_EQ(turned.to_vector<int>(), (std::vector<int>{1, 3, 2, 4}));
    EXPECT_EQ(xp::ascontiguousarray(xp::array(1, device)).shape(), Shape{1});
    EXPECT_EQ(xp::asarray({1.5, 2.5}, device).dtype(), float64);
  }
  EXPECT_THROW(xp::asarray(Array()), ValueError);
}

TEST(Creation, ManySamplesAreMadeOnTheDevice) {
  for (Device device : test_devices()) {
    std::int64_t n = 100'001;
    std::vector<double> got = xp::linspace(-1, 3, n, float64, device).to_vector<double>();
    for (std::int64_t i = 0; i < n; ++i) {
      double want = static_cast<double>(i) * (4.0 / 100'000) - 1;
      ASSERT_NEAR(got[static_cast<std::size_t>(i)], want, 1e-12);
    }
    EXPECT_EQ(got.back(), 3);
    Array whole = xp::linspace(-2, 2, n, true, int32, device);
    EXPECT_EQ(whole[1].item<int>(), -2);  // the floor, not the next integer to 0
    EXPECT_EQ(whole[50'001].item<int>(), 0);
    EXPECT_NEAR(xp::logspace(0, 2, n, true, 10, float64, device)[50'000].item<double>(), 10, 1e-11);
  }
}

TEST(Creation, TrianglesOfManyMatrices) {
  for (Device device : test_devices()) {
    Array a = xp::arange(1, 3 * 300 * 200 + 1, 1, float32, device).reshape({3, 300, 200});
    Array lower = xp::tril(a, -3), upper = xp::triu(a, -2);
    EXPECT_TRUE(xp::array_equal(lower + upper, a));
    EXPECT_EQ((lower[{2, 250, 199}]).item<float>(), (a[{2, 250, 199}]).item<float>());
    EXPECT_EQ((lower[{2, 100, 98}]).item<float>(), 0);
    EXPECT_EQ((upper[{1, 100, 98}]).item<float>(), (a[{1, 100, 98}]).item<float>());
    EXPECT_EQ(xp::tril(a.astype(bfloat16)).dtype(), bfloat16);
  }
}

TEST(Creation, TriangleIndicesAreThoseOfTheTriangle) {
  for (Device device : test_devices()) {
    for (auto [n, m] : {std::pair{300, 217}, {40, 1000}, {1, 600}, {700, 2}}) {
      for (std::int64_t k : {0, 1, -1, 150, -250, 5000, -5000}) {
        std::vector<Array> lower = xp::tril_indices(n, k, m, device);
        std::vector<Array> upper = xp::triu_indices(n, k, m, device);
        std::vector<Array> want = xp::nonzero(xp::tri(n, m, k, bool_, device));
        std::vector<Array> rest = xp::nonzero(~xp::tri(n, m, k - 1, bool_, device));
        for (std::size_t axis : {0, 1}) {
          EXPECT_TRUE(xp::array_equal(lower[axis], want[axis])) << n << " " << m << " " << k;
          EXPECT_TRUE(xp::array_equal(upper[axis], rest[axis])) << n << " " << m << " " << k;
        }
      }
    }
    Array a = xp::ones({3, 4}, complex128, device);
    constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(xp::array_equal(xp::tril(a, kFar), a));
    EXPECT_TRUE(xp::array_equal(xp::triu(a, -kFar), a));
    EXPECT_EQ(xp::triu_indices(5, kFar, 6, device)[0].size(), 0);
  }
}

TEST(Creation, DiagonalsAreViews) {
  for (Device device : test_devices()) {
    Array a = xp::zeros({3, 4}, int32, device);
    xp::diagonal(a, 1).fill(5);
    xp::diag(a, -1).fill(7);
    EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{0, 5, 0, 0, 7, 0, 5, 0, 0, 7, 0, 5}));
  }
}

// np.full(1, value, dtype), of int32 first and then of the others.
TEST(Creation, FullOfWhatAnIntegerDoesNotHold) {
  const double kInf = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  struct Row {
    double value;
    std::int64_t as_int64;
    std::uint64_t as_uint32, as_uint64;
  };
  const Row rows[] = {{NAN, kLeast, 0, 1ull << 63},
                      {kInf, kLeast, 0, 0},
                      {-kInf, kLeast, 0, 1ull << 63},
                      {3e9, 3000000000, 3000000000, 3000000000},
                      {-3e9, -3000000000, 1294967296, 18446744070709551616ull},
                      {1e19, kLeast, 0, 10000000000000000000ull},
                      {1e20, kLeast, 0, 0}};
  for (Device device : test_devices()) {
    for (const Row& row : rows) {
      auto full = [&](Dtype dtype) { return xp::full({1}, row.value, dtype, device); };
      EXPECT_EQ(full(int32).item<std::int64_t>(), std::numeric_limits<std::int32_t>::min());
      EXPECT_EQ(full(int8).item<int>(), 0);
      EXPECT_EQ(full(uint16).item<int>(), 0);
      EXPECT_EQ(full(int64).item<std::int64_t>(), row.as_int64);
      EXPECT_EQ(full(uint32).item<std::uint64_t>(), row.as_uint32);
      EXPECT_EQ(full(uint64).item<std::uint64_t>(), row.as_uint64);
    }
    EXPECT_EQ(xp::full({1}, 2147483647.9, int32, device).item<int>(), 2147483647);
    EXPECT_EQ(xp::full({1}, -3.5, uint8, device).item<int>(), 253);
  }
}

TEST(Creation, ErrorsNameTheRoutine) {
  Array a = xp::zeros({2, 3});
  EXPECT_NE(thrown<ShapeError>([&] {
              xp::diag(xp::zeros({2, 2, 2}));
            }).find("diag: cpu (2, 2, 2)"),
            std::string::npos);
  EXPECT_NE(thrown<ValueError>([&] { xp::meshgrid({a}, "yx"); }).find("meshgrid"),
            std::string::npos);
  EXPECT_NE(thrown<DtypeError>([&] {
              xp::unravel_index(a, {2, 3});
            }).find("unravel_index"),
            std::string::npos);
  EXPECT_NE(thrown<IndexError>([&] {
              xp::unravel_index(xp::array({6}), {2, 3});
            }).find("[0, 6)"),
            std::string::npos);
  EXPECT_THROW(xp::geomspace(0, 1), ValueError);
  EXPECT_THROW(xp::fill_diagonal(xp::zeros({1, 3}).broadcast_to({3, 3}), 1), ValueError);
  EXPECT_THROW(xp::fill_diagonal(xp::zeros({2, 2}, int8), 1000), ValueError);
}

}  // namespace
}  // namespace rensa
