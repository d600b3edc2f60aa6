// The CUDA kernels of training against the CPU's: gather and scatter, random numbers, the loss, the
// fused gradient and the update rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/dropout/dropout.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Array normal(const Shape& shape, Dtype dtype = float32) {
  return xp::random::normal(0, 1, shape, dtype, cpu());
}

void expect_equal(const Array& got, const Array& want, const std::string& what) {
  EXPECT_TRUE(xp::array_equal(to_cpu(got), to_cpu(want))) << what;
}

void expect_close(const Array& got, const Array& want, double tolerance, const std::string& what) {
  EXPECT_TRUE(
      xp::allclose(to_cpu(got).astype(float64), to_cpu(want).astype(float64), tolerance, tolerance))
      << what;
}

double tolerance(Dtype dtype) {
  return dtype == float16 ? 2e-3 : dtype == bfloat16 ? 2e-2 : dtype == float32 ? 2e-6 : 1e-13;
}

TEST(CudaRows, GatherAndScatter) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {bool_, int16, float32, float64, complex128}) {
    for (Shape row : {Shape{}, Shape{1}, Shape{7}, Shape{784}, Shape{3, 5}}) {
      Shape shape = row;
      shape.insert(0, 50);
      Array x = (xp::arange(shape.total()) % 97).astype(dtype).reshape(shape);
      Array gx = x.to(gpu(0));
      for (Dtype index_dtype : {int64, int32, int8, uint8}) {
        Array index = xp::array({3, 49, 0, 3, 17, 3}).astype(index_dtype);
        expect_equal(xp::take(gx, index.to(gpu(0)), 0), xp::take(x, index, 0), "take");
        Array grid = index.reshape({2, 3});
        expect_equal(xp::take(gx, grid.to(gpu(0)), 0), xp::take(x, grid, 0), "take by a grid");
        Array sums = x.copy(), gpu_sums = gx.copy(), values = xp::take(x, index, 0);
        xp::scatter_add(sums, index, values);
        xp::scatter_add(gpu_sums, index.to(gpu(0)), values.to(gpu(0)));
        expect_equal(gpu_sums, sums, "scatter_add");
      }
      Array index = xp::array({3, -1, 0, -50, 17});
      Array target = x.copy(), gpu_target = gx.copy(), values = x[Slice(20, 25)].copy();
      target[xp::array({3, -1, 0, 5, 17})] = values;
      gpu_target[xp::array({3, -1, 0, 5, 17}).to(gpu(0))] = values.to(gpu(0));
      expect_equal(gpu_target, target, "setitem");
      expect_equal(xp::take(gx, index.to(gpu(0)), 0), xp::take(x, index, 0), "negative indices");
      if (row.ndim() == 2) {
        expect_equal(xp::take(gx.transpose({0, 2, 1}), index.to(gpu(0)), 0),
                     xp::take(x.transpose({0, 2, 1}), index, 0), "rows with strides");
      }
    }
  }
}

TEST(CudaRows, ManyEqualIndicesAreAddedInOrder) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(3);
  Array values = normal({5000, 40}), index = xp::random::randint(0, 9, {5000}, int64, cpu());
  Array sums = xp::zeros({9, 40}, float32, cpu()), gpu_sums = xp::zeros({9, 40}, float32, gpu(0));
  xp::scatter_add(sums, index, values);
  xp::scatter_add(gpu_sums, index.to(gpu(0)), values.to(gpu(0)));
  expect_equal(gpu_sums, sums, "scatter_add");
}

// Of long rows a thread adds several vectors, of short ones each thread one: the same bits.
TEST(CudaRows, LongRowsAreAddedAsShortOnesAre) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(7);
  for (Dtype dtype : {bfloat16, float32}) {
    std::int64_t columns = dtype == float32 ? 1000 : 2000;
    Array values = normal({5000, columns}, dtype).to(gpu(0));
    for (std::int64_t places : {2, 3000}) {
      Array index = xp::random::randint(-places, places, {5000}, int64, gpu(0));
      auto sums = [&](const Array& of) {
        Array to = xp::ones({places, of.shape(1)}, dtype, gpu(0));
        xp::scatter_add(to, index, of);
        return to;
      };
      Array all = sums(values);
      for (std::int64_t begin = 0; begin < columns; begin += 200) {
        Slice part(begin, begin + 200);
        expect_equal(all[{Slice(), part}], sums(values[{Slice(), part}].copy()),
                     std::to_string(places));
      }
    }
  }
}

TEST(CudaRows, ElementsAlongAnAxis) {
  RENSA_NEEDS_GPUS(1);
  struct Case {
    Shape shape, index;
    int axis;
  };
  const Case cases[] = {
      {{40, 100}, {40, 130}, 1},  {{40, 100}, {33, 7}, 1},  {{40, 100}, {90, 100}, 0},
      {{5, 9, 64}, {5, 9, 3}, 2}, {{64, 3}, {64, 2048}, 1}, {{64, 3}, {64, 2049}, 1},
      {{7, 5000}, {7, 11}, 1},    {{50}, {333}, 0},         {{6, 4, 10}, {6, 50, 10}, 1}};
  xp::random::seed(4);
  for (const Case& c : cases) {
    for (Dtype index_dtype : {int64, int32, int16}) {
      Array index = xp::random::randint(-c.shape[c.axis], c.shape[c.axis], c.index, int64, cpu());
      index = index.astype(index_dtype);
      std::string what =
          c.shape.str() + c.index.str() + ' ' + std::string(dtype_name(index_dtype)) + ' ';
      for (Dtype dtype : {float16, bfloat16, float32, float64}) {
        Array x = (normal(c.shape, float64) * 4).astype(dtype);
        Array want = F::gather(Variable(x), c.axis, index).array();
        Array got = F::gather(Variable(x.to(gpu(0))), c.axis, index.to(gpu(0))).array();
        expect_equal(got, want, "gather " + what + std::string(dtype_name(dtype)));
        Variable gx(x.to(gpu(0))), hx(x);
        Array gy = (normal(c.index, float64) * 4).astype(dtype);
        F::sum(F::gather(gx, c.axis, index.to(gpu(0))) * gy.to(gpu(0))).backward();
        F::sum(F::gather(hx, c.axis, index) * gy).backward();
        if (c.index[c.axis] / c.shape[c.axis] < 300) {  // else a GPU adds in runs
          expect_equal(gx.grad(), hx.grad(), "gradient " + what + std::string(dtype_name(dtype)));
        }
      }
    }
  }
}

// Lines of which a block knows all, and too few of them: sorted on the device.
TEST(CudaRows, SumsAlongAnAxisAreThoseOfASort) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(6);
  for (std::int64_t places : {1, 2, 20, 700}) {
    for (Dtype dtype : {bfloat16, float32}) {
      Array index = xp::random::randint(0, places, {40, 2048}, int64, gpu(0));
      Array gy = normal({40, 2048}, dtype).to(gpu(0));
      auto gradient = [&](std::int64_t rows) {
        Variable x(xp::zeros({rows, places}, dtype, gpu(0)));
        F::sum(F::gather(x, 1, index[Slice(0, rows)].copy()) * gy[Slice(0, rows)].copy())
            .backward();
        return x.grad();
      };
      expect_equal(gradient(40)[Slice(0, 31)], gradient(31), std::to_string(places));
    }
  }
}

TEST(CudaRows, EveryDtypeIsTakenAlongAnAxis) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {bool_, int16, int64, complex64, complex128}) {
    for (Dtype index_dtype : {int64, int32, uint64, uint8}) {
      for (int axis : {0, 1}) {
        Array x = (xp::arange(35) % 19).astype(dtype).reshape({5, 7});
        Array index = (xp::arange(35) % 5).astype(index_dtype).reshape({5, 7});
        for (bool turned : {false, true}) {
          Array a = turned ? x.T() : x, i = turned ? index.T() : index;
          expect_equal(xp::take_along_axis(a.to(gpu(0)), i.to(gpu(0)), axis),
                       xp::take_along_axis(a, i, axis), std::string(dtype_name(dtype)));
        }
      }
    }
  }
}

TEST(CudaRows, IndexOutOfRangeIsReported) {
  RENSA_NEEDS_GPUS(1);
  Array x = xp::ones({10, 4}, float32, gpu(0));
  for (std::int64_t bad : {10, -11}) {
    Array index = xp::array(std::vector<std::int64_t>{1, bad}).to(gpu(0));
    Array taken = xp::take(x, index, 0);
    EXPECT_THROW(to_cpu(taken), IndexError);
    expect_equal(taken[0], xp::ones({4}), "the row in range");
    expect_equal(taken[1], xp::zeros({4}), "the row out of range");
    xp::scatter_add(x, index, xp::zeros({2, 4}, float32, gpu(0)));
    EXPECT_THROW(to_cpu(x), IndexError);
    Array along = xp::full({10, 3}, bad, int64, gpu(0));
    EXPECT_THROW(to_cpu(xp::take_along_axis(x, along, 1)), IndexError);
    expect_equal(x.sum(), xp::array(40.0f), "usable after the error");
  }
}

TEST(CudaRows, GradientsOfRunningProducts) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(8);
  for (Shape shape :
       {Shape{3, 2}, Shape{70, 31}, Shape{5, 1024}, Shape{4, 2500}, Shape{1, 70000}}) {
    for (Dtype dtype : {float32, float64}) {
      Array x = xp::random::uniform(0.5, 1.25, shape, dtype, cpu()), gy = normal(shape, dtype);
      Variable on_gpu(x.to(gpu(0))), here(x);
      F::sum(F::cumprod(on_gpu, 1) * gy.to(gpu(0))).backward();
      F::sum(F::cumprod(here, 1) * gy).backward();
      expect_close(on_gpu.grad(), here.grad(), 20 * tolerance(dtype), "cumprod " + shape.str());
      on_gpu.cleargrad(), here.cleargrad();
      F::sum(F::prod(on_gpu, 1)).backward();
      F::sum(F::prod(here, 1)).backward();
      expect_close(on_gpu.grad(), here.grad(), 20 * tolerance(dtype), "prod " + shape.str());
    }
  }
}

// One kernel, and the functions that it stands for where its gradient is wanted.
TEST(CudaRows, GradientsOfProductsAreThoseOfFunctions) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(9);
  for (Shape shape : {Shape{19, 2}, Shape{70, 31}, Shape{9, 128}, Shape{9, 129}, Shape{5, 1024},
                      Shape{4, 1027}, Shape{3, 4096}, Shape{2, 4097}}) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      Array all = xp::random::uniform(0.97, 1.03, {shape.total() + 1}, float64, gpu(0));
      for (std::int64_t start : {0, 1}) {
        Variable x(all.astype(dtype)[Slice(start, start + shape.total())].reshape(shape));
        Variable y = F::prod(x, 1), gy = constant(normal({shape[0]}, dtype).to(gpu(0)));
        Array got = grad({y}, {x}, {gy})[0].array();
        Array want = grad({y}, {x}, {gy}, true)[0].array();
        expect_close(got, want, 20 * tolerance(dtype), "prod " + shape.str());
      }
    }
  }
}

TEST(CudaRandom, SameNumbersAsOnTheCpu) {
  RENSA_NEEDS_GPUS(1);
  for (std::int64_t n : {1, 2, 3, 5, 4096, 100003}) {
    auto both = [n](auto draw, auto compare) {
      xp::random::seed(11);
      Array want = draw(Shape{n}, cpu());
      xp::random::seed(11);
      compare(draw(Shape{n}, gpu(0)), want);
    };
    auto equal = [](const Array& a, const Array& b) { expect_equal(a, b, "random"); };
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      both([=](Shape s, Device d) { return xp::random::uniform(-2, 3, s, dtype, d); }, equal);
      both([=](Shape s, Device d) { return xp::random::normal(1, 2, s, dtype, d); },
           [=](const Array& a, const Array& b) {
             expect_close(a, b, 4 * tolerance(dtype), "normal");
           });
    }
    for (Dtype dtype : {int8, uint16, int32, int64}) {
      both([=](Shape s, Device d) { return xp::random::randint(0, 100, s, dtype, d); }, equal);
    }
    both([](Shape s, Device d) { return xp::random::randint(-5, 1ll << 40, s, int64, d); }, equal);
    both([](Shape s, Device d) { return xp::random::permutation(s[0], d); }, equal);
  }
}

TEST(CudaRandom, Dropout) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float16, bfloat16, float32, float64}) {
    for (std::int64_t n : {1, 6, 1000, 70001}) {
      Array x = normal({n}, dtype), out = xp::empty_like(x);
      Array gx = x.to(gpu(0)), gout = xp::empty_like(gx);
      for (auto& [in, result] : {std::pair{&x, &out}, std::pair{&gx, &gout}}) {
        operations::Dropout op;
        op.ratio = 0.3;
        op.seed.integer = 5;
        op.offset.integer = 1ll << 33;
        op.in = in->operand();
        op.out = result->operand();
        launch(op);
      }
      expect_equal(gout, out, "dropout");
    }
  }
}

struct LossCase {
  std::int64_t rows, classes;
  Dtype dtype, labels;
  bool normalize;
};

struct LossResults {
  Array shift, loss, count, gx, accuracy, gx_alone;
};

LossResults run_loss(const LossCase& c, const Array& x, const Array& t) {
  Device device = x.device();
  LossResults r = {xp::empty({c.rows, 2}, promote_types(c.dtype, float32), device),
                   xp::empty({}, c.dtype, device),
                   xp::empty({}, float32, device),
                   xp::empty_like(x),
                   xp::empty({}, c.dtype, device),
                   Array()};
  operations::SoftmaxCrossEntropy loss;
  loss.normalize = c.normalize;
  loss.x = x.operand();
  loss.t = t.operand();
  loss.shift = r.shift.operand();
  loss.loss = r.loss.operand();
  loss.count = r.count.operand();
  launch(loss);
  Array gy = xp::full({}, 0.5, c.dtype, device);
  operations::SoftmaxCrossEntropyGrad grad;
  grad.x = x.operand();
  grad.shift = r.shift.operand();
  grad.t = t.operand();
  grad.count = r.count.operand();
  grad.gy = gy.operand();
  grad.gx = r.gx.operand();
  launch(grad);
  if (grad.is_few_short_rows(x.view())) {  // then it may be asked to find these itself
    r.gx_alone = xp::empty_like(x);
    grad.normalize = c.normalize;
    grad.shift = grad.count = {};
    grad.gx = r.gx_alone.operand();
    launch(grad);
  } else {
    r.gx_alone = r.gx;
  }
  operations::Accuracy accuracy;
  accuracy.has_ignore_label = true;
  accuracy.ignore_label = -1;
  accuracy.y = x.operand();
  accuracy.t = t.operand();
  accuracy.accuracy = r.accuracy.operand();
  launch(accuracy);
  return r;
}

TEST(CudaLoss, ForwardGradientAndAccuracy) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(7);
  std::vector<LossCase> cases;
  for (auto [rows, classes] : std::vector<std::pair<int, int>>{{1, 1},
                                                               {100, 10},
                                                               {1024, 10},
                                                               {150, 16},
                                                               {700, 7},
                                                               {90, 32},
                                                               {40000, 10},
                                                               {37, 100},
                                                               {3000, 128},
                                                               {5, 129},
                                                               {300, 1000},
                                                               {700, 1001},
                                                               {9, 5000},
                                                               {600, 5003},
                                                               {2, 50257},
                                                               {20000, 3}}) {
    cases.push_back({rows, classes, float32, int32, true});
    cases.push_back({rows, classes, float64, int64, false});
    Dtype labels = classes <= 100 ? int8 : int32;
    cases.push_back({rows, classes, float16, labels, true});
    cases.push_back({rows, classes, bfloat16, labels, false});
  }
  for (const LossCase& c : cases) {
    Array x = normal({c.rows, c.classes}, c.dtype);
    Array t = xp::random::randint(-1, c.classes, {c.rows}, int64, cpu()).astype(c.labels);
    LossResults want = run_loss(c, x, t), got = run_loss(c, x.to(gpu(0)), t.to(gpu(0)));
    std::string what = x.view().describe();
    expect_close(got.shift, want.shift, 4 * tolerance(want.shift.dtype()), what + " shift");
    expect_close(got.loss, want.loss, 8 * tolerance(c.dtype), what + " loss");
    expect_equal(got.count, want.count, what + " count");
    expect_close(got.gx, want.gx, 4 * tolerance(c.dtype), what + " gx");
    expect_equal(got.gx_alone, got.gx, what + " gx without shift and count");
    expect_equal(got.accuracy, want.accuracy, what + " accuracy");
  }
}

// Vectors or elements one by one: the same bits.
TEST(CudaLoss, LongRowsAtAnyAddress) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float16, bfloat16, float32, float64}) {
    for (auto [rows, classes] : {std::pair{40, 130}, {600, 1001}, {5, 9001}}) {
      LossCase c = {rows, classes, dtype, int32, true};
      Array memory = normal({rows * classes + 1}, dtype).to(gpu(0));
      Array moved = memory[Slice(1, rows * classes + 1)].reshape({rows, classes});
      Array t = xp::random::randint(-1, classes, {rows}, int64, cpu()).astype(int32).to(gpu(0));
      LossResults want = run_loss(c, moved.copy(), t), got = run_loss(c, moved, t);
      std::string what = moved.view().describe();
      expect_equal(got.shift, want.shift, what + " shift");
      expect_equal(got.loss, want.loss, what + " loss");
      expect_equal(got.gx, want.gx, what + " gx");
      expect_equal(got.accuracy, want.accuracy, what + " accuracy");
    }
  }
}

// Classes that are masked out, of which some threads see nothing else.
TEST(CudaLoss, LongRowsWithInfinities) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {bfloat16, float32}) {
    LossCase c = {3, 9001, dtype, int32, true};
    Array kept = normal({3, 9001}), t = xp::array({0, 5, -1}).astype(int32);
    Array x = xp::where(xp::arange(9001) < 40, kept, -INFINITY).astype(dtype);
    LossResults want = run_loss(c, x, t), got = run_loss(c, x.to(gpu(0)), t.to(gpu(0)));
    expect_close(got.shift, want.shift, 1e-5, "shift");
    expect_close(got.loss, want.loss, 8 * tolerance(dtype), "loss");
    expect_close(got.gx, want.gx, 4 * tolerance(dtype), "gx");
  }
}

TEST(CudaLoss, OnlyFewShortRowsNeedNoShift) {
  RENSA_NEEDS_GPUS(1);
  for (auto [rows, classes] : {std::pair{5, 129}, {4097, 3}}) {
    Array x = xp::zeros({rows, classes}, float32, gpu(0)), gx = xp::empty_like(x);
    Array t = xp::zeros({rows}, int32, gpu(0)), gy = xp::ones({}, float32, gpu(0));
    operations::SoftmaxCrossEntropyGrad grad;
    grad.x = x.operand();
    grad.t = t.operand();
    grad.gy = gy.operand();
    grad.gx = gx.operand();
    EXPECT_THROW(launch(grad), ValueError) << rows;
  }
}

TEST(CudaLoss, LabelOutOfRangeIsReported) {
  RENSA_NEEDS_GPUS(1);
  LossCase c = {3, 4, float32, int32, true};
  Array t = xp::array({0, 4, 1}).astype(int32).to(gpu(0));
  LossResults r = run_loss(c, xp::zeros({3, 4}, float32, gpu(0)), t);
  EXPECT_THROW(to_cpu(r.loss), IndexError);
  EXPECT_NO_THROW(to_cpu(r.loss));
}

struct NormalizationResults {
  Array y, mean, inv_std, gx;
};

NormalizationResults run_normalization(const Array& x, const Array& gamma, const Array& beta) {
  Dtype wide = promote_types(x.dtype(), float32);
  Device device = x.device();
  NormalizationResults r = {
      xp::empty(x.shape(), x.dtype(), device), xp::empty({x.shape(0)}, wide, device),
      xp::empty({x.shape(0)}, wide, device), xp::empty(x.shape(), x.dtype(), device)};
  operations::RowNormalization forward("layer_normalization");
  forward.eps = 1e-5;
  forward.x = x.operand();
  forward.gamma = gamma.operand();
  forward.beta = beta.operand();
  forward.y = r.y.operand();
  forward.mean = r.mean.operand();
  forward.inv_std = r.inv_std.operand();
  launch(forward);
  operations::RowNormalizationGrad backward("layer_normalization_grad");
  backward.x = x.operand();
  backward.gy = r.y.operand();
  backward.mean = r.mean.operand();
  backward.inv_std = r.inv_std.operand();
  backward.gamma = gamma.operand();
  backward.gx = r.gx.operand();
  launch(backward);
  return r;
}

// Whole vectors or elements one by one, numbers of any floating dtype: the same bits, which are
// near the CPU's.
TEST(CudaRowNormalization, RowsAtAnyAddressWithNumbersOfAnyDtype) {
  RENSA_NEEDS_GPUS(1);
  for (Dtype dtype : {float16, bfloat16, float32, float64}) {
    for (std::int64_t columns : {64, 768, 1001, 1024, 1536, 12288}) {
      Array memory = normal({9 * columns + 1}, dtype);
      Array x = memory[Slice(1, 9 * columns + 1)].reshape({9, columns});
      Array gamma = normal({columns}, bfloat16), beta = normal({columns}, bfloat16);
      Array moved = memory.to(gpu(0))[Slice(1, 9 * columns + 1)].reshape({9, columns});
      NormalizationResults want = run_normalization(x.copy(), gamma, beta);
      for (Dtype numbers : {bfloat16, float32, float64}) {
        Array g = gamma.astype(numbers).to(gpu(0)), b = beta.astype(numbers).to(gpu(0));
        NormalizationResults whole = run_normalization(moved.copy(), g, b);
        NormalizationResults got = run_normalization(moved, g, b);
        std::string what = x.view().describe() + std::string(dtype_name(numbers));
        expect_equal(got.y, whole.y, what + " y");
        expect_equal(got.mean, whole.mean, what + " mean");
        expect_equal(got.inv_std, whole.inv_std, what + " inv_std");
        expect_equal(got.gx, whole.gx, what + " gx");
        double near = std::max(8 * tolerance(dtype), 1e-12);
        expect_close(whole.y, want.y, near, what + " y");
        expect_close(whole.gx, want.gx, 4 * near, what + " gx");
      }
    }
  }
}

TEST(CudaReluBiasGrad, HasTheBitsOfTheTwoSteps) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(9);
  for (Dtype dtype : {float32, float16, bfloat16, float64}) {
    for (Shape shape : {Shape{100, 1000}, Shape{1024, 1000}, Shape{100, 10}, Shape{7, 1},
                        Shape{1, 9}, Shape{5000, 33}, Shape{60000, 128}}) {
      Array gy = normal(shape, dtype).to(gpu(0)), y = normal(shape, dtype).to(gpu(0));
      Array gz = xp::empty_like(gy), gb = xp::empty({shape[1]}, dtype, gpu(0));
      operations::ReluBiasGrad op;
      op.gy = gy.operand();
      op.y = y.operand();
      op.gz = gz.operand();
      op.gb = gb.operand();
      launch(op);
      Array steps = xp::elementwise(ufunc::relu_grad, {gy, y});
      expect_equal(gz, steps, "gz");
      expect_equal(gb, steps.sum(0), "gb " + gy.view().describe());
      op.gz = gy.operand();  // in place
      launch(op);
      expect_equal(gy, steps, "gz in place");
      expect_equal(gb, steps.sum(0), "gb in place");
    }
  }
}

struct Rule {
  UpdateRuleId id;
  const char* name;
  int states;
  std::vector<double> h;
};

void update(const Rule& rule, const std::vector<std::vector<Array>>& targets) {
  operations::UpdateParameters op(rule.name, rule.id);
  op.set_size = static_cast<int>(rule.h.size());
  for (double h : rule.h) op.hyperparameters.emplace_back().real = h;
  for (const auto& arrays : targets) {
    operations::UpdateTarget target;
    target.parameter = arrays[0].operand();
    target.gradient = arrays[1].operand();
    for (int k = 0; k < rule.states; ++k) {
      target.states.push_back(arrays[2 + static_cast<std::size_t>(k)].operand());
    }
    op.targets.push_back(target);
  }
  launch(op);
}

TEST(CudaUpdate, RulesOverManyTargets) {
  RENSA_NEEDS_GPUS(1);
  xp::random::seed(13);
  const std::vector<Rule> rules = {
      {UpdateRuleId::sgd, "SGD", 0, {0.1}},
      {UpdateRuleId::momentum_sgd, "MomentumSGD", 1, {0.1, 0.9}},
      {UpdateRuleId::adam, "Adam", 2, {0.001, 0.1, 0.001, 1e-8, 1, 0.01}}};
  for (const Rule& rule : rules) {
    for (std::size_t count : {1, 6, 90}) {
      std::vector<std::vector<Array>> host, device;
      for (std::size_t i = 0; i < count; ++i) {
        Dtype dtype = i % 5 == 4 ? float16 : i % 5 == 3 ? float64 : float32;
        auto n = static_cast<std::int64_t>(i % 7 == 0 ? 1000003 / count : i % 7 * 777);
        std::vector<Array> arrays;
        for (int k = 0; k < 4; ++k) arrays.push_back(xp::abs(normal({n}, dtype)));
        if (i % 11 == 5) arrays[1] = arrays[1].astype(float32);  // a gradient of another dtype
        host.push_back(arrays);
        for (Array& a : arrays) a = a.copy(gpu(0));
        device.push_back(arrays);
      }
      update(rule, host);
      update(rule, device);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < 4; ++k) {
          if (k == 1) continue;
          expect_close(device[i][k], host[i][k], 4 * tolerance(host[i][0].dtype()),
                       std::string(rule.name) + " of " + host[i][0].view().describe());
        }
      }
    }
  }
}

}  // namespace
}  // namespace rensa
