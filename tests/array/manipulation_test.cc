// Routines that rearrange arrays, against NumPy and by hand.
#include "rensa/array/internal.h"
#include "tests/array/replay.h"

namespace rensa {
namespace {

using testing::Call;
using testing::Routines;
using testing::test_devices;
using testing::thrown;

std::vector<Array> one(Array a) { return {std::move(a)}; }

OptionalAxis optional_axis(const Call& c) {
  if (!c.has("axis") || c.text("axis") == "none") return none;
  return c.axis();
}

Axes several_axes(const Call& c) {
  std::vector<std::int64_t> v = c.integers("axes");
  auto at = [&](std::size_t i) { return static_cast<int>(v[i]); };
  return v.size() == 1   ? Axes{at(0)}
         : v.size() == 2 ? Axes{at(0), at(1)}
                         : Axes{at(0), at(1), at(2)};
}

template <class T> xp::PadPairs<T> pairs(const Call& c, const std::string& key) {
  std::vector<std::int64_t> v = c.integers(key);
  if (v.size() == 1) return xp::PadPairs<T>(T(v[0]));
  std::vector<std::pair<T, T>> result;
  for (std::size_t i = 0; i + 1 < v.size(); i += 2) result.push_back({T(v[i]), T(v[i + 1])});
  return result;
}

Array padded(const Call& c, xp::PadOptions options = {}) {
  return xp::pad(c.in[0], pairs<std::int64_t>(c, "width"), c.text("mode"), options);
}

Array padded_by(const Call& c, std::int64_t width, const char* mode,
                const xp::PadOptions& options) {
  return xp::pad(c.in[0], width, mode, options);
}

xp::PadOptions statistic_options(const Call& c) {
  xp::PadOptions options;
  options.stat_length = pairs<std::int64_t>(c, "length");
  return options;
}

xp::PadOptions odd() {
  xp::PadOptions options;
  options.odd = true;
  return options;
}

xp::PadOptions numbers(const Call& c) {
  xp::PadOptions options;
  options.constant_values = options.end_values = pairs<Scalar>(c, "values");
  return options;
}

Slice slice_of(const Call& c) {
  std::vector<std::int64_t> v = c.integers("slice");
  return Slice(v[0], v[1], v[2]);
}

Array copied(const Call& c) {
  Array a = c.in[0].copy();
  xp::copyto(a, c.in[1], c.text("casting"), c.in.size() > 2 ? c.in[2] : Array());
  return a;
}

Array windows(const Call& c) {
  using xp::lib::stride_tricks::sliding_window_view;
  if (c.has("axes")) return sliding_window_view(c.in[0], c.shape("window"), c.shape("axes"));
  return sliding_window_view(c.in[0], c.shape("window"));
}

std::vector<Array> cut(const Call& c, std::vector<Array> (*f)(const Array&, const IntegerList&)) {
  return f(c.in[0], c.integer("n"));
}

// vsplit takes its places as a list in the source; any number of them goes by way of split.
std::vector<Array> vsplit_at(const Call& c) {
  std::vector<std::int64_t> v = c.integers("at");
  if (v.empty()) return xp::vsplit(c.in[0], std::initializer_list<std::int64_t>{});
  if (v.size() == 1) return xp::vsplit(c.in[0], {v[0]});
  return xp::vsplit(c.in[0], {v[0], v[1]});
}

#define RENSA_ROUTINE(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return one(__VA_ARGS__); })
#define RENSA_ROUTINES(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return __VA_ARGS__; })

Routines shaping() {
  return {
      RENSA_ROUTINE(atleast_1d, xp::atleast_1d(c.in[0])),
      RENSA_ROUTINE(atleast_2d, xp::atleast_2d(c.in[0])),
      RENSA_ROUTINE(atleast_3d, xp::atleast_3d(c.in[0])),
      RENSA_ROUTINE(ravel, xp::ravel(c.in[0])),
      RENSA_ROUTINE(matrix_transpose, xp::matrix_transpose(c.in[0])),
      RENSA_ROUTINE(squeeze, xp::squeeze(c.in[0])),
      RENSA_ROUTINE(fliplr, xp::fliplr(c.in[0])),
      RENSA_ROUTINE(flipud, xp::flipud(c.in[0])),
      RENSA_ROUTINE(flip, xp::flip(c.in[0])),
      RENSA_ROUTINE(flip_axes, xp::flip(c.in[0], several_axes(c))),
      RENSA_ROUTINE(rot90, xp::rot90(c.in[0])),
      RENSA_ROUTINE(rot90_axes, xp::rot90(c.in[0], c.integer("k"), c.shape("axes"))),
      RENSA_ROUTINE(moveaxis, xp::moveaxis(c.in[0], c.shape("source"), c.shape("target"))),
      RENSA_ROUTINE(rollaxis,
                    xp::rollaxis(c.in[0], c.axis(), static_cast<int>(c.integer("start")))),
      RENSA_ROUTINE(swapaxes,
                    xp::swapaxes(c.in[0], c.axis(), static_cast<int>(c.integer("start")))),
      RENSA_ROUTINE(expand_dims, xp::expand_dims(c.in[0], c.shape("axes"))),
      RENSA_ROUTINE(squeeze_axes, xp::squeeze(c.in[0], c.shape("axes"))),
      RENSA_ROUTINE(permute_dims, xp::permute_dims(c.in[0], c.shape("axes"))),
      RENSA_ROUTINES(broadcast_arrays, xp::broadcast_arrays(c.in)),
      RENSA_ROUTINE(concatenate, xp::concatenate(c.in, optional_axis(c))),
      RENSA_ROUTINE(concatenate_as, xp::concatenate(c.in, {.dtype = parse_dtype(c.text("dtype")),
                                                           .casting = c.text("casting")})),
      RENSA_ROUTINE(stack, xp::stack(c.in, c.axis())),
      RENSA_ROUTINE(vstack, xp::vstack(c.in)),
      RENSA_ROUTINE(hstack, xp::hstack(c.in)),
      RENSA_ROUTINE(dstack, xp::dstack(c.in)),
      RENSA_ROUTINE(column_stack, xp::column_stack(c.in)),
      RENSA_ROUTINE(append, xp::append(c.in[0], c.in[1], optional_axis(c))),
      RENSA_ROUTINES(split, xp::split(c.in[0], c.integer("n"), c.axis())),
      RENSA_ROUTINES(array_split, xp::array_split(c.in[0], c.integer("n"), c.axis())),
      RENSA_ROUTINES(hsplit, cut(c, xp::hsplit)),
      RENSA_ROUTINES(vsplit, cut(c, xp::vsplit)),
      RENSA_ROUTINES(dsplit, cut(c, xp::dsplit)),
      RENSA_ROUTINES(split_at, xp::split(c.in[0], std::span<const std::int64_t>(c.integers("at")))),
      RENSA_ROUTINES(vsplit_at, vsplit_at(c)),
      RENSA_ROUTINES(unstack, xp::unstack(c.in[0], c.axis())),
  };
}

Routines rearranging() {
  return {
      RENSA_ROUTINE(tile, xp::tile(c.in[0], c.shape("reps"))),
      RENSA_ROUTINE(repeat, xp::repeat(c.in[0], c.integer("n"), optional_axis(c))),
      RENSA_ROUTINE(repeat_counts, xp::repeat(c.in[0], c.integers("counts"), c.axis())),
      RENSA_ROUTINE(repeat_array, xp::repeat(c.in[0], c.in[1], optional_axis(c))),
      RENSA_ROUTINE(roll, xp::roll(c.in[0], c.integer("shift"))),
      RENSA_ROUTINE(roll_axis, xp::roll(c.in[0], c.integer("shift"), c.axis())),
      RENSA_ROUTINE(roll_axes, xp::roll(c.in[0], c.shape("shifts"), c.shape("axes"))),
      RENSA_ROUTINE(resize, xp::resize(c.in[0], c.shape("shape"))),
      RENSA_ROUTINE(delete, xp::delete_(c.in[0], c.integer("at"), optional_axis(c))),
      RENSA_ROUTINE(delete_slice, xp::delete_(c.in[0], slice_of(c), optional_axis(c))),
      RENSA_ROUTINE(delete_list, xp::delete_(c.in[0], c.integers("at"), optional_axis(c))),
      RENSA_ROUTINE(delete_array, xp::delete_(c.in[0], c.in[1], optional_axis(c))),
      RENSA_ROUTINE(insert, xp::insert(c.in[0], c.integer("at"), c.in[1], optional_axis(c))),
      RENSA_ROUTINE(insert_list, xp::insert(c.in[0], c.integers("at"), c.in[1], optional_axis(c))),
      RENSA_ROUTINE(trim_zeros, xp::trim_zeros(c.in[0], c.text("trim"), optional_axis(c))),
      RENSA_ROUTINE(pad, padded(c)),
      RENSA_ROUTINE(pad_statistic, padded_by(c, 2, c.text("mode").c_str(), statistic_options(c))),
      RENSA_ROUTINE(pad_odd, padded(c, odd())),
      RENSA_ROUTINE(pad_constants, padded_by(c, 2, "constant", numbers(c))),
      RENSA_ROUTINE(pad_ends, padded_by(c, 3, "linear_ramp", numbers(c))),
      RENSA_ROUTINE(copyto, copied(c)),
      RENSA_ROUTINE(sliding_window_view, windows(c)),
  };
}

TEST(Manipulation, MatchesNumPy) {
  Routines routines = shaping();
  routines.merge(rearranging());
  testing::replay("numpy_manipulation.txt", routines, 2900);
}

// The elements of `a` as C++ has them, for loops to compare with.
std::vector<double> elements(const Array& a) { return a.to_vector<double>(); }

TEST(Manipulation, BigArrays) {
  for (Device device : test_devices()) {
    for (Dtype dtype : {bfloat16, int8, float32, complex128}) {
      std::int64_t n = 1000, m = 1003;
      Array a = (xp::arange(n * m, int64, device) % 101).astype(dtype).reshape({n, m});
      Array rolled = xp::roll(a, {3, -7}, {0, 1}), tiled = xp::tile(a, {1, 2});
      Array repeated = xp::repeat(a, 2, 0), kept = xp::delete_(a, Slice(0, none, 3), 1);
      EXPECT_TRUE(xp::array_equal(rolled[{Slice(3, none), Slice(none, -7)}],
                                  a[{Slice(none, -3), Slice(7, none)}]));
      EXPECT_TRUE(xp::array_equal(rolled[{Slice(none, 3), Slice(-7, none)}],
                                  a[{Slice(-3, none), Slice(none, 7)}]));
      EXPECT_TRUE(xp::array_equal(tiled[{ellipsis, Slice(m, none)}], a));
      EXPECT_TRUE(xp::array_equal(repeated[{Slice(1, none, 2)}], a));
      EXPECT_TRUE(xp::array_equal(kept[{ellipsis, Slice(none, none, 2)}],
                                  a[{ellipsis, Slice(1, none, 3)}]));
      Array framed = xp::pad(a, {{2, 3}, {0, 1}}, "reflect");
      EXPECT_TRUE(xp::array_equal(framed[{Slice(2, -3), Slice(none, -1)}], a));
      EXPECT_TRUE(xp::array_equal(framed[{0, Slice(none, -1)}], a[2]));
      EXPECT_TRUE(xp::array_equal(framed[{ellipsis, -1}], framed[{ellipsis, -3}]));
      EXPECT_EQ(framed.dtype(), dtype);
    }
  }
}

TEST(Manipulation, PadsALargeArrayWithOneNumber) {
  for (Device device : test_devices()) {
    Array a = xp::ones({600, 700}, float16, device);
    Array b = xp::pad(a, {1, 2}, "constant", {.constant_values = 3});
    EXPECT_EQ(b.shape(), (Shape{603, 703}));
    EXPECT_EQ(b.astype(float64).sum().item<double>(), 420'000 + 3.0 * (603 * 703 - 420'000));
    Array c = xp::pad(a, 1, "constant", {.constant_values = {{1, 1}, {0, 4}}});
    EXPECT_EQ((c[{0, 0}]).item<float>(), 0);
    EXPECT_EQ((c[{0, 5}]).item<float>(), 1);
    EXPECT_EQ((c[{0, -1}]).item<float>(), 4);
  }
}

/// The same elements one after the other, at an odd address, every second in memory, backwards, and
/// in Fortran's order.
std::vector<Array> forms_of(const Array& a) {
  Array apart = xp::zeros({a.size() + 1}, a.dtype(), a.device())[Slice(1, none)];
  Array doubled = xp::repeat(a, 2, -1), back = xp::flip(a).copy();
  apart[Slice()] = a.reshape({-1});
  return {a, apart.reshape(a.shape()), doubled[{ellipsis, Slice(none, none, 2)}], xp::flip(back),
          a.T().copy().T()};
}

// One pass: rows of any length and borders anywhere, whatever lies at multiples of what.
TEST(Manipulation, PadsByOneNumberAtAnyAddress) {
  struct Case {
    Shape shape;
    xp::PadWidth width;
  };
  const std::vector<Case> cases{{{5}, {{0, 0}}},
                                {{1000}, {{3, 2}}},
                                {{0}, {{2, 3}}},
                                {{3, 0, 2}, {{1, 0}, {0, 0}, {0, 1}}},
                                {{3, 0, 2}, {{1, 0}, {2, 1}, {0, 0}}},
                                {{7, 1}, {{1, 2}, {0, 1}}},
                                {{1, 9}, {{0, 0}, {0, 40}}},
                                {{4, 6, 64}, {{0, 0}, {2, 1}, {0, 0}}},
                                {{4, 6, 64}, {{0, 0}, {1, 1}, {1, 1}}},
                                {{4, 1, 64}, {{0, 0}, {1, 1}, {64, 0}}},
                                {{3, 5, 7, 9}, {{1, 0}, {0, 2}, {3, 0}, {0, 5}}},
                                {{2, 3, 4, 37}, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}},
                                {{300, 700}, {{1, 1}, {1, 1}}}};
  for (Device device : test_devices()) {
    for (Dtype dtype : {bool_, int8, bfloat16, float32, float64, complex128}) {
      for (const auto& [shape, width] : cases) {
        Array whole = (xp::arange(shape.total(), int64, device) % 101).astype(dtype).reshape(shape);
        for (const Array& a : forms_of(whole)) {
          Shape padded = shape;
          for (int i = 0; i < shape.ndim(); ++i) {
            const auto& [before, after] = width.pairs()[static_cast<std::size_t>(i)];
            padded[i] += before + after;
          }
          Array want = xp::full(padded, 1, dtype, device), inner = want;
          for (int i = 0; i < shape.ndim(); ++i) {
            std::int64_t before = width.pairs()[static_cast<std::size_t>(i)].first;
            inner = rensa::detail::slice_along(inner, i, before, shape[i]);
          }
          xp::copyto(inner, whole);
          Array got = xp::pad(a, width, "constant", {.constant_values = 1});
          EXPECT_TRUE(xp::array_equal(got, want)) << a.view().describe() << " to " << padded.str();
        }
      }
    }
  }
}

TEST(Manipulation, ConcatenatesManyArrays) {
  for (Device device : test_devices()) {
    std::vector<Array> parts;
    std::vector<double> want;
    for (int i = 0; i < 1000; ++i) {
      parts.push_back(xp::arange(i, i + i % 5, 1, i % 2 ? float32 : int16, device));
      for (int k = 0; k < i % 5; ++k) want.push_back(i + k);
    }
    Array joined = xp::concatenate(parts);
    EXPECT_EQ(joined.dtype(), float32);
    EXPECT_EQ(elements(joined), want);
  }
}

TEST(Manipulation, JoinsIntoOut) {
  for (Device device : test_devices()) {
    Array a = xp::array({1, 2}, device), b = xp::array({3, 4}, device);
    Array out = xp::zeros({4}, float32, device);
    EXPECT_EQ(xp::concatenate({a, b}, {.out = out}).data(), out.data());
    EXPECT_EQ(out.to_vector<int>(), (std::vector<int>{1, 2, 3, 4}));
    // The operands are parts of out itself.
    Array front = out[Slice(0, 2)], back = out[Slice(2, 4)];
    xp::concatenate({back, front}, {.out = out});
    EXPECT_EQ(out.to_vector<int>(), (std::vector<int>{3, 4, 1, 2}));
    Array flipped = xp::zeros({2, 2}, int64, device);
    xp::stack({a, b}, {.axis = 1, .out = xp::flip(flipped)});
    EXPECT_EQ(flipped.to_vector<int>(), (std::vector<int>{4, 2, 3, 1}));
    Array small = xp::zeros({3}, int64, device);
    EXPECT_NE(thrown<ShapeError>([&] {
                xp::concatenate({a, b}, {.out = small});
              }).find("(3,)"),
              std::string::npos);
    EXPECT_THROW(xp::concatenate({a, b}, {.out = out, .dtype = float32}), ValueError);
    Array bytes = xp::zeros({4}, bool_, device);
    EXPECT_THROW(xp::concatenate({a, b}, {.out = bytes}), DtypeError);
  }
}

TEST(Manipulation, ViewsShareMemory) {
  for (Device device : test_devices()) {
    Array a = xp::arange(12, float32, device).reshape({3, 4});
    for (const Array& view :
         {xp::moveaxis(a, 0, 1), xp::flip(a), xp::rot90(a), xp::split(a, 2, 1)[1],
          xp::unstack(a)[2], xp::expand_dims(a, {0, 2}), xp::atleast_3d(a),
          xp::broadcast({a, xp::zeros({2, 1, 1}, float32, device)}).values()[0],
          xp::lib::stride_tricks::sliding_window_view(a, 2, 1)}) {
      EXPECT_EQ(view.storage(), a.storage());
      EXPECT_TRUE(xp::shares_memory(view, a));
    }
    EXPECT_FALSE(xp::shares_memory(xp::roll(a, 1), a));
    EXPECT_TRUE(xp::isfortran(a.T()));
    EXPECT_FALSE(xp::isfortran(a));
    EXPECT_TRUE(xp::isfortran(xp::asfortranarray(a)));
    EXPECT_TRUE(xp::array_equal(xp::asfortranarray(a), a));
  }
}

TEST(Manipulation, SharedMemoryIsFoundExactly) {
  Array a = xp::arange(60, int32).reshape({5, 12});
  auto at = [&](Slice rows, Slice columns) -> Array { return a[{rows, columns}]; };
  Slice all, even(0, none, 2), odd(1, none, 2);
  EXPECT_TRUE(xp::may_share_memory(at(all, even), at(all, odd)));
  EXPECT_FALSE(xp::shares_memory(at(all, even), at(all, odd)));
  EXPECT_FALSE(xp::shares_memory(at(even, all), at(odd, all)));
  EXPECT_TRUE(xp::shares_memory(at(all, Slice(0, none, 3)), at(all, even)));
  EXPECT_FALSE(xp::shares_memory(at(all, Slice(0, 6)), at(all, Slice(6, 12))));
  EXPECT_TRUE(xp::shares_memory(xp::flip(a), at(Slice(4, 5), Slice(11, 12))));
  EXPECT_FALSE(xp::shares_memory(at(Slice(0, 0), all), a));
  EXPECT_FALSE(xp::shares_memory(a, xp::arange(60, int32)));
  // By brute force: every pair of slices of a line of bytes.
  Array line = xp::zeros({24}, int16);
  for (std::int64_t start = 0; start < 6; ++start) {
    for (std::int64_t step : {1, 2, 3, 5, -2, -3}) {
      Array x = line[Slice(start, start + 12, 4)];
      Array y = step > 0 ? line[Slice(start / 2, 20, step)] : line[Slice(20, start, step)];
      bool meet = false;
      for (std::int64_t i = 0; i < x.size(); ++i) {
        for (std::int64_t k = 0; k < y.size(); ++k) meet |= x[i].data() == y[k].data();
      }
      EXPECT_EQ(xp::shares_memory(x, y), meet) << start << " " << step;
    }
  }
  auto [begin, end] = xp::byte_bounds(xp::flip(a));
  EXPECT_EQ(begin, static_cast<const char*>(a.data()));
  EXPECT_EQ(end - begin, a.nbytes());
}

TEST(Manipulation, StridesStayInsideTheMemory) {
  using xp::lib::stride_tricks::as_strided;
  for (Device device : test_devices()) {
    Array a = xp::arange(6, int32, device);
    EXPECT_EQ(as_strided(a, {4, 3}, {4, 4}).to_vector<int>(),
              (std::vector<int>{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5}));
    EXPECT_EQ(as_strided(a[5], {6}, {-4}).to_vector<int>(), (std::vector<int>{5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(as_strided(a, {0, 9}, {400, 400}).size(), 0);
    EXPECT_NE(thrown<ShapeError>([&] {
                as_strided(a, {4, 3}, {4, 8});
              }).find("as_strided"),
              std::string::npos);
    EXPECT_THROW(as_strided(a, {2}, {-4}), ShapeError);
    EXPECT_THROW(as_strided(a, {2}, {4, 4}), ShapeError);
    EXPECT_THROW(as_strided(a, {-2}, {4}), ShapeError);
  }
}

TEST(Manipulation, CopiesNumbers) {
  for (Device device : test_devices()) {
    Array a = xp::zeros({2, 2}, int8, device), mask = xp::array({1, 0}, device).astype(bool_);
    xp::copyto(a, 5);
    xp::copyto(a, -1, "same_kind", mask);
    EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{-1, 5, -1, 5}));
    xp::copyto(a, 2.75, "unsafe");
    EXPECT_EQ(a.to_vector<int>(), std::vector<int>(4, 2));
    EXPECT_THROW(xp::copyto(a, 2.75), DtypeError);
    EXPECT_THROW(xp::copyto(a, 300), ValueError);
    EXPECT_THROW(xp::copyto(a, a, "perhaps"), ValueError);
    EXPECT_THROW(xp::copyto(a, a, "no", a), DtypeError);  // where is no mask
    EXPECT_THROW(xp::copyto(a, xp::zeros({3}, int8, device)), ShapeError);
  }
}

TEST(Manipulation, ShapesAndSizes) {
  Array a = xp::zeros({2, 3});
  EXPECT_EQ(xp::ndim(a), 2);
  EXPECT_EQ(xp::shape(a), (Shape{2, 3}));
  EXPECT_EQ(xp::size(a), 6);
  EXPECT_EQ(xp::size(a, -1), 3);
  EXPECT_EQ(xp::broadcast_shapes({{3}, {2, 1}, {}}), (Shape{2, 3}));
  xp::broadcast both({a, xp::zeros({4, 1, 1})});
  EXPECT_EQ(both.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(both.size(), 24);
  EXPECT_EQ(both.ndim(), 3);
}

TEST(Manipulation, ErrorsNameTheRoutine) {
  Array a = xp::zeros({2, 3});
  auto names = [](const std::string& text, const char* name) {
    EXPECT_EQ(text.find(name), 0u) << text;
  };
  names(thrown<ShapeError>([&] { xp::split(a, 2, 1); }), "split: axis 1 of cpu (2, 3) float32");
  names(thrown<ShapeError>([&] { xp::dsplit(a, 1); }), "dsplit");
  names(thrown<ValueError>([&] { xp::pad(a, 1, "mirror"); }), "pad: there is no mode \"mirror\"");
  names(thrown<ShapeError>([&] { xp::pad(a, {{1, 1}, {1, 1}, {1, 1}}); }), "pad: 3 pairs");
  names(thrown<IndexError>([&] { xp::delete_(a, 6); }), "delete: index 6");
  names(thrown<IndexError>([&] { xp::insert(a, 3, a, 0); }), "insert: index 3");
  names(thrown<ShapeError>([&] { xp::repeat(a, {1, 2}, 1); }), "repeat: 2 counts");
  names(thrown<ValueError>([&] { xp::moveaxis(a, {0, 0}, {0, 1}); }), "moveaxis");
  names(thrown<ValueError>([&] { xp::concatenate(std::span<const Array>()); }), "concatenate");
  names(thrown<ValueError>([&] { xp::stack({a, Array()}); }), "stack");
  EXPECT_THROW(xp::repeat(a, xp::array({1.5})), DtypeError);
}

TEST(Manipulation, WhatLiesSideBySideIsJoinedInPlace) {
  using detail::joined_in_place;
  for (Device device : testing::test_devices()) {
    Array a = xp::arange(4 * 6 * 5, float32, device).reshape({4, 6, 5});
    for (const Array& x : {a, a.transpose({2, 0, 1}), Array(a[{Slice(), Slice(0, 6, 2)}])}) {
      for (int axis = 0; axis < 3; ++axis) {
        std::vector<Array> parts = xp::split(x, IntegerList{1, 2}, axis),
                           turned(parts.rbegin(), parts.rend());
        std::optional<Array> whole = joined_in_place(parts, axis);
        ASSERT_TRUE(whole) << axis;
        EXPECT_EQ(whole->data(), x.data());
        EXPECT_TRUE(xp::array_equal(*whole, x));
        EXPECT_EQ(joined_in_place(std::vector<Array>{parts[1]}, axis)->data(), parts[1].data());
        EXPECT_FALSE(joined_in_place(turned, axis));
        // With a gap, as every second element or not at all.
        std::vector<Array> ends = {parts[0], parts[2]};
        std::optional<Array> apart = joined_in_place(ends, axis);
        EXPECT_EQ(apart.has_value(), parts[2].shape(axis) == 1);
        EXPECT_TRUE(!apart || xp::array_equal(*apart, xp::concatenate(ends, axis)));
        EXPECT_FALSE(joined_in_place(std::vector<Array>{parts[0], parts[1].copy()}, axis));
        EXPECT_FALSE(joined_in_place(std::vector<Array>{parts[0], parts[1].view(int32)}, axis));
      }
    }
    Array rows = xp::arange(12, int32, device).reshape({4, 3});
    std::vector<Array> each = {rows[0], rows[1], rows[2]};
    for (Array& row : each) row = row.expand_dims(0);
    EXPECT_TRUE(xp::array_equal(*joined_in_place(each, 0), rows[Slice(0, 3)]));
    EXPECT_FALSE(joined_in_place(std::vector<Array>{each[0], each[0]}, 0));
    EXPECT_FALSE(joined_in_place(std::vector<Array>{each[0], each[2], each[1]}, 0));
  }
}

}  // namespace
}  // namespace rensa
