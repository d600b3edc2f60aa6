// Products written into views: the values, what lies between them, and that no copy is made.
#include <functional>
#include <random>
#include <vector>

#include "rensa/device/launcher.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using V = std::vector<double>;

constexpr Dtype kDtypes[] = {float16, bfloat16, float32,   float64,   int8,
                             int32,   int64,    complex64, complex128};

// The names of the operations that a thread launches.
class Launches final : public Recorder {
 public:
  void operation(Operation& operation) override { names += std::string(operation.name()) + " "; }
  void effect(std::function<void()>, double, EffectTarget) override {}
  int scalar(std::function<HostScalar()>) override { return 0; }
  void output(const ArrayView&, Storage*,
              std::function<void(StoragePtr, const ArrayView&)>) override {}
  void binding(std::function<const Storage*()>) override {}
  void watch(std::function<std::vector<std::string>()>) override {}
  void state(const std::shared_ptr<StateBody>&, bool) override {}
  void cannot_record(const char* reason) override { names += reason; }
  std::string names;
};

template <class F> std::string launches_of(F&& f) {
  Launches launches;
  RecorderScope scope(&launches);
  f();
  return launches.names;
}

// Small integers, so that every product is exact in every type.
Array numbers(const Shape& shape, Dtype dtype, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> distribution(-2, 2);
  V v;
  for (std::int64_t i = 0; i < shape.total(); ++i) v.push_back(distribution(engine));
  return xp::array(v).reshape(shape).astype(dtype);
}

// A view of `all`'s memory, and the number in `all` before anything is written.
struct Place {
  const char* name;
  Array all, view;
};
constexpr int kBefore = 77;

Array before(const Shape& shape, Dtype dtype) { return xp::full(shape, kBefore, dtype); }

// What every element of the place's memory is after `want` was written into the view.
V after(const Place& place, const Array& want) {
  Array all = xp::full_like(place.all, kBefore);
  const ArrayView &whole = place.all.view(), &view = place.view.view();
  Shape strides = view.strides;
  std::int64_t size = itemsize(whole.dtype), offset = (view.data - whole.data) / size;
  V values = all.to_vector<double>(), wanted = want.to_vector<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = offset;
    for (int axis = view.ndim() - 1; axis >= 0; --axis) {
      at += rest % view.shape[axis] * (strides[axis] / size);
      rest /= view.shape[axis];
    }
    values[static_cast<std::size_t>(at)] = wanted[i];
  }
  return values;
}

// Where the product (m, n) goes as it is.
std::vector<Place> places(std::int64_t m, std::int64_t n, Dtype d) {
  std::vector<Place> all;
  auto add = [&](const char* name, const Array& a, const Array& view) {
    all.push_back({name, a, view});
  };
  Array a = before({m, n}, d);
  add("contiguous", a, a);
  a = before({m, n + 3}, d);
  add("rows with a pitch", a, a[{Slice(), Slice(2, n + 2)}]);
  a = before({m + 1, n + 16}, d);
  add("rows with an even pitch", a, a[{Slice(0, m), Slice(0, n)}]);
  a = before({2 * m, n}, d);
  add("every second row", a, a[Slice(1, none, 2)]);
  a = before({n, m}, d);
  add("columns", a, a.T());
  a = before({n, m + 5}, d);
  add("columns with a pitch", a, a[{Slice(), Slice(4, m + 4)}].T());
  return all;
}

// Where many products (batch, m, n) go as they are.
std::vector<Place> places_of_many(std::int64_t batch, std::int64_t m, std::int64_t n, Dtype d) {
  std::vector<Place> all;
  auto add = [&](const char* name, const Array& a, const Array& view) {
    all.push_back({name, a, view});
  };
  Array a = before({batch, m, n}, d);
  add("contiguous", a, a);
  a = before({batch, m, n + 1}, d);
  add("rows with a pitch", a, a[{Slice(), Slice(), Slice(1, n + 1)}]);
  a = before({batch, m + 2, n}, d);
  add("matrices with a pitch", a, a[{Slice(), Slice(2, m + 2)}]);
  a = before({m, batch, n}, d);
  add("the batch between rows", a, a.transpose({1, 0, 2}));
  a = before({batch, m, n}, d);
  add("the batch backwards", a, a[Slice(none, none, -1)]);
  a = before({batch, n, m + 1}, d);
  add("columns with a pitch", a, a[{Slice(), Slice(), Slice(0, m)}].swapaxes(1, 2));
  return all;
}

// An operand as it may lie.
std::vector<Array> operands(const Array& a) {
  int last = a.ndim() - 1;
  Shape wide = a.shape(), turned = a.shape();
  wide[last] += 3;
  std::swap(turned[last], turned[last - 1]);
  turned[last] += 6;
  Array rows = xp::zeros(wide, a.dtype()), columns = xp::zeros(turned, a.dtype());
  Array in_rows = rows[{ellipsis, Slice(1, a.shape(last) + 1)}];
  Array in_columns = columns[{ellipsis, Slice(0, a.shape(last - 1))}].swapaxes(-1, -2);
  in_rows.assign(a), in_columns.assign(a);
  return {a, in_rows, in_columns};
}

class MatmulInto : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, MatmulInto, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

void check(const Array& a, const Array& b, const Place& place) {
  SCOPED_TRACE(std::string(place.name) + ", " + a.view().describe() + " " + a.view().strides.str() +
               " @ " + b.view().strides.str());
  Array want = xp::matmul(a.copy(), b.copy());
  std::string launches = launches_of([&] { xp::matmul(a, b, {.out = place.view}); });
  EXPECT_EQ(launches, "matmul ");
  EXPECT_EQ(place.all.to_vector<double>(), after(place, want));
}

TEST_P(MatmulInto, MatricesOfAnyPitch) {
  struct Size {
    std::int64_t m, k, n;
  };
  for (Dtype d : kDtypes) {
    for (Size s : {Size{5, 7, 3}, Size{1, 4, 6}, Size{6, 3, 1}, Size{20, 65, 34}}) {
      Array a = numbers({s.m, s.k}, d, 1), b = numbers({s.k, s.n}, d, 2);
      for (const Array& x : operands(a)) {
        for (const Array& y : operands(b)) {
          for (const Place& place : places(s.m, s.n, d)) check(x, y, place);
        }
      }
    }
  }
}

TEST_P(MatmulInto, ManyMatricesOfAnyPitch) {
  for (Dtype d : {bfloat16, float32, float64, int32}) {
    for (std::int64_t m : {1, 5}) {
      Array a = numbers({3, m, 4}, d, 3);
      for (const Array& b : {numbers({3, 4, 6}, d, 4), numbers({4, 6}, d, 5)}) {
        for (const Array& x : operands(a)) {
          for (const Array& y : operands(b)) {
            for (const Place& place : places_of_many(3, m, 6, d)) check(x, y, place);
          }
        }
      }
    }
  }
}

TEST_P(MatmulInto, VectorsAndNumbers) {
  Array a = numbers({5, 4}, float32, 1), b = numbers({4, 6}, float32, 2);
  auto line = [](std::int64_t n, std::int64_t step) {
    Array all = before({n, step}, float32);
    return Place{"a vector", all, all[{Slice(), step - 1}]};
  };
  check(a, b[{Slice(), 2}], line(5, 1)), check(a, b[{Slice(), 2}], line(5, 3));
  check(a[1], b, line(6, 1));
  Array number = before({3}, float32);
  check(a[1], b[{Slice(), 2}], {"a number", number, number[1]});
  Array rows = before({3, 8}, float32);
  check(numbers({4}, float32, 3), numbers({3, 4, 6}, float32, 4),
        {"rows", rows, rows[{Slice(), Slice(1, 7)}]});
}

TEST_P(MatmulInto, DotOfMoreAxes) {
  Array a = numbers({2, 5, 3}, float32, 4), b = numbers({3, 4}, float32, 5), want = xp::dot(a, b);
  Array all = before({2, 5, 6}, float32);
  Place rows{"rows", all, all[{ellipsis, Slice(1, 5)}]};
  EXPECT_EQ(launches_of([&] { xp::dot(a, b, {.out = rows.view}); }), "dot ");
  EXPECT_EQ(all.to_vector<double>(), after(rows, want));
  // Rows of two axes of which no view is one are made apart.
  all = before({2, 7, 4}, float32);
  Place parts{"parts", all, all[{Slice(), Slice(0, 5)}]};
  EXPECT_EQ(launches_of([&] { xp::dot(a, b, {.out = parts.view}); }), "dot dot ");
  EXPECT_EQ(all.to_vector<double>(), after(parts, want));
}

TEST_P(MatmulInto, WhatNoProductWritesIsCopied) {
  Array a = numbers({5, 7}, float32, 1), b = numbers({7, 3}, float32, 2), want = xp::matmul(a, b);
  auto copied = [&](const Array& x, const Array& all, const Array& view) {
    EXPECT_EQ(launches_of([&] { xp::matmul(x, b, {.out = view}); }), "matmul matmul ");
    EXPECT_EQ(all.to_vector<double>(), after({"", all, view}, want));
  };
  Array all = before({5, 6}, float32);
  copied(a, all, all[{Slice(), Slice(none, none, 2)}]);
  all = before({5, 3}, float32);
  copied(a, all, all[Slice(none, none, -1)]);
  all = before({5, 3}, float64);
  copied(a, all, all);
  // Rows that are read and written.
  all = before({5, 8}, float32);
  Array read = all[{Slice(), Slice(0, 7)}];
  read.assign(a);
  std::string launches = launches_of([&] {
    xp::matmul(read, b, {.out = all[{Slice(), Slice(5, 8)}]});
  });
  EXPECT_EQ(launches, "matmul matmul ");
  EXPECT_EQ((all[{Slice(), Slice(5, 8)}].to_vector<double>()), want.to_vector<double>());
}

// Columns beside each other in one array share no element.
TEST_P(MatmulInto, ColumnsBesideTheOperands) {
  Array all = numbers({5, 10}, float32, 1), b = numbers({7, 3}, float32, 2);
  Array a = all[{Slice(), Slice(0, 7)}], want = xp::matmul(a.copy(), b);
  Array out = all[{Slice(), Slice(7, 10)}];
  EXPECT_EQ(launches_of([&] { xp::matmul(a, b, {.out = out}); }), "matmul ");
  EXPECT_EQ(out.to_vector<double>(), want.to_vector<double>());
}

// What follows a product: a factor, a bias, relu.
TEST_P(MatmulInto, Epilogues) {
  for (Dtype d : {float16, bfloat16, float32, float64, int32}) {
    for (std::int64_t batch : {1, 3}) {
      Array a = numbers({batch, 20, 9}, d, 1), b = numbers({batch, 9, 34}, d, 2),
            bias = numbers({34}, d, 3);
      for (const Place& place : places_of_many(batch, 20, 34, d)) {
        if (place.view.view().strides[2] != itemsize(d)) continue;  // the operation's c has rows
        for (int how = 0; how < 8; ++how) {
          SCOPED_TRACE(std::string(place.name) + ", " + place.view.view().describe() + " " +
                       std::to_string(how));
          bool has_bias = how & 1, has_relu = how & 2, has_factor = (how & 4) && d != int32;
          place.all.fill(kBefore);
          operations::Matmul op;
          op.a = a.operand(), op.b = b.operand(), op.c = place.view.operand();
          if (has_bias) op.bias = bias.operand();
          if (has_relu) op.activation = operations::Activation::relu;
          if (has_factor) op.alpha = 0.5;
          launch(op);
          Array want = xp::matmul(a, b);
          if (has_factor) want = want * 0.5;
          if (has_bias) want = want + bias;
          if (has_relu) want = xp::maximum(want, xp::zeros_like(want));
          EXPECT_EQ(place.all.to_vector<double>(), after(place, want));
        }
      }
    }
  }
}

}  // namespace
}  // namespace rensa
