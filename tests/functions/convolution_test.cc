// Convolutions: what the recorded cases (cases/convolution.cc) are too small for, layouts of
// memory, steps that are captured, errors.
#include "rensa/functions/convolution.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_graph.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/num_threads.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Sizes {
  const char* name;
  Shape x, W;
  F::ConvolutionOptions options;
};
void PrintTo(const Sizes& sizes, std::ostream* os) { *os << sizes.name; }

const Sizes kSizes[] = {
    {"several blocks of pixels", {2, 3, 70, 65}, {8, 3, 3, 3}, {.pad = 1}},
    {"deep", {3, 96, 9, 9}, {32, 96, 3, 3}, {.stride = 2, .pad = 1}},
    {"pointwise", {2, 24, 17, 20}, {16, 24, 1, 1}, {}},
    {"pointwise with a stride", {2, 8, 17, 20}, {4, 8, 1, 1}, {.stride = 3}},
    {"of groups", {2, 12, 15, 14}, {18, 4, 3, 5}, {.pad = {1, 2}, .groups = 3}},
    {"depthwise", {2, 10, 19, 23}, {20, 1, 3, 3}, {.stride = 2, .pad = 1, .groups = 10}},
    {"one channel", {6, 1, 28, 28}, {20, 1, 5, 5}, {}},
    {"dilated", {1, 4, 30, 31}, {5, 4, 3, 3}, {.pad = 4, .dilate = {4, 3}}},
    {"volumes", {2, 3, 9, 8, 10}, {4, 3, 3, 2, 3}, {.stride = {2, 1, 2}, .pad = 1}},
    {"many small images", {11, 5, 6, 7}, {4, 5, 3, 3}, {.stride = 2, .pad = 1}},
    {"small pointwise", {9, 5, 3, 4}, {4, 5, 1, 1}, {}},
    {"signals", {4, 6, 300}, {8, 6, 9}, {.stride = 2, .pad = 4}},
    // Enough channels for oneDNN, where the build has it.
    {"slices of channels", {3, 72, 14, 13}, {40, 72, 3, 3}, {.pad = 1}},
    {"a smaller last pile of images", {10, 16, 20, 20}, {32, 16, 3, 3}, {.pad = 1}},
    {"small images of many channels", {6, 64, 5, 4}, {96, 64, 3, 3}, {.pad = {1, 0}}},
    {"slices of groups", {3, 48, 15, 16}, {48, 1, 3, 3}, {.pad = 1, .groups = 48}},
    {"groups of several channels", {2, 48, 12, 13}, {64, 12, 3, 5}, {.pad = 1, .groups = 4}},
    {"an end that no kernel reaches", {2, 32, 16, 12}, {16, 32, 3, 3}, {.stride = 4}},
    {"a stride beyond the last axis", {3, 32, 9, 1}, {32, 32, 3, 3}, {.stride = {1, 2}, .pad = 1}},
    {"dilated channels", {2, 16, 19, 18}, {24, 16, 3, 3}, {.pad = 2, .dilate = 2}},
    {"images of three channels", {2, 3, 40, 41}, {32, 3, 7, 7}, {.stride = 2, .pad = 3}},
    {"volumes of many channels", {2, 16, 9, 8, 7}, {32, 16, 3, 3, 3}, {.stride = 2, .pad = 1}},
    {"signals of many channels", {4, 32, 90}, {48, 32, 9}, {.stride = 2, .pad = 4}},
};

/// The sums of the definition, over one axis of the kernel after the other.
Array by_definition(const Array& x, const Array& W, const F::ConvolutionOptions& o) {
  int axes = x.ndim() - 2;
  auto of = [](const Shape& s, int i) { return s.size() == 1 ? s[0] : s[i]; };
  std::vector<std::pair<std::int64_t, std::int64_t>> border(2, {0, 0});
  Shape out{x.shape(0), W.shape(0)}, places;
  for (int i = 0; i < axes; ++i) {
    std::int64_t pad = of(o.pad, i), k = W.shape(2 + i);
    border.emplace_back(pad, pad);
    places.push_back(k);
    out.push_back((x.shape(2 + i) + 2 * pad - (k - 1) * of(o.dilate, i) - 1) / of(o.stride, i) + 1);
  }
  Array padded = xp::pad(x, border), y = xp::zeros(out, x.dtype(), x.device());
  std::int64_t channels = W.shape(1), filters = W.shape(0) / o.groups;
  for (std::int64_t k = 0; k < places.total(); ++k) {
    std::vector<BasicIndex> window{Slice(), Slice()}, place{Slice(), Slice()};
    std::int64_t rest = k, below = places.total();
    for (int i = 0; i < axes; ++i) {
      below /= places[i];
      std::int64_t at = rest / below, begin = at * of(o.dilate, i), stride = of(o.stride, i);
      rest %= below;
      window.emplace_back(Slice(begin, begin + (out[2 + i] - 1) * stride + 1, stride));
      place.emplace_back(at);
    }
    Array part = padded[window], weights = W[place];  // (n, c, out ...), (filters, c)
    for (std::int64_t g = 0; g < o.groups; ++g) {
      Slice in(g * channels, (g + 1) * channels), to(g * filters, (g + 1) * filters);
      Array sums = xp::tensordot(weights[{to}], part[{Slice(), in}], Shape{1}, Shape{1});
      Shape order{1, 0};
      for (int i = 0; i < axes; ++i) order.push_back(2 + i);
      y[{Slice(), to}] += sums.transpose(order);
    }
  }
  return y;
}

void expect_close(const Array& got, const Array& want, double tolerance, const char* what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  Array difference = xp::absolute(got.astype(float64) - want.astype(float64));
  double scale = xp::absolute(want.astype(float64)).max().item<double>();
  EXPECT_LE(difference.max().item<double>(), tolerance * scale) << what;
}

/// Of float32, for expect_close: cuDNN may transform what it multiplies (Winograd's way).
double float32_tolerance(Device device) { return device.is_cuda() ? 1e-5 : 2e-6; }

class Convolutions : public ::testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override { xp::random::seed(1); }
  static Array random(const Shape& shape, Device device, Dtype dtype = float64) {
    return xp::random::uniform(-1, 1, shape, float64, device).astype(dtype);
  }
};

// The gradients are the adjoint maps: <gy, conv(x, W)> is <gx, x> and <gW, W> for any x and W.
TEST_P(Convolutions, AreTheSumsOfTheirDefinition) {
  const Sizes& sizes = GetParam();
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    Array x = random(sizes.x, device), W = random(sizes.W, device);
    Array want = by_definition(x, W, sizes.options), gy = random(want.shape(), device);
    Variable vx(x), vW(W);
    Variable y = F::convolution_nd(vx, vW, {}, sizes.options);
    expect_close(y.array(), want, 1e-12, "y");
    Variables g = grad({y}, {vx, vW}, {constant(gy)});
    // By columns of a matrix each: gW is what the definition gives of other arguments.
    for (int i = 0; i < 3; ++i) {
      Array other_x = random(sizes.x, device), other_W = random(sizes.W, device);
      double by_x = xp::vdot(gy, by_definition(other_x, W, sizes.options)).item<double>();
      double by_W = xp::vdot(gy, by_definition(x, other_W, sizes.options)).item<double>();
      EXPECT_NEAR(xp::vdot(g[0].array(), other_x).item<double>(), by_x,
                  1e-9 * (1 + std::abs(by_x)));
      EXPECT_NEAR(xp::vdot(g[1].array(), other_W).item<double>(), by_W,
                  1e-9 * (1 + std::abs(by_W)));
    }
    for (auto [dtype, tolerance] :
         {std::pair{float32, float32_tolerance(device)}, {float16, 2e-3}, {bfloat16, 1e-2}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)));
      Variable nx(x.astype(dtype)), nW(W.astype(dtype));
      Variable ny = F::convolution_nd(nx, nW, {}, sizes.options);
      Variables ng = grad({ny}, {nx, nW}, {constant(gy.astype(dtype))});
      expect_close(ny.array(), want, tolerance, "y");
      expect_close(ng[0].array(), g[0].array(), tolerance, "gx");
      expect_close(ng[1].array(), g[1].array(), tolerance, "gW");
    }
  }
}

/// `a` in memory with the channels last.
Array channels_last(const Array& a) {
  Shape order{0}, back{0, a.ndim() - 1};
  for (int i = 2; i < a.ndim(); ++i) order.push_back(i), back.push_back(i - 1);
  order.push_back(1);
  return a.transpose(order).ascontiguous().transpose(back);
}

bool lies_channels_last(const Array& a) {
  Shape order{0};
  for (int i = 2; i < a.ndim(); ++i) order.push_back(i);
  order.push_back(1);
  return a.transpose(order).is_contiguous();
}

/// All axes but the channels'.
Shape all_but_channels(int ndim) {
  Shape axes{0};
  for (int i = 2; i < ndim; ++i) axes.push_back(i);
  return axes;
}

TEST_P(Convolutions, KeepTheChannelsLast) {
  const Sizes& sizes = GetParam();
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    for (auto [weights_too, dtype] :
         {std::pair{true, float32}, {false, float32}, {true, float64}}) {
      Array x = random(sizes.x, device, dtype), W = random(sizes.W, device, dtype);
      Variable vx(x), vW(W), lx(channels_last(x)), lW(weights_too ? channels_last(W) : W);
      Variable y = F::convolution_nd(vx, vW, {}, sizes.options);
      Variable ly = F::convolution_nd(lx, lW, {}, sizes.options);
      Array gy = random(y.shape(), device, dtype);
      Variables g = grad({y}, {vx, vW}, {constant(gy)});
      Variables lg = grad({ly}, {lx, lW}, {constant(channels_last(gy))});
      // Of one channel nothing tells which axis is the last.
      EXPECT_TRUE(lies_channels_last(ly.array()) || sizes.x[1] == 1);
      EXPECT_TRUE(lies_channels_last(lg[0].array()));
      EXPECT_TRUE(lies_channels_last(lg[1].array()));
      double tolerance = float32_tolerance(device);
      expect_close(ly.array(), y.array(), tolerance, "y");
      expect_close(lg[0].array(), g[0].array(), tolerance, "gx");
      expect_close(lg[1].array(), g[1].array(), tolerance, "gW");
    }
  }
}

TEST_P(Convolutions, DoNotDependOnTheNumberOfThreads) {
  const Sizes& sizes = GetParam();
  for (Dtype dtype : {float32, bfloat16}) {
    Array x = random(sizes.x, cpu(), dtype), W = random(sizes.W, cpu(), dtype);
    auto results = [&] {
      Variable vx(x), vW(W), y = F::convolution_nd(vx, vW, {}, sizes.options);
      Variables g = grad({y}, {vx, vW}, {y});
      return Variables{y, g[0], g[1]};
    };
    Variables want = results();
    for (int n : {1, 3}) {
      testing::NumThreads threads(n);
      Variables got = results();
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(xp::array_equal(got[i].array(), want[i].array())) << n << " threads, " << i;
      }
    }
  }
}

TEST_P(Convolutions, HaveTheSameBitsEveryTime) {
  const Sizes& sizes = GetParam();
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      SCOPED_TRACE(device.str() + " " + std::string(dtype_name(dtype)));
      Array x = random(sizes.x, device, dtype), W = random(sizes.W, device, dtype);
      auto results = [&] {
        Variable vx(x.copy()), vW(W.copy()), y = F::convolution_nd(vx, vW, {}, sizes.options);
        Variables g = grad({y}, {vx, vW}, {y});
        return Variables{y, g[0], g[1]};
      };
      Variables want = results();
      for (int time = 0; time < 3; ++time) {
        Variables got = results();
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(xp::array_equal(got[i].array(), want[i].array())) << i;
        }
      }
    }
  }
}

// F::sum's gradient is one number, of which an array of y's shape without strides is made.
TEST_P(Convolutions, GradientsOfOneNumberForAllElements) {
  const Sizes& sizes = GetParam();
  for (Device device : testing::test_devices()) {
    Array x = xp::random::normal(0, 1, sizes.x, float32, device);
    Array W = xp::random::normal(0, 1, sizes.W, float32, device);
    std::vector<Array> gradients[2];
    for (bool dense : {false, true}) {
      Variable of_x(x), of_W(W), y = F::convolution_nd(of_x, of_W, {}, sizes.options);
      if (dense) y.set_grad(xp::ones_like(y.array())), y.backward();
      else F::sum(y).backward();
      gradients[dense] = {of_x.grad(), of_W.grad()};
    }
    for (int i : {0, 1}) {
      Array off = xp::absolute(gradients[0][i] - gradients[1][i]);
      double size = xp::absolute(gradients[1][i]).max().item<double>();
      EXPECT_LE(off.max().item<double>(), 1e-5 * size) << i << " on " << device.str();
    }
  }
}

// To y, and to what a deconvolution makes: in every dtype and layout, the bias packed and not.
TEST_P(Convolutions, AddTheirBias) {
  const Sizes& sizes = GetParam();
  const F::ConvolutionOptions& o = sizes.options;
  F::DeconvolutionOptions back{
      .stride = o.stride, .pad = o.pad, .dilate = o.dilate, .groups = o.groups};
  for (int i = 2; i < sizes.x.size(); ++i) back.outsize.push_back(sizes.x[i]);
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] :
         {std::pair{float64, 1e-12}, {float32, 4e-6}, {float16, 2e-3}, {bfloat16, 1e-2}}) {
      for (bool last : {false, true}) {
        SCOPED_TRACE(device.str() + " " + std::string(dtype_name(dtype)) + (last ? " last" : ""));
        auto make = [&](const Shape& shape) {
          Array a = random(shape, device, dtype);
          return Variable(last ? channels_last(a) : a);
        };
        auto check = [&, tolerance = tolerance](const Array& got, const Array& plain,
                                                const Array& bias) {
          Shape row = Shape::filled(plain.ndim(), 1);
          row[1] = bias.size();
          expect_close(got, plain.astype(float64) + bias.astype(float64).reshape(row), tolerance,
                       "with the bias");
          EXPECT_EQ(lies_channels_last(got), lies_channels_last(plain));
        };
        Variable x = make(sizes.x), W = make(sizes.W);
        Variable b(random({sizes.W[0]}, device, dtype));
        Array c = random({2 * sizes.x[1]}, device, dtype)[Slice(none, none, 2)];
        Variable y = F::convolution_nd(x, W, {}, o), with_bias = F::convolution_nd(x, W, b, o);
        check(with_bias.array(), y.array(), b.array());
        Variable gy = make(y.shape());
        check(F::deconvolution_nd(gy, W, c, back).array(),
              F::deconvolution_nd(gy, W, {}, back).array(), c);
        Variables g = grad({with_bias}, {x, W, b}, {gy}), plain = grad({y}, {x, W}, {gy});
        EXPECT_TRUE(xp::array_equal(g[0].array(), plain[0].array()));
        EXPECT_TRUE(xp::array_equal(g[1].array(), plain[1].array()));
        EXPECT_TRUE(xp::array_equal(g[2].array(), F::sum(gy, all_but_channels(gy.ndim())).array()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Convolutions, ::testing::ValuesIn(kSizes));

// 577 is 576 in bfloat16: by the own kernels of one place, and by oneDNN's where the build has it.
TEST(Convolution, IsRoundedOnceWithItsBias) {
  for (auto [channels, extent] : {std::pair{577, 1}, {64, 3}}) {
    Array x = xp::ones({2, channels, 5, 5}, bfloat16, cpu());
    Array W = xp::ones({32, channels, extent, extent}, bfloat16, cpu());
    if (extent == 3) W[{Slice(), 0, 0, 0}].fill(2);
    Variable b(xp::full({32}, -576, bfloat16, cpu()));
    for (bool last : {false, true}) {
      Variable vx(last ? channels_last(x) : x);
      Array y = F::convolution_2d(vx, Variable(W), b).array();
      EXPECT_EQ(y.min().item<float>(), 1);
      EXPECT_EQ(y.max().item<float>(), 1);
    }
  }
}

// oneDNN has sums of bfloat16 in memory that it does not always clear.
TEST(Convolution, DoesNotDependOnWhatMemoryHeldBefore) {
  Array x = xp::random::uniform(-1, 1, {3, 32, 9, 1}, float32, cpu()).astype(bfloat16);
  Array W = xp::random::uniform(-1, 1, {32, 32, 3, 3}, float32, cpu()).astype(bfloat16);
  auto gradient = [&](int filled_with) {
    mallopt(M_PERTURB, filled_with ^ 0xff);
    Variable vW(W), y = F::convolution_2d(constant(x), vW, {}, {.stride = {1, 2}, .pad = 1});
    Array gW = grad({y}, {vW}, {constant(xp::ones_like(y.array()))})[0].array();
    mallopt(M_PERTURB, 0);
    return gW;
  };
  Array want = gradient(0);
  EXPECT_TRUE(xp::array_equal(gradient(0x3f), want));
  EXPECT_TRUE(xp::array_equal(gradient(0xfe), want));
}

// Without the switch float32 keeps its digits, also when plans with TF32 have been made before.
TEST(Convolution, RoundsToTf32WhereThatIsAllowed) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    xp::random::seed(3);
    Array x = xp::random::uniform(-1, 1, {4, 64, 20, 20}, float32, device);
    Array W = xp::random::uniform(-1, 1, {64, 64, 3, 3}, float32, device);
    auto results = [&](Dtype dtype) {
      Variable vx(x.astype(dtype)), vW(W.astype(dtype));
      Variable y = F::convolution_2d(vx, vW, {}, {.pad = 1});
      Variables g = grad({y}, {vx, vW}, {constant(xp::ones_like(y.array()))});
      return Arrays{y.array(), g[0].array(), g[1].array()};
    };
    Arrays want = results(float64);
    for (bool tf32 : {false, true, false}) {
      UsingConfig allow(&Config::tf32, tf32);
      Arrays got = results(float32);
      for (std::size_t i = 0; i < got.size(); ++i) {
        expect_close(got[i], want[i], tf32 ? 2e-3 : 1.5e-5, i == 0 ? "y" : i == 1 ? "gx" : "gW");
      }
    }
  }
}

TEST(Convolution, IsCapturedOnAStream) {
  RENSA_NEEDS_GPUS(1);
  no_backprop_mode no_graph;
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  Array x = xp::random::uniform(-1, 1, {2, 3, 9, 9}, float32, gpu(0));
  Array W = xp::random::uniform(-1, 1, {4, 3, 3, 3}, float32, gpu(0)), y;
  auto convolve = [&] { return F::convolution_2d(x, W, {}, {.pad = 1}).array(); };
  (void)convolve();  // the library is loaded by now
  cuda::synchronize(gpu(0));
  cuda::Graph graph = cuda::capture_graph(stream, [&] { y = convolve(); });
  x *= 2.f;
  Array want = convolve();
  cuda::synchronize(gpu(0));
  graph.launch(stream);
  stream.synchronize();
  EXPECT_TRUE(xp::array_equal(y, want));
}

TEST(Convolution, OfNothing) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({0, 3, 5, 5}, float32, device)), W(xp::ones({4, 3, 3, 3}, float32, device));
    Variable b(xp::ones({4}, float32, device));
    Variable y = F::convolution_2d(x, W, b);
    EXPECT_EQ(y.shape(), Shape({0, 4, 3, 3}));
    y.sum().backward();
    EXPECT_EQ(x.grad().shape(), x.shape());
    EXPECT_EQ(xp::absolute(W.grad()).sum().item<float>(), 0);
    EXPECT_EQ(xp::absolute(b.grad()).sum().item<float>(), 0);
    // No channels: sums of nothing.
    Variable none(xp::ones({2, 0, 5, 5}, float32, device)),
        no(xp::ones({4, 0, 3, 3}, float32, device));
    EXPECT_EQ(F::convolution_2d(none, no).array().sum().item<float>(), 0);
  }
}

// A net of two convolutions, one of them strided, learns from eight samples.
TEST(Convolution, TrainsTheSameCapturedAndEager) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    for (bool last : {false, true}) {
      auto train = [&](bool captured) {
        xp::random::seed(4);
        Array x = xp::random::uniform(-1, 1, {8, 2, 12, 12}, float32, device);
        Array t = xp::arange(8, int32, device) % 3;
        if (last) x = channels_last(x);
        auto weights = [&](const Shape& shape) {
          return Variable(xp::random::normal(0, 0.2, shape, float32, device));
        };
        Variables w{weights({6, 2, 3, 3}), weights({8, 6, 3, 3}), weights({3, 8 * 25})};
        Variable b(xp::zeros({6}, float32, device));
        auto step = [&](const Variables& in) {
          Variable h = F::relu(F::convolution_2d(in[0], w[0], b));
          h = F::relu(F::convolution_2d(h, w[1], {}, {.stride = 2, .pad = 1}));
          Variable loss = F::softmax_cross_entropy(F::linear(h, w[2]), in[1]);
          Variables all{w[0], w[1], w[2], b};
          Variables g = grad({loss}, all);
          for (std::size_t i = 0; i < all.size(); ++i) all[i].array() -= g[i].array() * 0.1f;
          return Variables{loss};
        };
        CaptureCache cache({.replay_lists = true});
        std::vector<float> losses;
        for (int i = 0; i < 12; ++i) {
          Variables in{constant(x), constant(t)};
          Variable loss = captured ? cache.call(step, in)[0] : step(in)[0];
          losses.push_back(loss.array().item<float>());
        }
        if (captured) {
          EXPECT_GT(cache.stats().replays, 5) << cache.stats().last_fallback;
        }
        return losses;
      };
      std::vector<float> eager = train(false);
      EXPECT_LT(eager.back(), 0.9 * eager.front());
      EXPECT_EQ(train(true), eager);
    }
  }
}

// A net that is turned once: its layers launch what they launch of C-contiguous memory, no copies.
TEST(Convolution, ChannelsLastStayThereWithoutCopies) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto operations = [&](bool last) {
      auto make = [&](const Shape& shape) {
        Array a = xp::random::uniform(-1, 1, shape, float32, device);
        return constant(last ? channels_last(a) : a);
      };
      Variables given{make({2, 3, 9, 8}), make({4, 3, 3, 3}), make({5, 4, 3, 3}),
                      make({2, 5, 5, 4})};
      auto step = [&](const Variables&) {
        Variable x(given[0].array()), W1(given[1].array()), W2(given[2].array());
        Variable h = F::relu(F::convolution_2d(x, W1, {}, {.pad = 1}));
        Variable y = F::convolution_2d(h, W2, {}, {.stride = 2, .pad = 1});
        Variables results = grad({y}, {x, W1, W2}, {given[3]});
        results.push_back(y);
        for (const Variable& result : results) {
          EXPECT_EQ(lies_channels_last(result.array()), last);
        }
        return Variables{constant(results[0].array().sum())};
      };
      CaptureCache cache({.rewrite = false, .replay_lists = true});
      for (int i = 0; i < 5; ++i)
        (void)cache.call(step, {constant(xp::ones({1}, float32, device))});
      EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
      return cache.stats().operations;
    };
    EXPECT_EQ(operations(true), operations(false));
  }
}

TEST(Convolution, ErrorsNameTheOperandsAndTheRule) {
  for (Device device : testing::test_devices()) {
    auto ones = [&](const Shape& shape, Dtype dtype = float32) {
      return Variable(xp::ones(shape, dtype, device));
    };
    Variable x = ones({2, 4, 5, 6}), W = ones({6, 4, 3, 3});
    auto has = [](const std::string& text, std::initializer_list<const char*> words) {
      for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
    };
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_2d(x, ones({6, 4, 9, 3}), {}, {.pad = 1});
        }),
        {"convolution_2d", "(2, 4, 5, 6)", "(6, 4, 9, 3)", "pad (1, 1)", "9 elements of axis 2",
         "7"});
    has(testing::thrown<ShapeError>([&] { (void)F::convolution_2d(x, W, {}, {.groups = 3}); }),
        {"groups 3", "divide", "4"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_2d(x, ones({6, 3, 3, 3}));
        }),
        {"(2, 4, 5, 6)", "(6, 3, 3, 3)", "4 channels"});
    has(testing::thrown<ShapeError>([&] { (void)F::convolution_2d(x, W, ones({4})); }),
        {"b", "(4,)", "(6,)"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_2d(ones({2, 4, 5}), W);
        }),
        {"(2, 4, 5)", "2 of them spatial"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_nd(ones({2, 4}), ones({2, 4}));
        }),
        {"convolution_nd", "(2, 4)"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_2d(x, W, {}, {.stride = {1, 1, 1}});
        }),
        {"stride (1, 1, 1)", "2 axes"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::convolution_2d(x, ones({6, 4, 0, 3}));
        }),
        {"extent of 0"});
    EXPECT_THROW((void)F::convolution_2d(x, W, {}, {.stride = 0}), ValueError);
    EXPECT_THROW((void)F::convolution_2d(x, W, {}, {.pad = -1}), ValueError);
    EXPECT_THROW((void)F::convolution_2d(x, W, {}, {.dilate = 0}), ValueError);
    EXPECT_THROW((void)F::convolution_2d(x, W, {}, {.groups = 0}), ValueError);
    has(testing::thrown<DtypeError>([&] {
          (void)F::convolution_2d(x, ones({6, 4, 3, 3}, float64));
        }),
        {"float32", "float64", "one floating dtype"});
    EXPECT_THROW((void)F::convolution_2d(ones({2, 4, 5, 6}, int32), ones({6, 4, 3, 3}, int32)),
                 DtypeError);
    has(testing::thrown<ShapeError>([&] { (void)F::deconvolution_2d(x, W); }),
        {"deconvolution_2d", "first axis", "4 channels"});
    Variable D = ones({4, 3, 3, 3});
    has(testing::thrown<ShapeError>([&] { (void)F::deconvolution_2d(x, D, ones({4})); }), {"(3,)"});
    has(testing::thrown<ShapeError>([&] {
          (void)F::deconvolution_2d(x, D, {}, {.stride = 2, .outsize = {11, 15}});
        }),
        {"outsize of 15 of axis 3", "between 12 and 14"});
    EXPECT_THROW((void)F::deconvolution_2d(x, D, {}, {.outsize = {7}}), ShapeError);
    EXPECT_THROW((void)F::deconvolution_2d(x, D, {}, {.pad = 4}), ShapeError);
    EXPECT_THROW((void)F::depthwise_convolution_2d(x, ones({2, 3, 3, 3})), ShapeError);
    EXPECT_THROW((void)F::local_convolution_2d(x, ones({2, 3, 3, 3, 3, 3})), ShapeError);
    EXPECT_THROW((void)F::local_convolution_2d(x, ones({2, 3, 4, 4, 3, 3}, float64)), DtypeError);
  }
}

TEST(Convolution, MoreThanThreeSpatialAxes) {
  for (Device device : testing::test_devices()) {
    Array x = xp::ones({1, 2, 3, 3, 3, 3}, float32, device),
          W = xp::ones({2, 2, 2, 2, 2, 2}, float32, device);
    if (device.is_cuda()) {
      EXPECT_THROW((void)F::convolution_nd(x, W), NotImplementedError);
      continue;
    }
    Array y = F::convolution_nd(x, W).array();
    EXPECT_EQ(y.shape(), Shape({1, 2, 2, 2, 2, 2}));
    EXPECT_EQ(y.min().item<float>(), 32);
    EXPECT_EQ(y.max().item<float>(), 32);
  }
}

}  // namespace
}  // namespace rensa
