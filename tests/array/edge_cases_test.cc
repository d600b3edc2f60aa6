// Replays what NumPy answers at the edges of routines that are not elementwise
// (make_edge_cases.py), and what it leaves open there by hand.
#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "tests/array/replay.h"

namespace rensa {
namespace {

namespace la = xp::linalg;
using testing::Call;
using testing::Closeness;
using testing::Routines;
using testing::thrown;

std::vector<Array> one(Array a) { return {std::move(a)}; }

la::Ord norm_order(const Call& c) { return c.text("ord") == "nuc" ? la::Ord("nuc") : la::Ord(2); }

// b1, i2, f1.5: a number of one of the kinds.
Scalar number(const std::string& text) {
  std::string value = text.substr(1);
  if (text[0] == 'b') return value == "1";
  return text[0] == 'i' ? Scalar(static_cast<std::int64_t>(std::stoll(value)))
                        : Scalar(std::stod(value));
}

Axes axes_of(const Call& c) {
  std::vector<std::int64_t> axes = c.integers("axes");
  if (axes.size() == 2) return {static_cast<int>(axes[0]), static_cast<int>(axes[1])};
  return axes.empty() ? Axes() : Axes(static_cast<int>(axes[0]));
}

Array reduced(const Call& c) {
  using Function = Array (*)(const Array&, const xp::ReduceOptions&);
  static const std::map<std::string, Function> functions = {
      {"sum", xp::sum},       {"prod", xp::prod},       {"mean", xp::mean},
      {"max", xp::max},       {"min", xp::min},         {"any", xp::any},
      {"nansum", xp::nansum}, {"nanprod", xp::nanprod}, {"nanmax", xp::nanmax},
      {"nanmin", xp::nanmin}};
  xp::ReduceOptions options = {.axis = axes_of(c), .keepdims = c.flag("keepdims")};
  if (c.has("dtype")) options.dtype = parse_dtype(c.text("dtype"));
  if (c.has("initial")) options.initial = number(c.text("initial"));
  if (c.in.size() > 1) options.where = c.in[1];
  Array out;  // outlives the options, which refer to it
  if (c.has("out")) {
    Shape shape = xp::any(c.in[0], {.axis = options.axis, .keepdims = options.keepdims}).shape();
    out = xp::full(shape, 7, parse_dtype(c.text("out")), c.device);
    options.out = out;
  }
  return functions.at(c.text("of"))(c.in[0], options);
}

Array into(const Call& c, Array (*scan)(const Array&, const xp::ScanOptions&)) {
  Array out = xp::empty(c.in[0].shape(), parse_dtype(c.text("out")), c.device);
  return scan(c.in[0], {.axis = c.axis(), .out = out});
}

Array quantile(const Call& c, bool ignore_nan) {
  xp::QuantileOptions options = {.axis = c.axis(), .method = c.text("method")};
  return ignore_nan ? xp::nanquantile(c.in[0], c.in[1], options)
                    : xp::quantile(c.in[0], c.in[1], options);
}

std::vector<Array> unique_along(const Call& c) {
  xp::UniqueResult result = xp::unique(
      c.in[0],
      {.return_index = true, .return_inverse = true, .return_counts = true, .axis = c.axis()});
  return {result.values, result.indices, result.inverse, result.counts};
}

// What a view of the operand holds after what ravel or reshape makes of it was written.
Array flattened(const Call& c) {
  Slice all, back(none, none, -1);
  Array a = c.in[0].copy(), matrix = a.reshape({3, 4});
  std::map<std::string, Array> views = {
      {"plain", a},
      {"reversed", a[back]},
      {"steps", a[Slice(none, none, 2)]},
      {"matrix", matrix},
      {"turned", matrix.T()},
      {"rows", matrix[back]},
      {"columns", matrix[{all, back}]},
      {"inner", matrix[Slice(1, none)]},
      {"narrow", matrix[{all, Slice(1, 3)}]},
      {"one", Array(a[Slice(3, 4)])[back]},
      {"column", matrix[{all, Slice(1, 2)}]},
      {"backwards", Array(a[back]).reshape({3, 4})},
  };
  const Array& view = views.at(c.text("view"));
  Array flat = c.has("shape") ? view.reshape(c.shape("shape")) : view.ravel();
  flat.fill(77);
  return view;
}

#define RENSA_ROUTINE(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return one(__VA_ARGS__); })

Routines calls() {
  return {
      RENSA_ROUTINE(vecdot, xp::vecdot(c.in[0], c.in[1], c.axis())),
      RENSA_ROUTINE(convolve, xp::convolve(c.in[0], c.in[1], c.text("mode"))),
      RENSA_ROUTINE(correlate, xp::correlate(c.in[0], c.in[1], c.text("mode"))),
      RENSA_ROUTINE(svdvals, la::svdvals(c.in[0])),
      RENSA_ROUTINE(cond, la::cond(c.in[0])),
      RENSA_ROUTINE(matrix_rank, la::matrix_rank(c.in[0])),
      RENSA_ROUTINE(matrix_norm, la::matrix_norm(c.in[0], {.ord = norm_order(c)})),
      RENSA_ROUTINE(eigvals, la::eigvals(c.in[0])),
      RENSA_ROUTINE(eig, la::eig(c.in[0]).eigenvectors),
      RENSA_ROUTINE(eigvalsh, la::eigvalsh(c.in[0])),
      RENSA_ROUTINE(lstsq, la::lstsq(c.in[0], c.in[1]).x),
      RENSA_ROUTINE(pinv, la::pinv(c.in[0])),
      RENSA_ROUTINE(reduce, reduced(c)),
      RENSA_ROUTINE(cumsum, into(c, xp::cumsum)),
      RENSA_ROUTINE(cumprod, into(c, xp::cumprod)),
      RENSA_ROUTINE(nancumsum, into(c, xp::nancumsum)),
      RENSA_ROUTINE(argmax, xp::argmax(c.in[0], c.axis())),
      RENSA_ROUTINE(argmin, xp::argmin(c.in[0], c.axis())),
      RENSA_ROUTINE(ptp, xp::ptp(c.in[0], axes_of(c))),
      {"unique_axis", unique_along},
      RENSA_ROUTINE(partition, xp::partition(c.in[0], c.integer("k"), c.axis())),
      RENSA_ROUTINE(argpartition, xp::argpartition(c.in[0], c.integer("k"), c.axis())),
      RENSA_ROUTINE(quantile, quantile(c, false)),
      RENSA_ROUTINE(nanquantile, quantile(c, true)),
      RENSA_ROUTINE(take, xp::take(c.in[0], c.in[1], c.axis())),
      RENSA_ROUTINE(compress, xp::compress(c.in[0], c.in[1], c.axis())),
      RENSA_ROUTINE(index, c.in[0][c.in[1]]),
      RENSA_ROUTINE(index_empty,
                    c.in[0].ndim() > 1 ? c.in[0][{Slice(0, 0), c.in[1]}] : c.in[0][c.in[1]]),
      RENSA_ROUTINE(index_last, c.in[0][{ellipsis, c.in[1]}]),
      RENSA_ROUTINE(index_both, c.in[0][{c.in[1], c.in[2]}]),
      RENSA_ROUTINE(flattened, flattened(c)),
  };
}

// NumPy computes float32 of linalg in double; sums of products cancel.
Closeness closeness(const Call&, Dtype dtype) {
  if (dtype == float16) return {4e-3, 4e-3, false};
  double near = dtype == float32 || dtype == complex64 ? 5e-5 : 1e-12;
  return {near, near, false};
}

TEST(EdgeCases, AgreeWithNumPy) { testing::replay("numpy_edges.txt", calls(), 2600, closeness); }

// --- matrices that are not finite ---

class NotFinite : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NotFinite);
INSTANTIATE_TEST_SUITE_P(Devices, NotFinite, ::testing::ValuesIn(testing::linalg_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

const Dtype kDtypes[] = {float32, float64, complex64, complex128};
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// (..., n, n), in place (row, column) of the last matrix alone `value`.
Array spoiled(const Shape& shape, Dtype dtype, int row, int column, double value) {
  xp::random::seed(7);
  Array a = xp::random::uniform(-1, 1, shape, float64).astype(dtype);
  Array last = a.ndim() > 2 ? Array(a[-1]) : a;
  last[{row, column}].fill(value);
  return a;
}

bool all_nan(const Array& a) { return xp::all(xp::isnan(a)).item<bool>(); }
bool all_finite(const Array& a) { return xp::all(xp::isfinite(a)).item<bool>(); }

// Wherever the infinity stands: LAPACK has never returned for some of these places.
TEST_P(NotFinite, AnInfinityLeavesNoSingularValues) {
  for (Dtype d : kDtypes) {
    for (Shape shape : {Shape{3, 3}, Shape{5, 3}, Shape{3, 5}, Shape{70, 65}}) {
      for (auto [row, column] : {std::pair{0, 0}, {0, 2}, {2, 0}, {2, 2}}) {
        Array a = spoiled(shape, d, row, column, -kInf);
        for (bool full : {false, true}) {
          la::SVDResult parts = la::svd(a, full);
          EXPECT_TRUE(all_nan(parts.S) && all_nan(parts.U) && all_nan(parts.Vh)) << shape.str();
        }
        EXPECT_TRUE(all_nan(la::svdvals(a)));
        EXPECT_TRUE(all_nan(la::pinv(a)));
        EXPECT_EQ(la::matrix_rank(a).item<int>(), 0);
        thrown<LinAlgError>([&] { la::lstsq(a, xp::ones({shape[0]}, d)); });
      }
    }
  }
}

TEST_P(NotFinite, OnlyTheMatrixThatHoldsIt) {
  for (Dtype d : kDtypes) {
    for (std::int64_t n : {3, 40, 300}) {
      Array a = spoiled({2, n, n}, d, 1, 0, kInf);
      la::SVDResult parts = la::svd(a);
      for (const Array& part : {parts.S, parts.U, parts.Vh}) {
        EXPECT_TRUE(all_finite(part[0]) && all_nan(part[1])) << n;
      }
      EXPECT_TRUE(xp::allclose(parts.S[0], la::svdvals(a[0]), 1e-3, 1e-4));
      la::EigResult eigh = la::eigh(a);
      for (const Array& part : {eigh.eigenvalues, eigh.eigenvectors}) {
        EXPECT_TRUE(all_finite(part[0]) && all_nan(part[1])) << n;
      }
      EXPECT_TRUE(all_finite(la::eigh(a, 'U').eigenvectors)) << "the other triangle is not read";
      Array inverse = la::pinv(a);
      EXPECT_TRUE(all_finite(inverse[0]) && all_nan(inverse[1]));
    }
  }
}

// An infinity is an error to eig alone, NaN to all of them; the text names the matrix.
TEST_P(NotFinite, WhatCannotBeFoundIsAnError) {
  ::testing::internal::CaptureStderr();
  for (Dtype d : kDtypes) {
    Array infinite = spoiled({3, 4, 4}, d, 1, 0, kInf), nan = spoiled({3, 4, 4}, d, 1, 0, kNaN);
    auto fails = [](const char* name, auto f) {
      std::string text = thrown<LinAlgError>([&] { f().get(); });
      EXPECT_NE(text.find(std::string(name) + ": matrix 2 of 3"), text.npos) << text;
    };
    for (const Array& a : {infinite, nan}) {
      fails("linalg.eig", [&] { return la::eig(a).eigenvectors; });
      fails("linalg.eigvals", [&] { return la::eigvals(a); });
    }
    nan[{2, 0, 0}].fill(kInf);  // NaN is the worse
    fails("linalg.svd", [&] { return la::svd(nan).U; });
    fails("linalg.svdvals", [&] { return la::svdvals(nan); });
    fails("linalg.eigh", [&] { return la::eigh(nan).eigenvalues; });
    fails("linalg.eigvalsh", [&] { return la::eigvalsh(nan); });
    fails("linalg.pinv", [&] { return la::pinv(nan); });
    fails("linalg.cond", [&] { return la::cond(nan); });
    fails("linalg.matrix_rank", [&] { return la::matrix_rank(nan); });
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "LAPACK speaks";
}

}  // namespace
}  // namespace rensa
