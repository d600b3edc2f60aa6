// Which forms of tiles a product has, and which one is likely the fastest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/operations/matmul/cuda_skinny.h"
#include "tests/backend/cuda/matmul_tiles.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using testing::any_boxes;
using testing::kPrecisions;
using testing::operands;
using testing::Precision;
using testing::Product;

TEST(MatmulTileForms, NoneForWhatTheyCannotDo) {
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
TEST(MatmulTileForms, LikelyForLongerSumsBeforeAGate) {
  RENSA_NEEDS_GPUS(1);
  cuda::PlanKey key = operands({100, 1000, 1000}, kPrecisions[1], true, false).key;
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  EXPECT_FALSE(cuda::likely_tile_form(key, gpu()));
  key.gate_follows = true;
  ASSERT_TRUE(cuda::likely_tile_form(key, gpu()));
  EXPECT_EQ(cuda::likely_tile_form(key, gpu())->rows, 32);
}

bool has_form(const cuda::PlanKey& key, cuda::TileForm form) {
  std::vector<cuda::TileForm> forms = cuda::tile_forms(key, gpu());
  return std::find(forms.begin(), forms.end(), form) != forms.end();
}

// Else a plan file that has the likely form could not be loaded.
TEST(MatmulTileForms, TheLikelyOneIsOneOfThem) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_tiles(gpu())) GTEST_SKIP() << "a GPU before Ampere";
  int likely = 0;
  for (const Precision& precision : kPrecisions) {
    for (std::int64_t m : {1, 10, 64, 200, 1024}) {
      for (std::int64_t n : {1, 10, 64, 200, 1024}) {
        for (std::int64_t k : {1, 10, 64, 200, 1024}) {
          for (auto [a_transposed, b_transposed] : {std::pair(false, false), {true, false}}) {
            cuda::PlanKey key = operands({m, n, k}, precision, a_transposed, b_transposed).key;
            std::optional<cuda::TileForm> form = cuda::likely_tile_form(key, gpu());
            likely += form.has_value();
            EXPECT_TRUE(!form || has_form(key, *form)) << m << ' ' << n << ' ' << k;
          }
        }
      }
    }
  }
  EXPECT_GT(likely, 100);
}

TEST(MatmulTileForms, BoxesForOperandsThatHaveThem) {
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

/// Rows and columns of the form that a product likely goes by, {0, 0} where it is left to cuBLASLt.
std::pair<int, int> likely_size(const Product& p, const Precision& precision, bool b_transposed) {
  auto form = cuda::likely_tile_form(operands(p, precision, false, b_transposed).key, gpu());
  return form ? std::pair<int, int>(form->rows, form->columns) : std::pair(0, 0);
}

TEST(MatmulTileForms, SeveralBlocksShareAMultiprocessorWhereTheyAreLikelyFaster) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  struct Case {
    Product product;
    bool b_transposed;
    std::pair<int, int> floats, tf32, halves;
  };
  for (const Case& c : std::vector<Case>{
           {{10, 1024, 64, 8}, false, {16, 16}, {16, 32}, {0, 0}},
           {{10, 1024, 1024, 8}, false, {0, 0}, {16, 32}, {16, 32}},
           {{200, 200, 200, 8}, false, {0, 0}, {0, 0}, {0, 0}},
           {{150, 1000, 1000}, true, {0, 0}, {0, 0}, {0, 0}},
           // A short sum, which is nearly done when it begins.
           {{100, 1024, 32}, true, {16, 16}, {16, 16}, {16, 16}},
           {{1024, 64, 8}, true, {8, 16}, {16, 8}, {16, 8}},
       }) {
    const Product& p = c.product;
    SCOPED_TRACE(::testing::PrintToString(std::vector{p.m, p.n, p.k, p.batch}));
    EXPECT_EQ(likely_size(p, kPrecisions[0], c.b_transposed), c.floats);
    EXPECT_EQ(likely_size(p, kPrecisions[1], c.b_transposed), c.tf32);
    EXPECT_EQ(likely_size(p, kPrecisions[3], c.b_transposed), c.halves);
  }
}

// cuBLASLt may take several times as long for it.
TEST(MatmulTileForms, AVectorTimesAMatrix) {
  RENSA_NEEDS_GPUS(1);
  if (!cuda::has_boxes(gpu())) GTEST_SKIP() << "a GPU before Hopper";
  constexpr std::pair kSmall{16, 16}, kNone{0, 0};
  for (const Precision& precision : kPrecisions) {
    bool half = precision.dtype != Dtype::float32, rounded = half || precision.tf32;
    EXPECT_EQ(likely_size({1, 1000, 1000}, precision, false), kSmall) << precision.name;
    EXPECT_EQ(likely_size({1, 256, 1000}, precision, false), rounded ? kSmall : kNone)
        << precision.name;
    EXPECT_EQ(likely_size({1, 256, 2048}, precision, false), half ? kSmall : kNone)
        << precision.name;
    EXPECT_EQ(likely_size({1, 4096, 1024}, precision, false), rounded ? std::pair(16, 32) : kNone)
        << precision.name;
    EXPECT_EQ(likely_size({1, 1000, 1000, 64}, precision, false), kNone) << precision.name;
  }
}

TEST(MatmulTileForms, AColumnTimesARowGoesByTheKernelForThemHoweverMany) {
  RENSA_NEEDS_GPUS(1);
  for (const Precision& precision : kPrecisions) {
    auto likely = [&](Product p) {
      return cuda::skinny_is_likely_faster(operands(p, precision, false, false).key);
    };
    EXPECT_TRUE(likely({200, 200, 1, 64})) << precision.name;
    EXPECT_FALSE(likely({200, 200, 2, 64})) << precision.name;
    EXPECT_TRUE(likely({200, 200, 2})) << precision.name;
  }
}

// The gradient of a layer's weights, whose terms are the samples.
TEST(MatmulTileForms, LargeTilesForShortSumsOverTheOuterAxis) {
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
TEST(MatmulTileForms, LargeTilesOfFloats) {
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

// In TF32, where most multiprocessors have one of them.
TEST(MatmulTileForms, LargeTilesInTf32) {
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
TEST(MatmulTileForms, FewWarpsBesideLargeTiles) {
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

TEST(MatmulTileForms, LikelyForSplitFloats) {
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

}  // namespace
}  // namespace rensa
