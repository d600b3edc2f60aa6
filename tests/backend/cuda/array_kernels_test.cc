// The CUDA kernels of arrays against the CPU's: sizes, strides and alignments that take every path
// of elementwise operations, copies and reductions. Values are small integers, so that sums are
// exact in any order and results have to be equal.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// Integers in [-3, 3], or [0, 3] for unsigned dtypes and bool.
Array sample(const Shape& shape, Dtype dtype = float32, int salt = 0) {
  std::int64_t n = shape.total();
  Array values = (xp::arange(n, int64) * 7 + salt) % 13 % 7;
  if (dtype_kind(dtype) == 'u' || dtype == bool_) values = values % 4;
  else values = values - 3;
  return values.astype(dtype).reshape(shape);
}

// A copy on gpu(0) that starts `skip` elements behind an aligned address.
Array on_gpu(const Array& a, std::int64_t skip = 0) {
  Array room = xp::empty({a.size() + skip}, a.dtype(), gpu(0));
  Array target = room[Slice(skip, none)];
  target.assign(a.ravel().to(gpu(0)));
  return target.reshape(a.shape());
}

void expect_equal(const Array& got, const Array& want, const std::string& what) {
  Array host = to_cpu(got);
  ASSERT_EQ(host.shape(), want.shape()) << what;
  ASSERT_EQ(host.dtype(), want.dtype()) << what;
  EXPECT_TRUE(xp::array_equal(host, want)) << what;
}

using Function = std::function<Array(const std::vector<Array>&)>;

// f of copies on the GPU, aligned and not, equals f on the CPU.
void check(const std::string& what, const std::vector<Array>& inputs, const Function& f) {
  Array want = f(inputs);
  for (std::int64_t skip : {0, 1}) {
    std::vector<Array> copies;
    for (const Array& input : inputs) copies.push_back(on_gpu(input, skip));
    expect_equal(f(copies), want, what + (skip ? " (not aligned)" : ""));
  }
}

const std::vector<Dtype> kDtypes = {bool_,    int8,    int16,   int32,     int64,
                                    uint8,    uint16,  uint32,  uint64,    float16,
                                    bfloat16, float32, float64, complex64, complex128};

TEST(CudaElementwise, ContiguousOfAllSizes) {
  RENSA_NEEDS_GPUS(1);
  for (std::int64_t n : {0, 1, 3, 4, 5, 255, 1000, 4099, 270337, 3000001}) {
    check("add " + std::to_string(n), {sample({n}), sample({n}, float32, 5)},
          [](const auto& x) { return x[0] + x[1]; });
    check("multiply by a number " + std::to_string(n), {sample({n}, float16)},
          [](const auto& x) { return 2.5 * x[0]; });
    check("less " + std::to_string(n), {sample({n}), sample({n}, float32, 2)},
          [](const auto& x) { return x[0] < x[1]; });
    check("where " + std::to_string(n), {sample({n}, bool_), sample({n}), sample({n}, float32, 1)},
          [](const auto& x) { return xp::where(x[0], x[1], x[2]); });
  }
}

TEST(CudaElementwise, Dtypes) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype a : kDtypes) {
    for (Dtype b : kDtypes) {
      std::string what = std::string(dtype_name(a)) + ", " + std::string(dtype_name(b));
      check("add " + what, {sample({3, 37}, a), sample({3, 37}, b, 4)},
            [](const auto& x) { return x[0] + x[1]; });
      check("astype " + what, {sample({3, 37}, a)},
            [b](const auto& x) { return xp::abs(x[0]).astype(b); });
    }
  }
}

TEST(CudaElementwise, MixedFloatingDtypes) {
  RENSA_NEEDS_GPUS(1);
  using Row = Array (*)(const Array&, const Array&, const Array&);
  const std::vector<std::pair<std::string, Row>> rows = {
      {"add", [](auto& a, auto& b, auto& y) { return xp::add(a, b, {.out = y}); }},
      {"subtract", [](auto& a, auto& b, auto& y) { return xp::subtract(a, b, {.out = y}); }},
      {"multiply", [](auto& a, auto& b, auto& y) { return xp::multiply(a, b, {.out = y}); }},
      {"divide", [](auto& a, auto& b, auto& y) { return xp::divide(a, b, {.out = y}); }},
      {"maximum", [](auto& a, auto& b, auto& y) { return xp::maximum(a, b, {.out = y}); }},
      {"minimum", [](auto& a, auto& b, auto& y) { return xp::minimum(a, b, {.out = y}); }},
      {"remainder", [](auto& a, auto& b, auto& y) { return xp::remainder(a, b, {.out = y}); }}};
  const std::vector<Dtype> floating = {float16, bfloat16, float32};
  for (std::int64_t n : {0, 1, 7, 8, 9, 1023, 1024, 1033, 300001}) {
    for (Dtype first : floating) {
      for (Dtype second : floating) {
        Array a = sample({n}, first), b = (sample({n}, float32, 5) + 4.0f).astype(second);
        for (const auto& [name, row] : rows) {
          for (Dtype out : floating) {
            check(name + std::to_string(n), {a, b, xp::zeros({n}, out, cpu())},
                  [&row = row](auto& x) { return row(x[0], x[1], x[2]); });
          }
        }
        check("in place", {a, b}, [](auto& x) {
          Array y = x[0].copy();
          return y += x[1];
        });
      }
    }
  }
}

TEST(CudaElementwise, Layouts) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float32, float64, bfloat16, int32, int8}) {
    for (std::int64_t m : {1, 10, 64, 1000}) {
      Array matrix = sample({100, m}, dtype), row = sample({m}, dtype, 3);
      Array column = sample({100, 1}, dtype, 2), turned = sample({m, 100}, dtype, 1);
      check("row", {matrix, row}, [](const auto& x) { return x[0] + x[1]; });
      check("column", {matrix, column}, [](const auto& x) { return x[0] * x[1]; });
      check("outer", {row, column}, [](const auto& x) { return x[0] + x[1]; });
      check("turned", {matrix, turned}, [](const auto& x) { return x[0] + x[1].T(); });
      check("both turned", {matrix, turned.T().copy()},
            [](const auto& x) { return x[0].T() + x[1].T(); });
      check("steps", {matrix}, [](const auto& x) { return x[0][{Slice(none, none, 3)}] + 1; });
      check("backwards", {matrix}, [](const auto& x) { return x[0][{Slice(none, none, -1)}] + 1; });
    }
    Array cube = sample({6, 35, 48}, dtype), plane = sample({35, 1}, dtype, 4);
    check("channels", {cube, plane}, [](const auto& x) { return x[0] + x[1]; });
    check("axes", {cube}, [](const auto& x) {
      return x[0].transpose({2, 0, 1}) + x[0].T()[0][0][0];
    });
  }
}

TEST(CudaElementwise, InPlaceAndThroughViews) {
  RENSA_NEEDS_GPUS(1);
  check("in place", {sample({57, 33}), sample({33})}, [](const auto& x) {
    Array a = x[0].copy();
    a += x[1];
    a[{Slice(1, 40, 2), Slice(3, 20)}] += 5;
    a[{Slice(), 2}] = 7;
    return a;
  });
}

TEST(CudaCopy, Transpositions) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {int8, float16, float32, float64, complex128}) {
    for (Shape shape :
         {Shape{64, 64}, Shape{8, 9}, Shape{1000, 33}, Shape{70, 130}, Shape{3, 500}}) {
      check("transpose", {sample(shape, dtype)}, [](const auto& x) { return x[0].T().copy(); });
      check("into a transpose", {sample(shape, dtype)}, [](const auto& x) {
        Array out = xp::zeros({x[0].shape()[1], x[0].shape()[0]}, x[0].dtype(), x[0].device());
        out.T().assign(x[0]);
        return out;
      });
    }
    for (Shape axes :
         {Shape{0, 2, 1}, Shape{2, 0, 1}, Shape{1, 2, 0}, Shape{2, 1, 0}, Shape{1, 0, 2}}) {
      check("axes " + axes.str(), {sample({5, 40, 67}, dtype)},
            [&](const auto& x) { return x[0].transpose(axes).copy(); });
    }
    for (std::int64_t extent = 2; extent <= 8; ++extent) {  // a short axis: colours of images
      for (std::int64_t skip : {0, 1}) {                    // a view that no vector is aligned to
        auto view = [skip](const auto& x) { return x[0][{ellipsis, Slice(skip, none)}]; };
        check("a short axis apart", {sample({30, 50, extent + skip}, dtype)}, [&](const auto& x) {
          return view(x).transpose({0, 2, 1}).copy();
        });
        check("a short axis together", {sample({3, extent, 2000 + skip}, dtype)},
              [&](const auto& x) {
                return view(x).transpose({0, 2, 1}).copy();
              });
        check("a short axis between others", {sample({7, 5, extent, 40 + skip}, dtype)},
              [&](const auto& x) {
                return view(x).transpose({1, 3, 0, 2}).copy();
              });
      }
    }
    check("many of a short axis", {sample({300, 700, 4}, dtype)}, [](const auto& x) {
      return x[0].transpose({0, 2, 1}).copy();
    });
    check("steps", {sample({40, 66}, dtype)}, [](const auto& x) {
      return x[0][{Slice(none, none, 3), Slice(1, none, 2)}].copy();
    });
    check("rows of a slice", {sample({40, 66}, dtype)}, [](const auto& x) {
      return x[0][{Slice(), Slice(4, 40)}].copy();
    });
    check("broadcast", {sample({66}, dtype)}, [](const auto& x) {
      return x[0].broadcast_to({30, 66}).copy();
    });
  }
}

// Rows that begin and end anywhere within a vector, with others around them that stay as they are.
TEST(CudaCopy, RowsAtAnyAddress) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {int8, float16, float32, float64}) {
    for (std::int64_t from = 0; from < 17; ++from) {
      std::int64_t to = from * 7 % 17;
      for (std::int64_t width : {31, 32, 64, 100}) {
        Slice part(to, to + width), whole(from, from + width);
        std::string what = std::string(dtype_name(dtype)) + " " + std::to_string(width) + " from " +
                           std::to_string(from) + " to " + std::to_string(to);
        check("rows, " + what, {sample({3, 5, width + from}, dtype)}, [&](const auto& x) {
          Array out = xp::ones({3, 5, width + 19}, dtype, x[0].device());
          Array(out[{ellipsis, part}]).assign(x[0][{ellipsis, whole}]);
          return out;
        });
        check("one row, " + what, {sample({width + from}, dtype)}, [&](const auto& x) {
          Array out = xp::ones({width + to}, dtype, x[0].device());
          Array(out[part]).assign(x[0][whole]);
          return out;
        });
      }
    }
    check("windows", {sample({2, 9, 37}, dtype)}, [](const auto& x) {
      Array rows[] = {x[0][{Slice(), Slice(0, 8), Slice(0, 35)}],
                      x[0][{Slice(), Slice(1, 9), Slice(2, 37)}]};
      return xp::stack({rows[0], rows[1], rows[0]}, 1);
    });
  }
}

TEST(CudaCopy, Fills) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : kDtypes) {
    for (std::int64_t n : {1, 7, 64, 1000003}) {
      expect_equal(xp::full({n}, 3, dtype, gpu(0)), xp::full({n}, 3, dtype, cpu()), "full");
      check("fill a slice", {sample({n}, dtype)}, [n](const auto& x) {
        Array a = x[0].copy();
        a[Slice(n / 3, none)].fill(1);
        return a;
      });
    }
  }
}

struct Reduction {
  const char* name;
  Array (*run)(const Array&, const Axes&, bool);
};
const std::vector<Reduction> kReductions = {{"sum", xp::sum}, {"mean", xp::mean}, {"max", xp::max},
                                            {"min", xp::min}, {"any", xp::any},   {"all", xp::all}};

TEST(CudaReduce, ShapesAndAxes) {
  RENSA_NEEDS_GPUS(1);
  struct Case {
    Shape shape;
    std::vector<Axes> axes;
  };
  const std::vector<Case> cases = {
      {{1}, {{}, {0}}},
      {{5000017}, {{}}},
      {{100, 10}, {{}, {0}, {1}}},
      {{100, 1000}, {{}, {0}, {1}}},
      {{1024, 1000}, {{}, {0}, {1}}},
      {{3, 200000}, {{0}, {1}}},
      {{200000, 3}, {{0}, {1}}},
      {{40000, 132}, {{0}, {1}}},
      {{33, 1}, {{0}, {1}}},
      {{1, 33}, {{0}, {1}}},
      {{7, 50, 36}, {{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1}}},
      {{2, 3, 1100, 40}, {{0, 2, 3}, {1, 3}, {2}}},
      {{0, 4}, {{0}}},
  };
  for (const Reduction& reduction : kReductions) {
    for (Dtype dtype : {float32, float16, float64, int64, int32, uint8, bool_}) {
      for (const Case& c : cases) {
        if (c.shape.total() == 0 && std::string(reduction.name) != "sum") continue;
        if (c.shape.total() > 1000000 && dtype != float32 && dtype != uint8) continue;
        if (c.shape.total() > 200000 && testing::quick()) continue;
        Array x = sample(c.shape, dtype);
        for (const Axes& axes : c.axes) {
          check(std::string(reduction.name) + " " + x.view().describe(), {x},
                [&](const auto& v) { return reduction.run(v[0], axes, false); });
        }
      }
    }
  }
}

TEST(CudaReduce, Views) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float32, bfloat16, int16}) {
    Array x = sample({90, 70, 11}, dtype);
    for (int axis = 0; axis < 3; ++axis) {
      check("transposed", {x}, [axis](const auto& v) { return v[0].T().sum(axis, true); });
      check("sliced", {x}, [axis](const auto& v) {
        return v[0][{Slice(1, none, 2), Slice(none, none, -1), Slice(2, 9)}].max(axis);
      });
    }
    check("broadcast", {sample({70}, dtype)}, [](const auto& v) {
      return v[0].broadcast_to({30, 70}).sum(0);
    });
  }
}

TEST(CudaReduce, Positions) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float32, float16, float64, int32, uint8}) {
    for (Shape shape : {Shape{100, 10}, Shape{7, 5000}, Shape{5000, 7}, Shape{3, 300001}}) {
      Array x = sample(shape, dtype);
      for (int axis : {0, 1}) {
        check("argmax", {x}, [axis](const auto& v) { return xp::argmax(v[0], axis); });
        check("argmin", {x}, [axis](const auto& v) { return xp::argmin(v[0], axis); });
      }
      check("argmax of all", {x}, [](const auto& v) { return xp::argmax(v[0]); });
    }
  }
  std::vector<float> values(70000, 1.0f);
  values[60001] = values[60007] = std::numeric_limits<float>::quiet_NaN();
  check("NaN", {xp::array(values)}, [](const auto& v) { return xp::argmax(v[0]); });
  check("NaN", {xp::array(values)}, [](const auto& v) { return xp::argmin(v[0]); });
}

TEST(CudaReduce, SameBitsWhateverTheAlignment) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(1);
  for (Dtype dtype : {float32, float16, float64}) {
    for (Shape shape : {Shape{3000000}, Shape{100, 1000}, Shape{1000, 1001}, Shape{20000, 40},
                        Shape{10001}, Shape{3, 16384}, Shape{3, 16387}}) {
      Array x = xp::random::normal(0, 1, shape, dtype);
      for (int axis = 0; axis < shape.ndim(); ++axis) {
        Array first = to_cpu(on_gpu(x).sum(axis));
        for (std::int64_t skip : {0, 1, 3}) expect_equal(on_gpu(x, skip).sum(axis), first, "sum");
        EXPECT_TRUE(xp::allclose(first.astype(float64), x.sum(axis).astype(float64), 2e-3, 1e-2));
      }
    }
  }
}

// So few that a thread takes all of them, of columns that vectors divide and others.
TEST(CudaReduce, FewRowsOfManyColumns) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float32, bfloat16, int32, bool_}) {
    for (Shape shape : {Shape{2, 2200000}, Shape{3, 16, 300001}, Shape{700, 2, 4096}}) {
      for (const Reduction& reduction : kReductions) {
        int axis = shape.ndim() - 2;
        check(std::string(reduction.name) + " " + shape.str(), {sample(shape, dtype)},
              [&](const auto& x) { return reduction.run(x[0], axis, false); });
      }
    }
  }
}

// Rows that begin at a multiple of 16 bytes and end within a vector.
TEST(CudaReduce, SameBitsWhereRowsEndWithinAVector) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(2);
  for (std::int64_t rows : {1, 511, 512}) {
    for (std::int64_t width : {129, 517, 1001, 4097, 16385}) {
      Array x = xp::random::normal(0, 1, {rows, width + 3}, float32, cpu());
      Array part = x[{Slice(), Slice(0, width)}];
      Array want = to_cpu(on_gpu(part.copy(), 1).sum(1));
      expect_equal(x.to(gpu())[{Slice(), Slice(0, width)}].sum(1), want, "sum");
      EXPECT_TRUE(xp::allclose(want, part.sum(1), 1e-4, 1e-2)) << rows << " " << width;
    }
  }
}

}  // namespace
}  // namespace rensa
