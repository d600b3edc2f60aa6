// Products by tiles: each form gives the right numbers, whatever the shape, the layout and the
// batch, and the same bits each time.
#include <fmt/format.h>
#include <gtest/gtest.h>

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
#include "tests/backend/cuda/matmul_tiles.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::Activation;
using testing::any_boxes;
using testing::kPrecisions;
using testing::Operands;
using testing::operands;
using testing::Precision;
using testing::Product;

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

/// The parameter that an update with the product, which is in o.c then, leaves where it was
/// `before`.
Array updated(Operands& o, cuda::TileForm form, const Array& before, double lr) {
  Array parameter = before.copy();
  cuda::SgdUpdate update{reinterpret_cast<float*>(parameter.data()), lr, nullptr};
  run(o, form, Activation::none, false, 1, false, false, false, update);
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
        Array parameter = updated(o, form, o.gate, kRate);
        EXPECT_TRUE(xp::array_equal(o.c, plain)) << what;
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
      Array parameter = updated(o, form, o.gate, 0.5);
      EXPECT_FALSE(xp::all(xp::isfinite(o.c)).item<bool>());
      Array want = o.gate - o.c * 0.5f;
      EXPECT_TRUE(xp::allclose(parameter, want, 1e-6, 1e-6, true))
          << precision.name << " " << int{form.rows};
    }
  }
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
