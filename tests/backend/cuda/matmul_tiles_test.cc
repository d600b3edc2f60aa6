// Products by tiles: each form gives the right numbers, whatever the shape, the layout and the
// batch, and the same bits each time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rensa/array.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/matmul/cuda_tiles.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::Activation;

struct Product {
  std::int64_t m, n, k, batch = 1;
  std::int64_t pad = 0;  // elements after each line, and before the first
};

struct Precision {
  const char* name;
  Dtype dtype;
  UseTf32 tf32;
  double unit;  // of a product of numbers in [-1, 1)
};
constexpr Precision kPrecisions[] = {{"float32", Dtype::float32, false, 1e-6},
                                     {"tf32", Dtype::float32, true, 1e-3},
                                     {"float16", Dtype::float16, false, 1e-3},
                                     {"bfloat16", Dtype::bfloat16, false, 8e-3},
                                     {"tf32x3", Dtype::float32, UseTf32::x3(), 1e-6}};

/// `batch` matrices of random numbers that are stored as (lines, width), rows after each other.
Array stored(std::int64_t batch, std::int64_t lines, std::int64_t width, std::int64_t pad,
             Dtype dtype) {
  Array all = xp::random::uniform(-1, 1, {batch, lines, width + pad}, float32, gpu());
  return all.astype(dtype)[{Slice(), Slice(), Slice(pad, pad + width)}];
}

struct Operands {
  Array a, b, bias, gate, c;
  cuda::PlanKey key;
};

Operands operands(const Product& p, const Precision& precision, bool a_transposed,
                  bool b_transposed) {
  Dtype dtype = precision.dtype;
  Array a = a_transposed ? stored(p.batch, p.k, p.m, p.pad, dtype)
                         : stored(p.batch, p.m, p.k, p.pad, dtype);
  Array b = b_transposed ? stored(p.batch, p.n, p.k, p.pad, dtype)
                         : stored(p.batch, p.k, p.n, p.pad, dtype);
  Operands o{a_transposed ? a.swapaxes(1, 2) : a,
             b_transposed ? b.swapaxes(1, 2) : b,
             xp::random::uniform(-1, 1, {p.n}, float32, gpu()).astype(dtype),
             xp::random::uniform(-1, 1, {p.batch, p.m, p.n}, float32, gpu()).astype(dtype),
             xp::empty({p.batch, p.m, p.n}, dtype, gpu()),
             {}};
  cuda::PlanKey& key = o.key;
  std::int64_t size = itemsize(dtype);
  key.m = p.m, key.n = p.n, key.k = p.k, key.batch = p.batch;
  key.a_ld = a.strides()[1] / size, key.b_ld = b.strides()[1] / size, key.c_ld = p.n;
  key.a_stride = a.strides()[0] / size, key.b_stride = b.strides()[0] / size;
  key.c_stride = p.m * p.n;
  key.dtype = dtype, key.tf32 = precision.tf32;
  key.a_transposed = a_transposed, key.b_transposed = b_transposed;
  key.bias = cuda::PlanKey::Bias::epilogue;
  auto is_aligned = [](const Array& x) {
    return reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0;
  };
  unsigned aligned = 0;
  if (is_aligned(a)) aligned |= cuda::PlanKey::aligned_a;
  if (is_aligned(b)) aligned |= cuda::PlanKey::aligned_b;
  if (is_aligned(o.c)) aligned |= cuda::PlanKey::aligned_c;
  key.aligned = static_cast<std::uint8_t>(aligned);
  return o;
}

Array run(Operands& o, cuda::TileForm form, Activation activation, bool bias, double alpha,
          bool gate = false, bool a_settled = false, bool b_settled = false,
          const cuda::SgdUpdate& update = {}) {
  o.c.fill(7);
  cuda::MatmulRun run;
  run.update = update;
  run.a_settled = a_settled, run.b_settled = b_settled;
  run.a = static_cast<const char*>(o.a.data());
  run.b = static_cast<const char*>(o.b.data());
  run.bias = bias ? static_cast<const char*>(o.bias.data()) : nullptr;
  run.c = static_cast<char*>(o.c.data());
  run.gate = gate ? static_cast<const char*>(o.gate.data()) : nullptr;
  run.alpha = alpha;
  run.activation = activation;
  run.context = cuda::make_context(cuda::current_stream_state(gpu()), 0);
  cuda::run_tiles(o.key, form, run);
  return o.c.copy();
}

/// The parameter that an update with the product leaves, where it was `before`.
Array updated(Operands& o, cuda::TileForm form, const Array& before, double lr, Array& product) {
  Array parameter = before.copy();
  cuda::SgdUpdate update{reinterpret_cast<float*>(parameter.data()), lr, nullptr};
  product = run(o, form, Activation::none, false, 1, false, false, false, update);
  return parameter;
}

class MatmulTiles : public ::testing::TestWithParam<Precision> {};

TEST_P(MatmulTiles, EveryFormIsRight) {
  RENSA_NEEDS_GPUS(1);
  const Precision& precision = GetParam();
  std::vector<Product> products = {{1, 1, 1},          {5, 3, 7},
                                   {16, 32, 64},       {33, 40, 24, 3},
                                   {64, 64, 64, 2},    {31, 17, 129, 3, 1},
                                   {100, 200, 1000},   {8, 256, 40},
                                   {40, 24, 96, 2, 8}, {256, 136, 72, 1, 8},
                                   {200, 72, 100},     {40, 72, 520, 3, 8},
                                   {100, 71, 136, 3},  {20, 40, 3000},
                                   {9, 12, 136, 2},    {132, 72, 250, 2},
                                   {36, 40, 250},      {68, 40, 40},
                                   {36, 40, 330}};
  std::size_t forms = 0;
  std::set<int> rows_updated;  // of tiles on tensor cores
  for (const Product& p : products) {
    if (testing::quick() && p.m * p.n * p.k > 1000000) continue;
    for (auto [a_transposed, b_transposed] :
         {std::pair(false, false), {false, true}, {true, false}}) {
      Operands o = operands(p, precision, a_transposed, b_transposed);
      if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
      Array exact = xp::matmul(o.a.to(cpu()).astype(float64), o.b.to(cpu()).astype(float64));
      Array bias = o.bias.to(cpu()).astype(float64);
      double tolerance = 2 * precision.unit * std::sqrt(static_cast<double>(p.k + 1));
      for (cuda::TileForm form : cuda::tile_forms(o.key, gpu())) {
        ++forms;
        std::string what =
            fmt::format("{} of ({}, {}, {}) {} {} pad {}, {} x {} by {} warps {} {}", p.batch, p.m,
                        p.n, p.k, a_transposed, b_transposed, p.pad, form.rows, form.columns,
                        form.warps, form.tensor_cores, form.boxes);
        Array plain = run(o, form, Activation::none, false, 1);
        auto error = [&](const Array& got, const Array& want) {
          return xp::abs(got.to(cpu()).astype(float64) - want).max().item<double>();
        };
        EXPECT_LE(error(plain, exact), tolerance) << what;
        EXPECT_TRUE(xp::array_equal(plain, run(o, form, Activation::none, false, 1))) << what;
        Array with_bias = run(o, form, Activation::none, true, 0.5);
        EXPECT_LE(error(with_bias, exact * 0.5 + bias), tolerance) << what;
        // What follows sees what would be stored without it.
        EXPECT_TRUE(xp::array_equal(run(o, form, Activation::relu, true, 0.5),
                                    xp::maximum(with_bias, xp::zeros_like(with_bias))))
            << what;
        EXPECT_TRUE(xp::array_equal(run(o, form, Activation::tanh, true, 0.5), xp::tanh(with_bias)))
            << what;
        EXPECT_TRUE(xp::array_equal(run(o, form, Activation::none, true, 0.5, true),
                                    xp::elementwise(ufunc::relu_grad, {with_bias, o.gate})))
            << what;
        if (!cuda::takes_update(o.key, form)) continue;
        if (form.tensor_cores) rows_updated.insert(form.rows);
        constexpr double kRate = 0.375;
        Array product, parameter = updated(o, form, o.gate, kRate, product);
        EXPECT_TRUE(xp::array_equal(product, plain)) << what;
        Array want = o.gate.to(cpu()).astype(float64) - plain.to(cpu()).astype(float64) * kRate;
        EXPECT_LE(error(parameter, want), 1e-7 * (2 + std::sqrt(static_cast<double>(p.k)))) << what;
      }
    }
  }
  EXPECT_GT(forms, products.size());
  std::set<int> with_update;
  if (precision.tf32 || precision.tf32.is_x3()) with_update.insert(128);
  if (precision.tf32.is_x3()) with_update.insert(64);
  if (!cuda::has_warpgroup_panels(gpu())) with_update.clear();
  EXPECT_EQ(rows_updated, with_update);
}

// An update sees what is stored, also where tensor cores gave no number.
TEST(MatmulTiles, UpdatesWithWhatIsNoNumber) {
  RENSA_NEEDS_GPUS(1);
  for (const Precision& precision : kPrecisions) {
    Operands o = operands({68, 40, 72}, precision, true, false);
    if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    o.a[{0, 3, 5}].fill(kInfinity);
    o.b[{0, 9, 11}].fill(std::numeric_limits<double>::quiet_NaN());
    for (cuda::TileForm form : cuda::tile_forms(o.key, gpu())) {
      if (!cuda::takes_update(o.key, form)) continue;
      Array product, parameter = updated(o, form, o.gate, 0.5, product);
      EXPECT_FALSE(xp::all(xp::isfinite(product)).item<bool>());
      Array want = o.gate - product * 0.5f;
      EXPECT_TRUE(xp::allclose(parameter, want, 1e-6, 1e-6, true))
          << precision.name << " " << int{form.rows};
    }
  }
}

TEST(MatmulTiles, NoneForWhatTheyCannotDo) {
  RENSA_NEEDS_GPUS(1);
  const Precision& precision = kPrecisions[0];
  cuda::PlanKey key = operands({16, 16, 16}, precision, false, false).key;
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  EXPECT_FALSE(cuda::tile_forms(key, gpu()).empty());
  EXPECT_TRUE(cuda::likely_tile_form(key, gpu()));
  for (auto change : std::vector<void (*)(cuda::PlanKey&)>{
           [](cuda::PlanKey& k) { k.a_transposed = k.b_transposed = true; },
           [](cuda::PlanKey& k) { k.dtype = Dtype::float64; },
           [](cuda::PlanKey& k) { k.bias = cuda::PlanKey::Bias::separate; },
           [](cuda::PlanKey& k) { k.batch = 65536; }, [](cuda::PlanKey& k) { k.m = 1 << 20; },
           [](cuda::PlanKey& k) { k.m = k.n = k.k = 1024; }}) {
    cuda::PlanKey other = key;
    change(other);
    EXPECT_TRUE(cuda::tile_forms(other, gpu()).empty());
    EXPECT_FALSE(cuda::likely_tile_form(other, gpu()));
  }
  // A large product has forms that are worth a try, but none is likely.
  key.m = key.n = 512, key.a_ld = key.k = 1024;
  EXPECT_FALSE(cuda::tile_forms(key, gpu()).empty());
  EXPECT_FALSE(cuda::likely_tile_form(key, gpu()));
}

// They take relu's gradient with them, which another kernel has behind it.
TEST(MatmulTiles, LikelyForLongerSumsBeforeAGate) {
  RENSA_NEEDS_GPUS(1);
  cuda::PlanKey key = operands({100, 1000, 1000}, kPrecisions[1], true, false).key;
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  EXPECT_FALSE(cuda::likely_tile_form(key, gpu()));
  key.gate_follows = true;
  ASSERT_TRUE(cuda::likely_tile_form(key, gpu()));
  EXPECT_EQ(cuda::likely_tile_form(key, gpu())->rows, 32);
}

/// Whether it has forms with boxes, but for that by fused multiply-adds in large tiles.
bool any_boxes(const cuda::PlanKey& key) {
  std::vector<cuda::TileForm> forms = cuda::tile_forms(key, gpu());
  return std::any_of(forms.begin(), forms.end(),
                     [](cuda::TileForm form) { return form.boxes && form != cuda::kFmaPanel; });
}

bool has_form(const cuda::PlanKey& key, cuda::TileForm form) {
  std::vector<cuda::TileForm> forms = cuda::tile_forms(key, gpu());
  return std::find(forms.begin(), forms.end(), form) != forms.end();
}

TEST(MatmulTiles, BoxesForOperandsThatHaveThem) {
  RENSA_NEEDS_GPUS(1);
  cuda::PlanKey key = operands({64, 1000, 512}, kPrecisions[0], false, false).key;
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  EXPECT_TRUE(any_boxes(key));
  ASSERT_TRUE(cuda::likely_tile_form(key, gpu()));
  EXPECT_TRUE(cuda::likely_tile_form(key, gpu())->boxes);
  cuda::PlanKey longer = operands({100, 1000, 1024}, kPrecisions[1], false, true).key;
  ASSERT_TRUE(cuda::likely_tile_form(longer, gpu()));
  EXPECT_TRUE(cuda::likely_tile_form(longer, gpu())->boxes);
  for (auto change : std::vector<void (*)(cuda::PlanKey&)>{
           [](cuda::PlanKey& k) {
             k.aligned &= static_cast<std::uint8_t>(~cuda::PlanKey::aligned_a);
           },
           [](cuda::PlanKey& k) { k.a_transposed = true; }, [](cuda::PlanKey& k) { k.b_ld = 1002; },
           [](cuda::PlanKey& k) { k.a_ld = 0; }, [](cuda::PlanKey& k) { k.k = 32; }}) {
    cuda::PlanKey other = key;
    change(other);
    EXPECT_FALSE(any_boxes(other));
  }
}

// The gradient of a layer's weights, whose terms are the samples.
TEST(MatmulTiles, LargeTilesForShortSumsOverTheOuterAxis) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  for (const Precision& precision : kPrecisions) {
    cuda::PlanKey key = operands({1000, 1000, 100}, precision, true, false).key;
    EXPECT_EQ(has_form(key, cuda::kBoxPanel), precision.dtype == Dtype::float32) << precision.name;
    EXPECT_EQ(cuda::likely_tile_form(key, gpu()) == cuda::kBoxPanel,
              precision.dtype == Dtype::float32 && precision.tf32 == UseTf32())
        << precision.name;
  }
  cuda::PlanKey key = operands({1000, 1000, 100}, kPrecisions[0], true, false).key;
  for (auto change : std::vector<void (*)(cuda::PlanKey&)>{
           [](cuda::PlanKey& k) { k.k = 257; }, [](cuda::PlanKey& k) { k.a_ld = 1002; },
           [](cuda::PlanKey& k) { k.b_ld = 0; }, [](cuda::PlanKey& k) { k.c_ld = 1002; },
           [](cuda::PlanKey& k) { k.n = 32; }}) {
    cuda::PlanKey other = key;
    change(other);
    EXPECT_FALSE(has_form(other, cuda::kBoxPanel));
  }
}

// By fused multiply-adds, where nearly all multiprocessors have one of them.
TEST(MatmulTiles, LargeTilesOfFloats) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  auto likely = [&](Product p, bool a_transposed, bool b_transposed, bool gate_follows) {
    cuda::PlanKey key = operands(p, kPrecisions[0], a_transposed, b_transposed).key;
    key.gate_follows = gate_follows;
    EXPECT_TRUE(has_form(key, cuda::kFmaPanel));
    return cuda::likely_tile_form(key, gpu()) == cuda::kFmaPanel;
  };
  EXPECT_TRUE(likely({1024, 1000, 784}, false, true, false));
  EXPECT_TRUE(likely({1024, 1000, 1000}, false, false, true));
  EXPECT_TRUE(likely({1000, 784, 1024}, true, false, false));
  EXPECT_FALSE(likely({832, 1000, 1024}, false, true, false));   // a seventh idle
  EXPECT_FALSE(likely({768, 1000, 1024}, true, false, false));   // a quarter
  EXPECT_FALSE(likely({2000, 2000, 1024}, true, false, false));  // many
  EXPECT_FALSE(likely({1000, 1000, 64}, true, false, false));    // all of k at once
  EXPECT_FALSE(likely({1000, 1000, 2048}, true, false, false));  // sums that pay to be split
  EXPECT_FALSE(likely({64, 64, 128, 128}, false, true, false));  // half empty
  for (const Precision& precision : kPrecisions) {
    cuda::PlanKey key = operands({1024, 1000, 1000}, precision, false, true).key;
    EXPECT_EQ(has_form(key, cuda::kFmaPanel), precision.dtype == Dtype::float32 && !precision.tf32)
        << precision.name;
  }
  cuda::PlanKey key = operands({1024, 1000, 1000}, kPrecisions[0], false, true).key;
  for (auto change : std::vector<void (*)(cuda::PlanKey&)>{
           [](cuda::PlanKey& k) { k.a_ld = 1002; }, [](cuda::PlanKey& k) { k.b_ld = 0; },
           [](cuda::PlanKey& k) { k.k = 999; }, [](cuda::PlanKey& k) { k.n = 32; },
           [](cuda::PlanKey& k) {
             k.aligned &= static_cast<std::uint8_t>(~cuda::PlanKey::aligned_b);
           }}) {
    cuda::PlanKey other = key;
    change(other);
    EXPECT_FALSE(has_form(other, cuda::kFmaPanel));
  }
  key.c_ld = 1002, key.aligned = cuda::PlanKey::aligned_a | cuda::PlanKey::aligned_b;
  EXPECT_TRUE(has_form(key, cuda::kFmaPanel));  // c may lie anywhere
}

// c between other columns and at no multiple of 16 bytes, and a gate that lies at none alone.
TEST_P(MatmulTiles, CLiesAnywhere) {
  RENSA_NEEDS_GPUS(1);
  const Precision& precision = GetParam();
  constexpr std::int64_t kM = 132, kN = 72, kK = 96, kPad = 3;
  auto numbers = [&](const Shape& shape) {
    return xp::random::uniform(-1, 1, shape, float32, gpu()).astype(precision.dtype);
  };
  for (bool of_gate_alone : {false, true}) {
    Operands o = operands({kM, kN, kK}, precision, false, true);
    if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
    Array all = xp::full({1, kM, kN + kPad}, 7, precision.dtype, gpu());
    if (of_gate_alone) {
      o.gate = numbers({kM * kN + 1})[{Slice(1, kM * kN + 1)}].reshape({1, kM, kN});
    } else {
      o.c = all[{Slice(), Slice(), Slice(1, kN + 1)}];
      o.gate = numbers({1, kM, kN + kPad})[{Slice(), Slice(), Slice(1, kN + 1)}];
      o.key.c_ld = kN + kPad, o.key.c_stride = kM * (kN + kPad);
      o.key.aligned &= static_cast<std::uint8_t>(~cuda::PlanKey::aligned_c);
    }
    ASSERT_NE(reinterpret_cast<std::uintptr_t>(o.gate.data()) % 16, 0u);
    Array exact = xp::matmul(o.a.to(cpu()).astype(float64), o.b.to(cpu()).astype(float64));
    Array open = (o.gate.to(cpu()).astype(float64) > 0).astype(float64);
    Array want = (exact * 0.5 + o.bias.to(cpu()).astype(float64)) * open;
    std::vector<cuda::TileForm> forms = cuda::tile_forms(o.key, gpu());
    EXPECT_FALSE(forms.empty());
    for (cuda::TileForm form : forms) {
      Array got = run(o, form, Activation::none, true, 0.5, true).to(cpu()).astype(float64);
      EXPECT_LE(xp::abs(got - want).max().item<double>(), 30 * precision.unit)
          << static_cast<int>(form.rows) << " x " << static_cast<int>(form.columns) << " "
          << form.boxes << of_gate_alone;
      Array before = all[{Slice(), Slice(), Slice(0, 1)}],
            behind = all[{Slice(), Slice(), Slice(kN + 1, kN + kPad)}];
      EXPECT_TRUE((before == 7).all().item<bool>() && (behind == 7).all().item<bool>());
    }
  }
}

// Operands that are read before the kernels before are done, with as many parts as there is room
// for, and with more.
TEST_P(MatmulTiles, SettledOperands) {
  RENSA_NEEDS_GPUS(1);
  for (std::int64_t k : {96, 520}) {
    for (auto [a_transposed, b_transposed] :
         {std::pair(false, false), {false, true}, {true, false}}) {
      Operands o = operands({132, 72, k}, GetParam(), a_transposed, b_transposed);
      if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
      for (cuda::TileForm form : cuda::tile_forms(o.key, gpu())) {
        Array plain = run(o, form, Activation::none, false, 1);
        for (auto [a, b] : {std::pair(true, false), {false, true}, {true, true}}) {
          Array settled = run(o, form, Activation::none, false, 1, false, a, b);
          EXPECT_TRUE(xp::array_equal(plain, settled))
              << k << " " << static_cast<int>(form.rows) << " x " << static_cast<int>(form.columns)
              << " " << form.boxes << a << b;
        }
      }
    }
  }
}

// Matrices that lie between each other's lines, as the heads of attention do, and one matrix for a
// whole batch.
TEST_P(MatmulTiles, BoxesOfAnyBatch) {
  RENSA_NEEDS_GPUS(1);
  const Precision& precision = GetParam();
  constexpr std::int64_t kBatch = 3, kM = 100, kN = 40, kK = 136;
  Array x = xp::random::uniform(-1, 1, {kM, kBatch, kK}, float32, gpu()).astype(precision.dtype);
  for (int shared : {0, 1, 2}) {  // none, a, b
    Operands o = operands({kM, kN, kK, kBatch}, precision, false, true);
    o.a = x.swapaxes(0, 1);
    o.key.a_ld = kBatch * kK, o.key.a_stride = kK;
    if (shared == 1) {
      o.a = xp::broadcast_to(o.a[{Slice(0, 1)}], {kBatch, kM, kK});
      o.key.a_stride = 0;
    }
    if (shared == 2) {
      o.b = xp::broadcast_to(o.b[{Slice(0, 1)}], {kBatch, kK, kN});
      o.key.b_stride = 0;
    }
    EXPECT_EQ(any_boxes(o.key), cuda::has_boxes(gpu()));
    Array exact = xp::matmul(o.a.to(cpu()).astype(float64), o.b.to(cpu()).astype(float64));
    for (cuda::TileForm form : cuda::tile_forms(o.key, gpu())) {
      Array got = run(o, form, Activation::none, false, 1).to(cpu()).astype(float64);
      EXPECT_LE(xp::abs(got - exact).max().item<double>(), 30 * precision.unit)
          << static_cast<int>(form.rows) << " x " << static_cast<int>(form.columns) << " "
          << form.boxes;
    }
  }
}

// In TF32, where most multiprocessors have one of them.
TEST(MatmulTiles, LargeTilesInTf32) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_warpgroup_panels(gpu())) GTEST_SKIP() << "not a Hopper GPU";
  constexpr cuda::TileForm kLarge = {128, 64, 8, true, true};
  auto likely = [&](Product p, bool a_transposed, bool b_transposed, bool gate_follows) {
    cuda::PlanKey key = operands(p, kPrecisions[1], a_transposed, b_transposed).key;
    key.gate_follows = gate_follows;
    EXPECT_TRUE(has_form(key, kLarge));
    return cuda::likely_tile_form(key, gpu()) == kLarge;
  };
  EXPECT_TRUE(likely({1000, 1000, 1024}, true, false, false));
  EXPECT_TRUE(likely({1000, 784, 100}, true, false, false));
  EXPECT_TRUE(likely({1024, 1000, 1000}, false, false, true));
  EXPECT_TRUE(likely({1024, 1000, 1000}, false, true, false));
  EXPECT_FALSE(likely({768, 1000, 1000}, false, true, false));  // a quarter idle
  EXPECT_TRUE(likely({768, 1000, 1000}, false, false, true));
  EXPECT_FALSE(likely({1024, 1000, 64}, false, true, false));    // all of k at once
  EXPECT_FALSE(likely({1000, 1000, 4096}, true, false, false));  // a turned operand pays
  EXPECT_FALSE(likely({512, 512, 1024}, true, false, false));    // few tiles
  EXPECT_FALSE(likely({2000, 2000, 1024}, true, false, false));  // many
  cuda::PlanKey key = operands({1000, 1000, 1001}, kPrecisions[1], false, true).key;
  EXPECT_TRUE(cuda::tile_forms(key, gpu()).empty());  // lines that do not come in boxes
}

// The gradient of a last layer's weights, beside the large tiles of other layers'.
TEST(MatmulTiles, FewWarpsBesideLargeTiles) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_warpgroup_panels(gpu())) GTEST_SKIP() << "not a Hopper GPU";
  for (int p : {0, 1, 4}) {
    cuda::PlanKey key = operands({10, 1000, 1024}, kPrecisions[p], true, false).key;
    auto form = cuda::likely_tile_form(key, gpu());
    ASSERT_TRUE(form) << kPrecisions[p].name;
    EXPECT_EQ(form->warps, 4) << kPrecisions[p].name;
    if (p != 0) continue;
    key.k = 2048;  // then the others have none in float32
    ASSERT_TRUE(cuda::likely_tile_form(key, gpu()));
    EXPECT_GT(cuda::likely_tile_form(key, gpu())->warps, 4);
  }
}

std::vector<cuda::TileForm> forms_of_tensor_cores(const cuda::PlanKey& key) {
  std::vector<cuda::TileForm> forms = cuda::tile_forms(key, gpu());
  std::erase_if(forms, [](cuda::TileForm form) { return !form.tensor_cores; });
  return forms;
}

// What lies between two TF32 numbers goes to the nearer one, in both operands.
TEST(MatmulTiles, Tf32Rounds) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  constexpr float kStep = 1.0f / 1024, kGiven = 1 + 0.75f * kStep, kRounded = 1 + kStep;
  for (auto [a_transposed, b_transposed] :
       {std::pair(false, false), {false, true}, {true, false}}) {
    for (bool in_a : {false, true}) {
      Operands o = operands({136, 72, 136}, kPrecisions[1], a_transposed, b_transposed);
      o.a.fill(in_a ? kGiven : 0);
      o.b.fill(in_a ? 0 : kGiven);
      if (in_a) o.b[{0, 5}].fill(1);
      else o.a[{0, Slice(), 5}].fill(1);
      std::vector<cuda::TileForm> forms = forms_of_tensor_cores(o.key);
      EXPECT_FALSE(forms.empty());
      for (cuda::TileForm form : forms) {
        Array c = run(o, form, Activation::none, false, 1);
        EXPECT_EQ(c.min().item<float>(), kRounded) << static_cast<int>(form.rows) << form.boxes;
        EXPECT_EQ(c.max().item<float>(), kRounded) << static_cast<int>(form.rows) << form.boxes;
      }
    }
  }
}

// Rounding adds to a float's bits: where all of them are ones, as in the NaN that GPUs make, that
// would give zero.
TEST(MatmulTiles, Tf32KeepsInfinityAndNan) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  for (auto [a_transposed, b_transposed] :
       {std::pair(false, false), {false, true}, {true, false}}) {
    Operands o = operands({136, 72, 136}, kPrecisions[1], a_transposed, b_transposed);
    o.b[{0, 3}].fill(0.5f);
    o.a[{0, 0, 3}].fill(std::numeric_limits<float>::infinity());
    o.a[{0, 1, 3}].fill(-std::numeric_limits<float>::infinity());
    o.a[{0, 2, 5}].fill(std::bit_cast<float>(0x7fffffffu));
    o.a[{0, 3, 5}].fill(std::bit_cast<float>(0xffffffffu));
    o.b[{0, 9, 70}].fill(std::bit_cast<float>(0x7fffffffu));
    o.b[{0, 9, 71}].fill(std::bit_cast<float>(0xffffffffu));
    std::vector<cuda::TileForm> forms = forms_of_tensor_cores(o.key);
    EXPECT_FALSE(forms.empty());
    for (cuda::TileForm form : forms) {
      Array c = run(o, form, Activation::none, false, 1)[0];
      Array numbers = c[{Slice(), Slice(0, 70)}];
      EXPECT_TRUE(xp::isposinf(numbers[0]).all().item<bool>()) << static_cast<int>(form.rows);
      EXPECT_TRUE(xp::isneginf(numbers[1]).all().item<bool>()) << static_cast<int>(form.rows);
      EXPECT_TRUE(xp::isnan(c[{Slice(2, 4)}]).all().item<bool>()) << static_cast<int>(form.rows);
      EXPECT_TRUE(xp::isnan(c[{Slice(), Slice(70, 72)}]).all().item<bool>());
      EXPECT_TRUE(xp::isfinite(numbers[{Slice(4, 136)}]).all().item<bool>());
    }
  }
}

TEST(MatmulTiles, LikelyForSplitFloats) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_warpgroup_panels(gpu())) GTEST_SKIP() << "not a Hopper GPU";
  auto rows = [](Product p, bool a_transposed) {
    cuda::PlanKey key = operands(p, kPrecisions[4], a_transposed, false).key;
    auto form = cuda::likely_tile_form(key, gpu());
    return form && form->tensor_cores ? static_cast<int>(form->rows) : 0;
  };
  EXPECT_EQ(rows({1024, 1000, 1000}, false), 128);
  EXPECT_EQ(rows({1024, 1000, 1024}, true), 128);
  EXPECT_EQ(rows({1000, 1000, 100}, true), 128);
  EXPECT_EQ(rows({512, 1000, 1000}, false), 64);
  EXPECT_EQ(rows({256, 1000, 1000}, false), 32);
  EXPECT_EQ(rows({100, 1000, 1000}, false), 32);
  EXPECT_EQ(rows({16, 256, 256}, false), 0);
  EXPECT_EQ(rows({1, 4096, 1024}, false), 0);
  EXPECT_EQ(rows({1024, 1000, 1001}, false), 0);
  EXPECT_EQ(rows({1024, 1000, 32}, false), 0);
}

/// That `got` is what half of each sum, the bias, relu and the gate give.
void expect_finished(const Array& got, const Array& sums, const Operands& o) {
  std::vector<float> values = got.to_vector<float>(), sum = sums.to_vector<float>();
  std::vector<float> bias = o.bias.to_vector<float>(), gate = o.gate.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    float want = 0.5f * sum[i] + bias[i % bias.size()];
    if (want <= 0 || !(gate[i] > 0)) want = 0;
    if (std::isnan(want)) EXPECT_TRUE(std::isnan(values[i])) << i;
    else EXPECT_EQ(values[i], want) << i;
  }
}

// Infinity less itself is no number, and the largest floats have no nearest TF32 number.
TEST(MatmulTiles, SplitFloatsKeepInfinityAndTheLargest) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (bool a_transposed : {false, true}) {
    Operands o = operands({136, 72, 136}, kPrecisions[4], a_transposed, false);
    o.a[{0, 0}].fill(0);
    o.a[{0, 0, 5}].fill(kInfinity);
    o.a[{0, 1}].fill(0);
    o.a[{0, 1, 7}].fill(kLargest);
    o.b[{0, 7}].fill(-0.5f);
    o.b[{0, 9, 11}].fill(std::nanf(""));
    std::vector<float> b5 = o.b[{0, 5}].to_vector<float>();
    std::vector<cuda::TileForm> forms = forms_of_tensor_cores(o.key);
    EXPECT_GT(forms.size(), cuda::has_warpgroup_panels(gpu()) ? 1u : 0u);
    for (cuda::TileForm form : forms) {
      Array c = run(o, form, Activation::none, false, 1)[0];
      expect_finished(run(o, form, Activation::relu, true, 0.5, true)[0], c, o);
      std::vector<float> infinite = c[0].to_vector<float>(), largest = c[1].to_vector<float>();
      for (std::size_t j = 0; j < infinite.size(); ++j) {
        if (j == 11) continue;
        EXPECT_EQ(infinite[j], b5[j] < 0 ? -kInfinity : kInfinity) << j;
        EXPECT_EQ(largest[j], -0.5f * kLargest) << j;
      }
      EXPECT_TRUE(xp::isnan(c[{Slice(), 11}]).all().item<bool>());
      EXPECT_EQ(xp::isnan(c).sum().item<std::int64_t>(), 136);
    }
  }
}

// Of terms of one sign, whose sums would gain too little each time if tensor cores added them up.
TEST(MatmulTiles, SplitFloatsAreAsNearAsFloats) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  Operands o = operands({128, 64, 4096}, kPrecisions[4], false, true);
  o.a += 1;
  o.b += 1;
  Array exact = xp::matmul(o.a.astype(float64), o.b.astype(float64));
  auto error = [&](cuda::TileForm form) {
    Array c = run(o, form, Activation::none, false, 1);
    return xp::abs(c.astype(float64) / exact - 1).max().item<double>();
  };
  for (cuda::TileForm form : forms_of_tensor_cores(o.key)) {
    EXPECT_LT(error(form), 2e-6) << static_cast<int>(form.rows);
  }
}

// Each thread's launches want another amount of shared memory of one kernel.
TEST(MatmulTiles, ThreadsLaunchSideBySide) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        Operands o = operands({32, 32, 1024}, kPrecisions[0], false, false);
        auto warps = static_cast<std::uint8_t>(t % 2 ? 4 : 8);
        for (int n = 0; n < 500; ++n) {
          run(o, {32, 32, warps, false, cuda::has_boxes(gpu())}, Activation::none, false, 1);
        }
        cuda::synchronize(gpu());
      } catch (const std::exception& e) {
        errors[t] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(Each, MatmulTiles, ::testing::ValuesIn(kPrecisions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa
