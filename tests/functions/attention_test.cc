// What attention refuses, queries without keys, and its dropout.
#include "rensa/functions/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/operations/copy_parts/copy_parts.h"
#include "tests/graph/rewritten.h"
#include "tests/num_threads.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Variable ones(const Shape& shape, Dtype dtype = float32) {
  return constant(xp::ones(shape, dtype));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  auto run = [](const Variable& q, const Variable& k, const Variable& v,
                F::AttentionOptions options = {}) {
    (void)F::scaled_dot_product_attention(q, k, v, options);
  };
  Variable q = ones({2, 3, 4}), k = ones({2, 5, 4}), v = ones({2, 5, 6});
  EXPECT_NO_THROW(run(q, k, v));
  EXPECT_THROW(run(q, ones({2, 5, 3}), v), ShapeError);
  EXPECT_THROW(run(q, k, ones({2, 4, 6})), ShapeError);
  EXPECT_THROW(run(ones({4}), k, v), ShapeError);
  EXPECT_THROW(run(q, ones({2, 5, 4}, float64), v), DtypeError);
  EXPECT_THROW(run(q, k, v, {.mask = xp::ones({3, 4}, bool_)}), ShapeError);
  EXPECT_THROW(run(q, k, v, {.mask = xp::ones({3, 5}, int32)}), DtypeError);
  EXPECT_THROW(run(q, k, v, {.dropout_ratio = 1}), ValueError);
  EXPECT_THROW(run(q, k, v, {.key_lengths = xp::ones({3}, int32)}), ShapeError);
  EXPECT_THROW(run(q, k, v, {.key_lengths = xp::ones({2})}), DtypeError);
  EXPECT_THROW(run(q, k, v, {.alibi_slopes = xp::ones({3})}), ShapeError);
  EXPECT_THROW(run(q, k, v, {.bias = ones({4, 5})}), ShapeError);
}

// A mask must not make the scores larger, nor be taken for another head's.
TEST(Attention, AMaskThatDoesNotBroadcastToTheScores) {
  Variable x(xp::ones({2, 3, 4}));
  for (const Shape& shape : {Shape{2, 1, 1, 3}, Shape{3, 1, 3}, Shape{4, 3}, Shape{1, 1, 1, 3}}) {
    for (Dtype dtype : {bool_, float32}) {
      std::string text = testing::thrown<ShapeError>(
          [&] { F::scaled_dot_product_attention(x, x, x, {.mask = xp::ones(shape, dtype)}); });
      EXPECT_NE(text.find(shape.str()), std::string::npos) << text;
    }
  }
  Variable query(xp::ones({2, 8, 3, 4})), key(xp::ones({2, 4, 3, 4}));
  EXPECT_THROW(F::scaled_dot_product_attention(query, key, key, {.mask = xp::ones({2, 2, 3, 3})}),
               ShapeError);
  EXPECT_THROW(F::scaled_dot_product_attention(query, key, key, {.mask = xp::ones({2, 4, 3, 3})}),
               ShapeError);
}

TEST(Attention, AQueryWithoutKeysHasZeros) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16, bfloat16, float64}) {
      Variable q(xp::ones({2, 4}, dtype, device)), k(xp::ones({3, 4}, dtype, device));
      Array mask = xp::array({{true, true, false}, {false, false, false}}, device);
      Variable y = F::scaled_dot_product_attention(q, k, k, {.mask = mask});
      EXPECT_EQ(y.array().to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
      F::sum(y).backward();
      EXPECT_TRUE(xp::isfinite(q.grad()).all().item<bool>());
    }
  }
}

TEST(Attention, AMaskOfGroupedHeads) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(2);
    auto draw = [&](const Shape& shape) {
      return constant(xp::random::uniform(-1, 1, shape, float64, device));
    };
    Variable q = draw({2, 4, 3, 2}), k = draw({2, 2, 5, 2}), v = draw({2, 2, 5, 2});
    Variable whole_k = F::repeat(k, {2}, 1), whole_v = F::repeat(v, {2}, 1);
    for (const Shape& shape : {Shape{3, 5}, Shape{4, 3, 5}, Shape{2, 1, 3, 5}, Shape{2, 4, 1, 5}}) {
      F::AttentionOptions options{.mask = draw(shape).array() > -0.3};
      Array got = F::scaled_dot_product_attention(q, k, v, options).array();
      Array want = F::scaled_dot_product_attention(q, whole_k, whole_v, options).array();
      EXPECT_TRUE(xp::allclose(got, want, 1e-12, 1e-12)) << shape.str();
    }
  }
}

TEST(Attention, DropsWeights) {
  Variable q = ones({8, 4}), k = ones({32, 4});
  auto run = [&] {
    return F::scaled_dot_product_attention(q, k, k, {.dropout_ratio = 0.5}).array();
  };
  EXPECT_FALSE(xp::allclose(run(), xp::ones({8, 4})));
  UsingConfig<bool> off(&Config::train, false);
  EXPECT_TRUE(xp::allclose(run(), xp::ones({8, 4})));
}

// --- against the same composed of functions, in float64 ---

struct Sizes {
  std::int64_t batch, heads, groups, queries, keys, width, value_width;
};

struct Setup {
  const char* name;
  std::function<F::AttentionOptions(const Sizes&, Device)> options;
};

const Sizes sizes[] = {
    {1, 1, 1, 1, 1, 16, 16},      {2, 4, 2, 17, 17, 32, 32},  {1, 2, 1, 64, 64, 64, 64},
    {1, 2, 2, 130, 130, 64, 64},  {2, 2, 1, 17, 130, 80, 24}, {1, 3, 1, 130, 64, 128, 128},
    {1, 1, 1, 300, 270, 96, 96},  {1, 2, 2, 33, 70, 20, 36},  {1, 1, 1, 70, 65, 7, 5},
    {1, 2, 1, 65, 150, 160, 200},
};

Array some_mask(const Sizes& s, Device device) {
  Array kept = xp::random::uniform(0, 1, {s.batch, 1, s.queries, s.keys}, float32, device) > 0.4;
  return kept;
}

const Setup setups[] = {
    {"plain", [](const Sizes&, Device) { return F::AttentionOptions(); }},
    {"causal", [](const Sizes&, Device) { return F::AttentionOptions{.causal = true}; }},
    {"mask of bool",
     [](const Sizes& s, Device device) {
       return F::AttentionOptions{.mask = some_mask(s, device)};
     }},
    {"added mask, causal, dropout",
     [](const Sizes& s, Device device) {
       Array added = xp::random::uniform(-2, 2, {s.heads, 1, s.keys}, float32, device);
       return F::AttentionOptions{.mask = added, .dropout_ratio = 0.3, .causal = true};
     }},
    {"key_lengths and slopes",
     [](const Sizes& s, Device device) {
       Array slopes = xp::full({s.heads}, 0.125, float32, device);
       Array lengths = xp::full({s.batch}, (s.keys + 1) / 2, int32, device);
       return F::AttentionOptions{.scale = 0.25, .key_lengths = lengths, .alibi_slopes = slopes};
     }},
    {"no scale, dropout",
     [](const Sizes&, Device) { return F::AttentionOptions{.dropout_ratio = 0.5, .scale = 0.0}; }},
};

/// y and the gradients of query, key and value.
Arrays attend(const Arrays& x, const Array& gy, const F::AttentionOptions& options) {
  xp::random::seed(5);
  Variables in(x.begin(), x.end());
  Variable y = F::scaled_dot_product_attention(in[0], in[1], in[2], options);
  Arrays all = {y.array()};
  for (const Variable& g : grad({y}, in, {constant(gy)})) all.push_back(g.array());
  return all;
}

/// (batch, heads, n, width) as slices of (batch, n, heads, 3 * width) where `apart`.
Array draw(std::int64_t batch, std::int64_t heads, std::int64_t n, std::int64_t width, bool apart,
           Dtype dtype, Device device) {
  if (!apart)
    return xp::random::uniform(-1, 1, {batch, heads, n, width}, float32, device).astype(dtype);
  Array whole = xp::random::uniform(-1, 1, {batch, n, heads, 3 * width}, float32, device);
  return whole.astype(dtype)[{ellipsis, Slice(width, 2 * width)}].swapaxes(1, 2);
}

void expect_close(const Array& got, const Array& want, double tolerance, const std::string& what) {
  double error = xp::absolute(got.astype(float64) - want).max().item<double>();
  double greatest = xp::absolute(want).max().item<double>();
  EXPECT_LE(error, tolerance * (1 + greatest)) << what;  // no NaN either
}

class AttentionSizes : public ::testing::TestWithParam<Setup> {};

TEST_P(AttentionSizes, AreWhatIsComposed) {
  const char* names[] = {"y", "gquery", "gkey", "gvalue"};
  for (Device device : testing::test_devices()) {
    for (const Sizes& s : sizes) {
      for (auto [dtype, tolerance, tf32] : {std::tuple{float32, 1e-5, false},
                                            {float32, 4e-3, true},
                                            {float64, 1e-12, false},
                                            {float16, 4e-3, false},
                                            {bfloat16, 3e-2, false}}) {
        UsingConfig rounded(&Config::tf32, tf32);
        for (bool apart : {false, true}) {
          SCOPED_TRACE(fmt::format("{} {} {} {} {} {} {} {}", s.heads, s.queries, s.keys, s.width,
                                   std::string(dtype_name(dtype)), tf32, apart, device.str()));
          xp::random::seed(3);
          Arrays x = {draw(s.batch, s.heads, s.queries, s.width, apart, dtype, device),
                      draw(s.batch, s.groups, s.keys, s.width, apart, dtype, device),
                      draw(s.batch, s.groups, s.keys, s.value_width, apart, dtype, device)};
          Array gy = draw(s.batch, s.heads, s.queries, s.value_width, !apart, dtype, device);
          F::AttentionOptions options = GetParam().options(s, device), composed = options;
          composed.bias = constant(xp::zeros({1, 1}, float64, device));
          Arrays wide;
          for (const Array& a : x) wide.push_back(a.astype(float64));
          Arrays want = attend(wide, gy.astype(float64), composed);
          for (UseCudnn use : {UseCudnn::never, UseCudnn::automatic}) {
            bool may = device.is_cuda() && (dtype == float16 || dtype == bfloat16);
            if (use == UseCudnn::automatic && !may) continue;
            SCOPED_TRACE(use == UseCudnn::never ? "by kernels" : "by cuDNN where it may");
            UsingConfig<UseCudnn> scope(&Config::use_cudnn, use);
            Arrays got = attend(x, gy, options), again = attend(x, gy, options);
            for (std::size_t k = 0; k < want.size(); ++k) {
              ASSERT_EQ(got[k].shape(), want[k].shape());
              ASSERT_EQ(got[k].dtype(), dtype);
              expect_close(got[k], want[k], tolerance, names[k]);
              EXPECT_TRUE(xp::array_equal(got[k], again[k]))
                  << names[k] << " is the same each time";
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, AttentionSizes, ::testing::ValuesIn(setups), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST(Attention, HasTheSameBitsOnAnyNumberOfThreads) {
  Sizes s = {2, 2, 1, 300, 270, 24, 40};
  xp::random::seed(4);
  Arrays x = {draw(s.batch, s.heads, s.queries, s.width, true, float32, cpu()),
              draw(s.batch, s.groups, s.keys, s.width, true, float32, cpu()),
              draw(s.batch, s.groups, s.keys, s.value_width, true, float32, cpu())};
  Array gy = draw(s.batch, s.heads, s.queries, s.value_width, false, float32, cpu());
  testing::NumThreads scope(get_num_threads());
  std::vector<Arrays> all;
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    all.push_back(attend(x, gy, {.dropout_ratio = 0.2, .causal = true}));
  }
  for (std::size_t k = 0; k < all[0].size(); ++k) {
    EXPECT_TRUE(xp::array_equal(all[0][k], all[1][k])) << k;
  }
}

// Of keys that no query sees the memory may hold anything.
TEST(Attention, KeysBehindTheLengthsAreNotRead) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      xp::random::seed(1);
      Array q = draw(2, 2, 70, 64, false, dtype, device),
            k = draw(2, 2, 100, 64, false, dtype, device);
      Array lengths = xp::array({80, 3}, device), gy = xp::ones_like(q);
      Array spoilt = k.copy();
      spoilt[{0, Slice(), Slice(80, none)}].fill(std::nan(""));
      spoilt[{1, Slice(), Slice(3, none)}].fill(std::nan(""));
      Arrays want = attend({q, k, k}, gy, {.key_lengths = lengths});
      Arrays got = attend({q, spoilt, spoilt}, gy, {.key_lengths = lengths});
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(xp::array_equal(got[i], want[i])) << i << ' ' << device.str();
      }
      EXPECT_EQ(xp::absolute(got[2][{1, Slice(), Slice(3, none)}]).max().item<double>(), 0);
    }
  }
}

TEST(Attention, LengthsThatThereAreNot) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({2, 1, 4, 8}, float32, device));
    for (std::int64_t length : {-1, 5}) {
      Array lengths = xp::full({2}, length, int64, device);
      std::string text = testing::thrown<ValueError>([&] {
        (void)F::scaled_dot_product_attention(x, x, x, {.key_lengths = lengths});
        device.synchronize();
      });
      EXPECT_NE(text.find("scaled_dot_product_attention"), std::string::npos) << text;
    }
  }
}

// A matrix of the weights would have 160 GB.
TEST(Attention, MakesNoMatrixOfWeights) {
  for (Device device : testing::test_devices()) {
    Dtype dtype = device.is_cpu() ? float32 : float16;
    constexpr std::int64_t kLong = 200'000;
    Variable x(xp::ones({1, 1, kLong, 16}, dtype, device));
    Array lengths = xp::full({1}, 50, int64, device);
    Variable y = F::scaled_dot_product_attention(x, x, x, {.key_lengths = lengths});
    EXPECT_EQ(y.array().min().item<float>(), 1);
    y.set_grad(xp::ones_like(y.array()));
    y.backward();
    EXPECT_TRUE(xp::isfinite(x.grad()).all().item<bool>());
  }
}

// What dropout leaves is another each time, and the same for forward and backward.
TEST(Attention, DropoutIsReplayedWithNewWeights) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(7);
    Array x = xp::random::uniform(-1, 1, {1, 2, 40, 16}, float32, device);
    auto step = [](const Variables& in) {
      Variable q(in[0].array());
      Variable y = F::scaled_dot_product_attention(q, in[0], in[0], {.dropout_ratio = 0.4});
      return Variables{y, grad({y}, {q})[0]};
    };
    CaptureCache cache({.replay_lists = true});
    xp::random::seed(9);
    std::vector<Arrays> captured, eager;
    for (int i = 0; i < 8; ++i) {
      Variables all = cache.call(step, {constant(x)});
      captured.push_back({all[0].array().copy(), all[1].array().copy()});
    }
    EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
    xp::random::seed(9);
    for (std::size_t i = 0; i < captured.size(); ++i) {
      Variables all = step({constant(x)});
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_TRUE(xp::array_equal(captured[i][k], all[k].array())) << i;
      }
      if (i > 0) {
        EXPECT_FALSE(xp::array_equal(captured[i][0], captured[i - 1][0]));
      }
    }
  }
}

// What one product has projected lies side by side, and so do its gradients: joining them is a
// view.
TEST(Attention, GradientsOfOneProjectionAreJoinedWithoutACopy) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, bfloat16}) {
      Array numbers = xp::random::normal(0, 1, {2, 6, 96}, float64, cpu()).astype(dtype).to(device);
      auto parts_of = [](const Variables& projected) {
        Variables heads;
        for (const Variable& x : projected) {
          heads.push_back(F::swapaxes(F::reshape(x, {2, 6, 4, 8}), 1, 2));
        }
        return heads;
      };
      auto attended = [&](const Variables& projected) {
        Variables h = parts_of(projected);
        return F::scaled_dot_product_attention(h[0], h[1], h[2], {.causal = true});
      };
      Variable whole(numbers);
      Variables apart;
      for (const Array& part : xp::split(numbers, 3, 2)) apart.emplace_back(part.ascontiguous());
      testing::Rewritten list([&] {
        Variable y = attended(F::split_axis(whole, 3, 2));
        return Arrays{grad({y}, {whole}, {y})[0].array()};
      });
      EXPECT_EQ(list.count<operations::CopyParts>([](const auto&) { return true; }), 0);
      EXPECT_EQ(list.left(), 2u);  // attention and its gradient
      Variable y = attended(F::split_axis(whole, 3, 2)), z = attended(apart);
      Array got = grad({y}, {whole}, {y})[0].array(), want;
      Arrays of_parts;
      for (const Variable& g : grad({z}, apart, {z})) of_parts.push_back(g.array());
      want = xp::concatenate(of_parts, 2);
      EXPECT_TRUE(got.is_contiguous());
      double tolerance = dtype == float32 ? 1e-5 : 2e-2;
      EXPECT_TRUE(xp::allclose(got.astype(float32), want.astype(float32), tolerance, tolerance));
    }
  }
}

}  // namespace
}  // namespace rensa
