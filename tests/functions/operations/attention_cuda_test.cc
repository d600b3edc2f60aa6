// Attention on a GPU: by cuDNN and by the library's kernels, the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/limits.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Of what cuDNN computes.
struct Sizes {
  std::int64_t batch, heads, groups, queries, keys, width, value_width;
  std::string str() const {
    return fmt::format("{} x {} / {} heads, {} x {}, widths {} and {}", batch, heads, groups,
                       queries, keys, width, value_width);
  }
};

const Sizes kSizes[] = {
    {2, 3, 3, 256, 256, 64, 64},   {1, 2, 2, 200, 264, 64, 64},
    {2, 4, 2, 136, 136, 32, 32},   {1, 2, 1, 64, 300, 80, 24},
    {1, 3, 3, 130, 190, 128, 128}, {2, 2, 2, 17, 33, 16, 16},
    {1, 2, 2, 72, 150, 96, 64},    {1, 2, 2, 150, 150, 256, 256},
    {2, 8, 8, 900, 1024, 64, 64},  // many blocks add to a query's gradient
    {1, 4, 2, 1024, 640, 64, 128},
};

/// query, key, value and the gradient of the output: heads inside of rows of several arrays (which
/// is what a layer's product gives), or in front of them.
Arrays draw(const Sizes& s, bool apart, Dtype dtype) {
  xp::random::seed(11);
  auto one = [&](std::int64_t heads, std::int64_t n, std::int64_t width, bool inside) {
    if (!inside) {
      return xp::random::uniform(-1, 1, {s.batch, heads, n, width}, float32, gpu(0)).astype(dtype);
    }
    Array whole = xp::random::uniform(-1, 1, {s.batch, n, 3, heads, width}, float32, gpu(0));
    return whole.astype(dtype)[{Slice(), Slice(), 1}].swapaxes(1, 2);
  };
  return {one(s.heads, s.queries, s.width, apart), one(s.groups, s.keys, s.width, apart),
          one(s.groups, s.keys, s.value_width, apart),
          one(s.heads, s.queries, s.value_width, !apart)};
}

/// y and the gradients of query, key and value; the gradient with `backward`, where it is given.
Arrays attend(const Arrays& x, const F::AttentionOptions& options,
              std::optional<UseCudnn> backward = {}) {
  Variables in(x.begin(), x.begin() + 3);
  Variable y = F::scaled_dot_product_attention(in[0], in[1], in[2], options);
  UsingConfig<UseCudnn> other(&Config::use_cudnn, backward.value_or(config().use_cudnn));
  Arrays all = {y.array()};
  for (const Variable& g : grad({y}, in, {constant(x[3])})) all.push_back(g.array());
  return all;
}

/// Whether cuDNN has gradients of so many keys: up to 9.15.0 of multiples of 128 alone.
bool has_gradient(const Sizes& s) {
  if (s.keys % 128 == 0) return true;
  static const bool of_any = [] {
    UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
    try {
      (void)attend(draw({1, 1, 1, 128, 136, 64, 64}, false, float16), {});
      return true;
    } catch (const NotImplementedError& error) {
      EXPECT_NE(std::string(error.what()).find("no multiple of 128"), std::string::npos)
          << error.what();
      return false;
    }
  }();
  return of_any;
}

/// The same composed of functions, in float64.
Arrays composed(const Arrays& x, F::AttentionOptions options) {
  options.bias = constant(xp::zeros({1, 1}, float64, gpu(0)));
  Arrays wide;
  for (const Array& a : x) wide.push_back(a.astype(float64));
  return attend(wide, options);
}

void expect_close(const Arrays& got, const Arrays& want, double tolerance) {
  const char* names[] = {"y", "gquery", "gkey", "gvalue"};
  for (std::size_t k = 0; k < want.size(); ++k) {
    double error = xp::absolute(got[k].astype(float64) - want[k]).max().item<double>();
    double greatest = xp::absolute(want[k]).max().item<double>();
    EXPECT_LE(error, tolerance * (1 + greatest)) << names[k];  // no NaN either
  }
}

void expect_equal(const Arrays& got, const Arrays& want) {
  for (std::size_t k = 0; k < want.size(); ++k) {
    EXPECT_TRUE(xp::array_equal(got[k], want[k])) << k;
  }
}

class CudaAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    RENSA_NEEDS_GPUS(1);
    if (std::stoi(gpu(0).compute_capability()) < 90)
      GTEST_SKIP() << "cuDNN's engines of Hopper and later";
  }
};

// `always` throws, with cuDNN's words, where something else would compute it.
TEST_F(CudaAttention, IsTheSameByCudnnAndByKernels) {
  for (const Sizes& s : kSizes) {
    for (bool causal : {false, true}) {
      for (bool apart : {false, true}) {
        for (auto [dtype, tolerance] : {std::pair{float16, 4e-3}, {bfloat16, 3e-2}}) {
          SCOPED_TRACE(
              fmt::format("{} {} {} {}", s.str(), causal, apart, std::string(dtype_name(dtype))));
          F::AttentionOptions options{.causal = causal};
          Arrays x = draw(s, apart, dtype), want = composed(x, options);
          for (UseCudnn use : {UseCudnn::always, UseCudnn::automatic, UseCudnn::never}) {
            SCOPED_TRACE(static_cast<int>(use));
            UsingConfig<UseCudnn> scope(&Config::use_cudnn, use);
            std::optional<UseCudnn> back;
            if (use == UseCudnn::always && !has_gradient(s)) back = UseCudnn::never;
            Arrays got = attend(x, options, back);
            expect_close(got, want, tolerance);
            for (int i = 0; i < 3; ++i) expect_equal(attend(x, options, back), got);
          }
        }
      }
    }
  }
}

// The logarithms of the sums that forward leaves are the same numbers.
TEST_F(CudaAttention, GoesForwardOneWayAndBackTheOther) {
  for (bool causal : {false, true}) {
    F::AttentionOptions options{.causal = causal, .scale = 0.3};
    Arrays x = draw(kSizes[0], true, float16), want = composed(x, options);
    for (auto [there, back] : {std::pair{UseCudnn::always, UseCudnn::never},
                               std::pair{UseCudnn::never, UseCudnn::always}}) {
      UsingConfig<UseCudnn> scope(&Config::use_cudnn, there);
      expect_close(attend(x, options, back), want, 4e-3);
    }
  }
}

TEST_F(CudaAttention, MayAddInAnyOrderBySwitch) {
  UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
  UsingConfig<bool> any(&Config::cudnn_deterministic, false);
  for (bool causal : {false, true}) {
    F::AttentionOptions options{.causal = causal};
    for (const Sizes& s : {kSizes[0], kSizes[9]}) {
      SCOPED_TRACE(s.str());
      Arrays x = draw(s, true, bfloat16);
      expect_close(attend(x, options), composed(x, options), 3e-2);
    }
  }
}

TEST_F(CudaAttention, CapturedByCudnnEqualsEager) {
  UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
  Arrays x = draw(kSizes[0], true, bfloat16);
  auto step = [](const Variables& in) {
    Variable q(in[0].array()), k(in[1].array()), v(in[2].array());
    Variable y = F::scaled_dot_product_attention(q, k, v, {.causal = true});
    Variables all = grad({y}, {q, k, v}, {in[3]});
    all.insert(all.begin(), y);
    return all;
  };
  Variables in;
  for (const Array& a : x) in.push_back(constant(a));
  Arrays want;
  for (const Variable& v : step(in)) want.push_back(v.array());
  CaptureCache cache;
  for (int i = 0; i < 5; ++i) {
    Arrays got;
    for (const Variable& v : cache.call(step, in)) got.push_back(v.array());
    expect_equal(got, want);
  }
  EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
}

TEST_F(CudaAttention, SaysWhyCudnnDoesNotComputeIt) {
  UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
  auto why = [](const Sizes& s, Dtype dtype, const F::AttentionOptions& options) {
    Arrays x = draw(s, false, dtype);
    return testing::thrown<NotImplementedError>([&] { (void)attend(x, options); });
  };
  Array mask = xp::ones({256, 256}, bool_, gpu(0));
  std::tuple<Sizes, Dtype, F::AttentionOptions, const char*> cases[] = {
      {kSizes[0], float32, {}, "16-bit"},
      {kSizes[0], float16, {.mask = mask}, "a mask"},
      {kSizes[0], float16, {.dropout_ratio = 0.5}, "a dropout"},
      {{1, 1, 1, 256, 256, 20, 20}, float16, {}, "multiples of 16 bytes"},
  };
  for (const auto& [sizes, dtype, options, reason] : cases) {
    std::string text = why(sizes, dtype, options);
    EXPECT_NE(text.find(reason), std::string::npos) << text;
    EXPECT_NE(text.find("use_cudnn"), std::string::npos) << text;
  }
}

// The scratch of the gradient has 2 bytes for each score.
TEST_F(CudaAttention, TheGradientKeepsToTheLimitOfWorkspace) {
  Arrays x = draw(kSizes[0], false, float16), want = composed(x, {});
  std::size_t limit = cuda::get_max_workspace_size();
  cuda::set_max_workspace_size(50'000);
  {
    UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
    std::string text = testing::thrown<NotImplementedError>([&] { (void)attend(x, {}); });
    EXPECT_NE(text.find("bytes of workspace"), std::string::npos) << text;
  }
  expect_close(attend(x, {}), want, 4e-3);        // by the kernels
  for (std::size_t bytes : {200'000, 500'000}) {  // a head at once, and a sample
    UsingConfig<UseCudnn> scope(&Config::use_cudnn, UseCudnn::always);
    cuda::set_max_workspace_size(bytes);
    expect_close(attend(x, {}), want, 4e-3);
  }
  cuda::set_max_workspace_size(limit);
}

}  // namespace
}  // namespace rensa
