// The keywords that routines share, replayed against NumPy's answers (make_option_cases.py), and
// the forms in which C++ takes them.
#include "rensa/array/internal.h"
#include "rensa/array/routines.h"

#include "rensa/array/random.h"
#include "rensa/array/ufuncs/powers.h"
#include "rensa/kernel/fuse.h"
#include "tests/array/replay.h"

namespace rensa {
namespace {

namespace la = xp::linalg;
using testing::Call;
using testing::Closeness;
using testing::Routines;
using testing::thrown;
using Arrays = std::vector<Array>;

Axes axis_of(const Call& c) {
  return !c.has("axis") || c.text("axis") == "none" ? Axes() : Axes(c.axis());
}

std::string mode_of(const Call& c) { return c.text("mode"); }

// What a call writes into an array of 7s, which it has to return.
template <class F> Arrays into(const Call& c, const Shape& shape, Dtype dtype, F call) {
  Array out = xp::full(shape, 7, dtype, c.device);
  Array result = call(out);
  EXPECT_EQ(result.data(), out.data());
  return {out};
}

void add_positions(Routines& table) {
  using F = Array (*)(const Array&, const xp::AxisOptions&);
  for (auto [name, f] : {std::pair<const char*, F>{"argmax", xp::argmax},
                         {"argmin", xp::argmin},
                         {"nanargmax", xp::nanargmax},
                         {"nanargmin", xp::nanargmin}}) {
    table[name] = [f = f](const Call& c) {
      xp::AxisOptions options = {.axis = axis_of(c), .keepdims = c.flag("keepdims")};
      if (!c.has("out")) return Arrays{f(c.in[0], options)};
      return into(c, {2, 4}, int64, [&](const Array& out) {
        options.out = out;
        return f(c.in[0], options);
      });
    };
  }
}

void add_variances(Routines& table) {
  using F = Array (*)(const Array&, const xp::VarianceOptions&);
  for (auto [name, f] : {std::pair<std::string, F>{"var", xp::var},
                         {"std", xp::std},
                         {"nanvar", xp::nanvar},
                         {"nanstd", xp::nanstd}}) {
    table[name] = [f = f](const Call& c) {
      return Arrays{f(c.in[0], {.axis = axis_of(c), .ddof = c.real("ddof"), .where = c.in[1]})};
    };
    table[name + "_dtype"] = [f = f](const Call& c) {
      return Arrays{f(c.in[0], {.axis = axis_of(c), .dtype = float64})};
    };
    table[name + "_correction"] = [f = f](const Call& c) {
      return Arrays{f(c.in[0], {.axis = 0, .keepdims = true, .correction = 0.5})};
    };
    table[name + "_mean"] = [f = f](const Call& c) {
      return Arrays{f(c.in[0], {.axis = 0, .mean = c.in[1]})};
    };
    table[name + "_out"] = [f = f](const Call& c) {
      return into(c, {3}, float64,
                  [&](const Array& out) { return f(c.in[0], {.axis = 1, .out = out}); });
    };
  }
}

void add_statistics(Routines& table) {
  table["nanmean"] = [](const Call& c) {
    return Arrays{xp::nanmean(c.in[0], {.axis = 0, .where = c.in[1]})};
  };
  table["nanmean_dtype"] = [](const Call& c) {
    return Arrays{xp::nanmean(c.in[0], {.axis = 1, .keepdims = true, .dtype = float64})};
  };
  table["nanmean_out"] = [](const Call& c) {
    return into(c, {3}, float64,
                [&](const Array& out) { return xp::nanmean(c.in[0], {.axis = 1, .out = out}); });
  };
  using F = Array (*)(const Array&, const xp::AxisOptions&);
  for (auto [name, f] : {std::pair<const char*, F>{"median_out", xp::median},
                         {"nanmedian_out", xp::nanmedian},
                         {"ptp_out", xp::ptp}}) {
    table[name] = [f = f](const Call& c) {
      return into(c, {3, 1}, float64, [&](const Array& out) {
        return f(c.in[0], {.axis = 1, .keepdims = true, .out = out});
      });
    };
  }
  using Q = Array (*)(const Array&, const xp::Shares&, const xp::QuantileOptions&);
  for (auto [name, f] :
       {std::pair<std::string, Q>{"quantile", xp::quantile}, {"nanquantile", xp::nanquantile}}) {
    table[name] = [f = f](const Call& c) {
      return Arrays{f(c.in[0], c.in[1], {.axis = axis_of(c), .keepdims = true})};
    };
    table[name + "_out"] = [f = f](const Call& c) {
      return into(c, {2, 4}, float64, [&](const Array& out) {
        return f(c.in[0], {0.5, 0.25}, {.axis = 0, .out = out});
      });
    };
  }
}

void add_indexing(Routines& table) {
  table["take"] = [](const Call& c) {
    return Arrays{
        xp::take(c.in[0], c.in[1], {.axis = axis_of(c), .mode = std::string_view(mode_of(c))})};
  };
  table["choose"] = [](const Call& c) {
    std::span<const Array> choices(c.in.data() + 1, c.in.size() - 1);
    return Arrays{c.in[0].choose(choices, {.mode = mode_of(c).c_str()})};
  };
  table["take_out"] = [](const Call& c) {
    return into(c, {3, 2, 1}, c.in[0].dtype(), [&](const Array& out) {
      return c.in[0].take(c.in[1], {.axis = 1, .out = out, .mode = "clip"});
    });
  };
  table["compress_out"] = [](const Call& c) {
    return into(c, {2, 4}, c.in[1].dtype(), [&](const Array& out) {
      return c.in[1].compress(c.in[0], {.axis = 0, .out = out});
    });
  };
  table["put_mode"] = [](const Call& c) {
    Array a = c.in[0].copy();
    a.put(c.in[1], c.in[2], "clip");
    return Arrays{a};
  };
  table["trace_dtype"] = [](const Call& c) {
    return Arrays{c.in[0].trace({.offset = c.integer("offset"), .dtype = complex128})};
  };
  table["trace_out"] = [](const Call& c) {
    return into(c, {2}, complex128, [&](const Array& out) {
      return xp::trace(c.in[0], {.offset = -1, .axis1 = 0, .axis2 = 2, .out = out});
    });
  };
}

void add_joining(Routines& table) {
  table["concatenate"] = [](const Call& c) {
    OptionalAxis axis = c.text("axis") == "none" ? OptionalAxis(none) : OptionalAxis(c.axis());
    return Arrays{xp::concatenate(c.in, {.axis = axis, .dtype = complex64})};
  };
  table["stack"] = [](const Call& c) {
    return Arrays{xp::stack(c.in, {.axis = c.axis(), .dtype = float16})};
  };
  table["hstack"] = [](const Call& c) {
    return Arrays{xp::hstack(c.in, {.dtype = int8, .casting = "unsafe"})};
  };
  table["vstack"] = [](const Call& c) {
    return Arrays{xp::vstack(c.in, {.dtype = float32, .casting = "no"})};
  };
  table["stack_out"] = [](const Call& c) {
    return into(c, {2, 2, 3}, complex128,
                [&](const Array& out) { return xp::stack(c.in, {.axis = 1, .out = out}); });
  };
}

void add_orders(Routines& table) {
  auto order = [](const Call& c) { return Order(c.text("order")[0]); };
  table["ravel"] = [order](const Call& c) { return Arrays{xp::ravel(c.in[0].copy(), order(c))}; };
  table["ravel_f"] = [order](const Call& c) {
    return Arrays{xp::asfortranarray(c.in[0]).ravel(order(c))};
  };
  table["flatten"] = [order](const Call& c) {
    return Arrays{xp::asfortranarray(c.in[0]).flatten(order(c))};
  };
  table["copy"] = [order](const Call& c) { return Arrays{xp::copy(c.in[0], order(c))}; };
  table["reshape"] = [order](const Call& c) {
    return Arrays{xp::reshape(c.in[0].copy(), c.shape("to"), {.order = order(c)})};
  };
  table["astype"] = [](const Call& c) {
    return Arrays{c.in[0].astype(parse_dtype(c.text("to")), {.casting = c.text("casting")})};
  };
}

void add_products(Routines& table) {
  table["matmul_axes"] = [](const Call& c) {
    return Arrays{xp::matmul(c.in[0], c.in[1], {.axes = {{0, 2}, {0, 1}, {-1, 0}}})};
  };
  table["matmul_dtype"] = [](const Call& c) {
    Dtype dtype = c.in[1].dtype() == float32 ? float64 : complex128;
    return Arrays{xp::matmul(c.in[0], c.in[1], {.dtype = dtype})};
  };
  table["vecdot_axis"] = [](const Call& c) {
    return Arrays{xp::vecdot(c.in[0], c.in[1], c.axis())};
  };
  table["vecdot_axes"] = [](const Call& c) {
    return Arrays{xp::vecdot(c.in[0], c.in[1], {.axes = {{0}, {2}}})};
  };
  table["matvec_axes"] = [](const Call& c) {
    return Arrays{xp::matvec(c.in[0], c.in[1], {.axes = {{0, 2}, {0}, {0}}})};
  };
  table["outer_out"] = [](const Call& c) {
    return into(c, {4, 2}, complex128,
                [&](const Array& out) { return xp::outer(c.in[0], c.in[1], {.out = out}); });
  };
  table["einsum"] = [](const Call& c) {
    return Arrays{xp::einsum("ij,jk", {c.in[0], c.in[1]}, {.dtype = complex128})};
  };
}

void add_algebra(Routines& table) {
  table["matrix_rank"] = [](const Call& c) {
    return Arrays{la::matrix_rank(c.in[0], {.rtol = c.in[1]})};
  };
  table["pinv"] = [](const Call& c) { return Arrays{la::pinv(c.in[0], {.rtol = c.in[1]})}; };
  table["svd_hermitian"] = [](const Call& c) {
    return Arrays{la::svd(c.in[0], {.compute_uv = false, .hermitian = true}).S};
  };
  table["svd_product"] = [](const Call& c) {
    la::SVDResult r = la::svd(c.in[0], {.hermitian = true});
    return Arrays{xp::matmul(r.U * r.S, r.Vh)};
  };
}

void add_others(Routines& table) {
  table["fft"] = [](const Call& c) {
    Array a = c.in[0].astype(complex128);
    return Arrays{xp::fft::fft(a, {.n = 6, .axis = 1, .norm = c.text("norm").c_str()})};
  };
  table["fft_out"] = [](const Call& c) {
    return into(c, {3, 8}, complex128,
                [&](const Array& out) { return xp::fft::fft(c.in[0], {.axis = 0, .out = out}); });
  };
  table["linspace_complex"] = [](const Call& c) {
    return Arrays{xp::linspace(std::complex<double>(1, 2), std::complex<double>(0, -3), 7,
                               {.endpoint = c.flag("endpoint"), .device = c.device})};
  };
  table["isin_number"] = [](const Call& c) {
    return Arrays{xp::isin(c.in[0], 2, false, c.flag("invert"))};
  };
  table["number_isin"] = [](const Call& c) {
    return Arrays{xp::isin(2, c.in[0], false, c.flag("invert"))};
  };
  table["cross"] = [](const Call& c) { return Arrays{xp::cross(c.in[0], c.in[1], {.axis = 0})}; };
  table["diff"] = [](const Call& c) {
    return Arrays{xp::diff(c.in[0], {.n = 2, .axis = 1, .prepend = c.in[1], .append = c.in[2]})};
  };
  table["trapezoid"] = [](const Call& c) {
    return Arrays{xp::trapezoid(c.in[0], {.x = c.in[1], .axis = 0})};
  };
  table["gradient"] = [](const Call& c) {
    return xp::gradient(c.in[0], {0.5}, {.axis = {1, 0}, .edge_order = 2});
  };
  table["partition"] = [](const Call& c) {
    std::vector<std::int64_t> kth = {3, 20, -1};
    return Arrays{xp::partition(c.in[0], kth)[xp::array(kth, c.device)]};
  };
}

void add_rare(Routines& table) {
  table["polyvander"] = [](const Call& c) {
    return Arrays{xp::polynomial::polyvander(c.in[0], 3)};
  };
  table["polyvalfromroots"] = [](const Call& c) {
    return Arrays{xp::polynomial::polyvalfromroots(c.in[0], c.in[1])};
  };
  table["polycompanion"] = [](const Call& c) {
    return Arrays{xp::polynomial::polycompanion(c.in[0])};
  };
  table["trimseq"] = [](const Call& c) { return Arrays{xp::polynomial::trimseq(c.in[0])}; };
  table["trimcoef"] = [](const Call& c) { return Arrays{xp::polynomial::trimcoef(c.in[0], 0.5)}; };
  table["polyint"] = [](const Call& c) { return Arrays{xp::polyint(c.in[0], 2, {3, 4})}; };
  table["poly"] = [](const Call& c) { return Arrays{xp::poly(c.in[0])}; };
  table["apply_over_axes"] = [](const Call& c) {
    return Arrays{xp::apply_over_axes([](const Array& a, int axis) { return xp::sum(a, axis); },
                                      c.in[0], {0, 2})};
  };
  table["mask_indices"] = [](const Call& c) {
    return xp::mask_indices(
        4, [](const Array& a, std::int64_t k) { return xp::triu(a, k); }, 1, c.device);
  };
  table["fromfunction"] = [](const Call& c) {
    return Arrays{xp::fromfunction([](const Arrays& at) { return at[0] * 10 + at[1]; }, {3, 4},
                                   {.device = c.device})};
  };
  table["fromstring"] = [](const Call& c) {
    return Arrays{xp::fromstring("1, 2.5,-3", float64, -1, ",", c.device)};
  };
}

TEST(Options, AgreeWithNumPy) {
  Routines table;
  add_positions(table);
  add_variances(table);
  add_statistics(table);
  add_indexing(table);
  add_joining(table);
  add_orders(table);
  add_products(table);
  add_algebra(table);
  add_others(table);
  add_rare(table);
  // What is written into a wider `out` is no more exact than the operand.
  testing::replay("numpy_options.txt", table, 650, [](const Call& c, Dtype dtype) {
    double near = testing::tolerance(dtype);
    if (!c.in.empty()) near = std::max(near, testing::tolerance(c.in[0].dtype()));
    if (c.routine == "pinv") near *= 1e3;
    return Closeness{8 * near, 16 * near, false};
  });
}

TEST(Options, FormsOfAReduction) {
  for (Device device : testing::test_devices()) {
    Array a = xp::arange(24, float64, device).reshape({2, 3, 4});
    std::vector<int> axes = {0, 2};
    EXPECT_EQ(a.sum(axes).shape(), Shape{3});
    EXPECT_EQ(a.sum(std::vector<std::int64_t>{1}).shape(), (Shape{2, 4}));
    EXPECT_EQ(a.sum({.axis = axes, .keepdims = true}).shape(), (Shape{1, 3, 1}));
    EXPECT_EQ(a.sum({.axis = 1, .dtype = float32}).dtype(), float32);
    EXPECT_EQ(a.argmax({.axis = 1, .keepdims = true}).shape(), (Shape{2, 1, 4}));
    EXPECT_EQ(a.argmax(none, true).shape(), (Shape{1, 1, 1}));
    EXPECT_EQ(a.max({.initial = 100}).item<int>(), 100);
    EXPECT_EQ(a.var({.axis = {0, 1}, .ddof = 1}).shape(), Shape{4});
    EXPECT_THROW(a.argmax({.axis = {0, 1}}), ValueError);
    EXPECT_THROW(xp::var(a, {.ddof = 1, .correction = 1}), ValueError);
    Array out = xp::zeros({3}, float64, device);
    EXPECT_NE(thrown<ShapeError>([&] {
                a.argmax({.out = xp::zeros({3}, int64, device)});
              }).find("argmax"),
              std::string::npos);
    EXPECT_NE(thrown<DtypeError>([&] {
                xp::median(a, {.axis = {0, 2}, .out = out.astype(int64)});
              }).find("median"),
              std::string::npos);
  }
}

TEST(Options, Orders) {
  for (Device device : testing::test_devices()) {
    Array f = xp::zeros({2, 3}, {.order = "F", .device = device});
    EXPECT_TRUE(xp::isfortran(f));
    EXPECT_FALSE(xp::isfortran(f.copy()));
    EXPECT_TRUE(xp::isfortran(f.copy("K")) && xp::isfortran(f.copy('A')));
    EXPECT_TRUE(xp::isfortran(xp::zeros_like(f, {.order = "K"})));
    EXPECT_TRUE(xp::isfortran(xp::full_like(f, 2, {.shape = Shape{4, 5}, .order = "F"})));
    EXPECT_TRUE(xp::isfortran(f.astype(int8, {.order = "K"})));
    EXPECT_EQ(f.astype(float32, {.copy = false, .order = "K"}).data(), f.data());
    EXPECT_TRUE(xp::isfortran(xp::eye(3, {.M = 2, .order = "F", .device = device})));
    EXPECT_EQ(xp::asfortranarray(f).data(), f.data());
    Array turned = xp::zeros({2, 3, 4}, float32, device).transpose({1, 2, 0});
    EXPECT_EQ(turned.copy("K").strides(), turned.strides());
    EXPECT_EQ(f.reshape({6}, {.order = "F"}).data(), f.data());
    EXPECT_NE(f.reshape({2, 3}, {.copy = true}).data(), f.data());
    EXPECT_THROW(f.reshape({6}, {.copy = false}), ValueError);
    EXPECT_THROW(xp::zeros({2}, {.order = "K"}), ValueError);
    EXPECT_THROW(f.copy("X"), ValueError);
    Array wide = xp::require(f.broadcast_to({4, 2, 3}), float64, {"C", "W"});
    EXPECT_TRUE(wide.is_contiguous() && wide.dtype() == float64);
    EXPECT_NE(xp::require(f[Slice(0, 1)], {}, {"O"}).data(), f.data());
    EXPECT_EQ(xp::require(f).data(), f.data());
    EXPECT_THROW(xp::require(f, {}, {"C", "F"}), ValueError);
    EXPECT_THROW(xp::asarray_chkfinite(f / 0), ValueError);
  }
}

TEST(Options, OrdersThatAreWantedAreMet) {
  for (Device device : testing::test_devices()) {
    Array f = xp::zeros({2, 3}, {.order = "F", .device = device});
    Array turned = xp::zeros({2, 3, 4}, float32, device).transpose({1, 2, 0});
    Array other = xp::full_like(turned, 7, {.shape = Shape{5, 6, 7}, .order = "K"});
    EXPECT_EQ(other.shape(), (Shape{5, 6, 7}));
    EXPECT_TRUE(other.transpose({2, 0, 1}).is_contiguous());
    EXPECT_EQ(other.min().item<int>(), 7);
    EXPECT_TRUE(f.astype(float32, {.copy = false, .order = 'C'}).is_contiguous());
    EXPECT_EQ(f.astype(float32, {.copy = false}).data(), f.data());
    EXPECT_TRUE(xp::asarray_chkfinite(f, {}, 'C').is_contiguous());
    EXPECT_TRUE(xp::isfortran(f.astype(int32, 'K')) && xp::isfortran(xp::astype(f, int32, "A")));
  }
}

TEST(Options, OrdersAreTraced) {
  for (Device device : testing::test_devices()) {
    Array a = xp::arange(12, float32, device).reshape({3, 4});
    auto twice = [](const Array& x) { return x * 2; };
    const std::function<Array(const Array&)> steps[] = {
        [&](const Array& x) { return xp::asfortranarray(twice(x)); },
        [&](const Array& x) { return twice(x).copy("F") + 1; },
        [&](const Array& x) { return twice(x).astype(float64, {.order = "F"}); },
        [&](const Array& x) {
          return twice(x) + xp::full({3, 4}, 1.f, {.order = "F"});
        },
        [&](const Array& x) { return twice(x) + xp::ones_like(x.T(), {.order = "K"}).T(); },
        [&](const Array& x) { return twice(x.T()) - twice(x.T()) * 0.5f; },
        [&](const Array& x) {
          Array y = twice(x.T());
          y.assign(x.T() + 1);
          return y;
        },
        [&](const Array& x) {
          Array y = twice(x.T());
          y.fill(3);
          return y + x.T();
        },
        [&](const Array& x) {
          return xp::sum(twice(x.T()), {.axis = 0, .keepdims = true}) + twice(x.T());
        },
    };
    DeviceScope scope(device);
    for (const auto& step : steps) {
      Array eager = step(a), fused = fuse(step)(a);
      EXPECT_EQ(fused.strides(), eager.strides());
      EXPECT_TRUE(xp::array_equal(fused, eager));
    }
  }
}

TEST(Options, EmptyBracesAreTheDefaults) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({{3, 1, 2}, {0, 5, 4}}, device), rows = xp::array({1, 3}, device);
    EXPECT_TRUE(xp::array_equal(a.argsort({}), a.argsort()));
    EXPECT_TRUE(xp::array_equal(a.argsort(), a.argsort(1)));
    EXPECT_TRUE(xp::array_equal(a.take(rows, {}), a.ravel().take(rows)));
    EXPECT_TRUE(xp::array_equal(xp::take(a, rows, {}), a.take(rows)));
    EXPECT_TRUE(xp::array_equal(xp::compress(rows > 1, a, {}), a.compress(rows > 1)));
    EXPECT_EQ(xp::arange(1, 4, {.dtype = float32, .device = device}).dtype(), float32);
    EXPECT_EQ(xp::isin(a, 2, {.invert = true}).sum().item<int>(), 5);
  }
}

TEST(Options, OfSincAndI0) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({0, 1, 2}, device), out = xp::full({3}, 7, float32, device);
    const std::function<Array(const xp::UfuncOptions&)> routines[] = {
        [&](const auto& o) { return xp::sinc(a, o); }, [&](const auto& o) { return xp::i0(a, o); }};
    for (const auto& routine : routines) {
      EXPECT_EQ(routine({}).dtype(), float64);
      EXPECT_EQ(routine({.dtype = float32, .casting = "unsafe"}).dtype(), float32);
      EXPECT_EQ(routine({.out = out, .where = a < 2}).data(), out.data());
      EXPECT_EQ(out.to_vector<double>()[0], 1);
      EXPECT_EQ(out.to_vector<double>()[2], 7);
    }
    EXPECT_TRUE(xp::array_equal(a.conjugate(), a));
  }
}

TEST(Options, MasksAreChecked) {
  for (Device device : testing::test_devices()) {
    Array a = xp::ones({3}, float32, device), above = xp::ones({2, 3}, bool_, device);
    EXPECT_THROW(xp::nanmean(a, {.axis = 0, .where = above}), ShapeError);
    EXPECT_THROW(xp::nanmean(a, {.where = a}), DtypeError);
    EXPECT_THROW(xp::nanvar(a, {.axis = 0, .where = above}), ShapeError);
    EXPECT_THROW(xp::nanvar(a, {.where = a}), DtypeError);
    EXPECT_THROW(xp::var(a, {.axis = 0, .where = above}), ShapeError);
    EXPECT_THROW(xp::hypot.reduce(a, {.initial = 0, .where = above}), ShapeError);
    EXPECT_EQ(xp::nanmean(a, {.where = a > 0}).item<int>(), 1);
  }
}

TEST(Options, RequireLooksAtTheMemory) {
  std::vector<float> numbers = {1, 2, 3};
  Array foreign = xp::wrap(numbers.data(), {3}, float32, cpu());
  EXPECT_EQ(xp::require(foreign, {}, {"W"}).data(), numbers.data());
  EXPECT_NE(xp::require(foreign, {}, {"O"}).data(), numbers.data());
  Array fixed = detail::wrap(numbers.data(), {3}, float32, cpu(), nullptr, true);
  EXPECT_EQ(xp::require(fixed, {}, {"C"}).data(), numbers.data());
  xp::require(fixed, {}, {"W"}).fill(0);
  EXPECT_EQ(numbers[0], 1);
}

TEST(Options, ListsKnownAtRunTime) {
  for (Device device : testing::test_devices()) {
    Array a = xp::arange(24, int64, device).reshape({2, 3, 4});
    std::vector<BasicIndex> view = {1, Slice(none, none, 2), -1};
    EXPECT_EQ(Array(a[view]).to_vector<int>(), (std::vector<int>{15, 23}));
    std::vector<Index> mixed = {Slice(), xp::array({2, 0}, device)};
    EXPECT_EQ(Array(a[mixed]).shape(), (Shape{2, 2, 4}));
    std::vector<xp::TypeArgument> types = {float32, a, 2.5};
    EXPECT_EQ(xp::result_type(types), float64);
    EXPECT_EQ(xp::broadcast_shapes(std::vector<Shape>{{2, 1}, {3}}), (Shape{2, 3}));
    std::vector<std::string_view> kinds = {"bool", "integral"};
    EXPECT_TRUE(xp::isdtype(uint8, kinds));
    std::vector<std::int64_t> places = {1, 3};
    EXPECT_EQ(xp::hsplit(a, places).size(), 3u);
    EXPECT_EQ(xp::argpartition(a.ravel(), places).shape(), Shape{24});
    EXPECT_EQ(xp::insert(a.ravel(), places, xp::array({7}, device)).shape(), Shape{26});
    EXPECT_EQ(xp::fft::fftn(a, {.axes = AxisList(std::vector<int>{0, 1})}).shape(), a.shape());
  }
}

TEST(Options, OfRandomNumbers) {
  namespace random = xp::random;
  for (Device device : testing::test_devices()) {
    DeviceScope scope(device);
    EXPECT_EQ(random::random(5).shape(), Shape{5});
    EXPECT_EQ(random::normal({.size = {2, 3}, .dtype = float64}).dtype(), float64);
    EXPECT_EQ(random::normal(0, 1, 4).shape(), Shape{4});
    EXPECT_EQ(random::poisson(3, {.size = {2, 2}, .dtype = int32}).dtype(), int32);
    EXPECT_EQ(random::randint(6).shape(), Shape());
    EXPECT_LT(random::randint(6, {.size = {100}}).max().item<int>(), 6);
    Array out = xp::zeros({2, 3}, float64, device);
    EXPECT_EQ(random::random({.out = out}).data(), out.data());
    EXPECT_GT(out.max().item<double>(), 0);
    EXPECT_THROW(random::random({.size = {4}, .out = out}), ShapeError);
    random::seed({1, 2});
    Array first = random::random(3);
    random::seed(xp::array({1, 2}, device));
    EXPECT_TRUE(xp::array_equal(first, random::random(3)));
    random::seed({2, 1});
    EXPECT_FALSE(xp::array_equal(first, random::random(3)));
    random::seed(none);
    EXPECT_FALSE(xp::array_equal(first, random::random(3)));
    random::Generator rng = random::default_rng({5});
    EXPECT_TRUE(xp::array_equal(rng.random(3), random::default_rng(5).random(3)));
    EXPECT_EQ(rng.integers(3, 6, {.size = {50}, .endpoint = true}).max().item<int>(), 6);
    Array a = xp::arange(12, int64, device).reshape({3, 4});
    EXPECT_TRUE(xp::array_equal(xp::sort(rng.permutation(a, 1), 1), a));
    EXPECT_EQ(rng.choice(a, {.size = {2}, .replace = false, .axis = 1}).shape(), (Shape{3, 2}));
    EXPECT_THROW(random::seed(xp::array({1.5}, device)), DtypeError);
    Device elsewhere = device.is_cpu() ? gpu(0) : cpu();
    EXPECT_THROW(rng.normal({.size = {3}, .device = elsewhere}), DeviceError);
    EXPECT_THROW(rng.integers(5, {.device = elsewhere}), DeviceError);
    EXPECT_THROW(rng.choice(5, {.device = elsewhere}), DeviceError);
    EXPECT_THROW(random::choice(a, {.size = {2}, .device = elsewhere}), DeviceError);
    EXPECT_EQ(rng.normal({.size = {3}, .device = device}).device(), device);
  }
}

TEST(Options, TrailingZerosAlone) {
  double nan = std::nan("");
  Array c = xp::array({1.0, nan, 0.0}, cpu());
  EXPECT_EQ(xp::polynomial::trimseq(c).size(), 2);
  EXPECT_THROW(xp::polynomial::trimcoef(xp::zeros({0}, float64, cpu())), ValueError);
}

TEST(Options, NumbersAsText) {
  EXPECT_EQ(xp::format_float_positional(1e-5), "0.00001");
  EXPECT_EQ(xp::format_float_positional(3), "3.");
  EXPECT_EQ(xp::format_float_positional(3, {.trim = '-'}), "3");
  EXPECT_EQ(xp::format_float_positional(3, {.trim = '0', .sign = true}), "+3.0");
  EXPECT_EQ(xp::format_float_positional(3.14159, {.precision = 2}), "3.14");
  EXPECT_EQ(xp::format_float_positional(0.1, {.precision = 20, .unique = false}),
            "0.10000000000000000555");
  EXPECT_EQ(xp::format_float_positional(-2.5, {.pad_left = 4, .pad_right = 3}), "  -2.5  ");
  EXPECT_EQ(xp::format_float_scientific(12345.678), "1.2345678e+04");
  EXPECT_EQ(xp::format_float_scientific(1e10, {.precision = 2, .exp_digits = 4}), "1.e+0010");
  EXPECT_EQ(xp::format_float_scientific(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(xp::base_repr(5), "101");
  EXPECT_EQ(xp::base_repr(-255, 16, 2), "-00FF");
  EXPECT_EQ(xp::base_repr(0, 2), "0");
  EXPECT_THROW(xp::base_repr(3, 1), ValueError);
  EXPECT_NE(xp::show_config().find("\nCPU: "), std::string::npos);
}

TEST(Options, QuestionsAboutDtypes) {
  EXPECT_EQ(xp::min_scalar_type(10), uint8);
  EXPECT_EQ(xp::min_scalar_type(-200), int16);
  EXPECT_EQ(xp::min_scalar_type(std::int64_t{1} << 40), uint64);
  EXPECT_EQ(xp::min_scalar_type(true), bool_);
  EXPECT_EQ(xp::min_scalar_type(1e10), float32);
  EXPECT_EQ(xp::min_scalar_type(3.1), float16);
  EXPECT_EQ(xp::min_scalar_type(1e50), float64);
  EXPECT_EQ(xp::min_scalar_type(std::complex<double>(1e50)), complex128);
  Array f = xp::ones({2}, float32), i = xp::ones({2}, int8);
  EXPECT_EQ(xp::common_type({f, f}), float32);
  EXPECT_EQ(xp::common_type({f, i}), float64);
  EXPECT_THROW(xp::common_type({f.astype(bool_)}), DtypeError);
  std::vector<Shape> walked;
  for (const Shape& at : xp::ndindex({2, 2})) walked.push_back(at);
  EXPECT_EQ(walked, (std::vector<Shape>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(xp::array_namespace_info::default_dtypes().at("integral"), int64);
  EXPECT_EQ(xp::array_namespace_info::dtypes({}, {"unsigned integer"}).size(), 4u);
  EXPECT_EQ(xp::array_namespace_info::devices().front(), cpu());
  EXPECT_EQ(xp::array_namespace_info::capabilities().at("max dimensions"), 8);
}

}  // namespace
}  // namespace rensa
