// The first 100 steps of an MLP against PyTorch's losses (tools/make_reference_losses.py), from one
// initialization and one batch order, both drawn on the host from a hash of integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr float kReferenceLosses[] = {
#include "tests/answers/reference_losses.inc"
};
constexpr std::int64_t kSamples = 1000, kInputs = 784, kUnits = 100, kClasses = 10, kBatch = 100;
constexpr double kRate = 0.05;

/// 32 hashed bits of `i` (the finalizer of MurmurHash3); each `stream` is a sequence of its own.
std::uint32_t word(std::uint32_t stream, std::uint32_t i) {
  std::uint32_t h = i + stream * 0x9E3779B9u;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

/// float32 in [-scale, scale), `scale` a power of two.
Array uniform(std::uint32_t stream, const Shape& shape, float scale) {
  std::vector<float> values(static_cast<std::size_t>(shape.total()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        (static_cast<float>(word(stream, static_cast<std::uint32_t>(i)) >> 8) * 0x1p-23f - 1) *
        scale;
  }
  return xp::array(values).reshape(shape);
}

Array labels() {
  std::vector<std::int64_t> t(kSamples);
  for (std::uint32_t i = 0; i < kSamples; ++i) t[i] = word(1, i) % kClasses;
  return xp::array(t);
}

/// Half the label's prototype and half noise.
Array samples(const Array& t) {
  Array prototypes = uniform(2, {kClasses, kInputs}, 1);
  return (xp::take(prototypes, t, 0) + uniform(3, {kSamples, kInputs}, 1)) * 0.5f;
}

/// The rows of a step's batch: each epoch in the order of its hashes.
Array batch(int step) {
  constexpr int kPerEpoch = kSamples / kBatch;
  auto stream = static_cast<std::uint32_t>(100 + step / kPerEpoch);
  std::vector<std::int64_t> order(kSamples);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return word(stream, static_cast<std::uint32_t>(a)) <
           word(stream, static_cast<std::uint32_t>(b));
  });
  auto first = order.begin() + step % kPerEpoch * kBatch;
  return xp::array(std::vector<std::int64_t>(first, first + kBatch));
}

struct Net : Chain<Net> {
  Parameter w1{Initializer(uniform(10, {kUnits, kInputs}, 0x1p-4f))};
  Parameter b1{Initializer(uniform(11, {kUnits}, 0.125f))};
  Parameter w2{Initializer(uniform(12, {kUnits, kUnits}, 0x1p-3f))};
  Parameter b2{Initializer(uniform(13, {kUnits}, 0.125f))};
  Parameter w3{Initializer(uniform(14, {kClasses, kUnits}, 0x1p-3f))};
  Parameter b3{Initializer(uniform(15, {kClasses}, 0.125f))};
  void members(Visitor& v) override {
    v("w1", w1), v("b1", b1), v("w2", w2), v("b2", b2), v("w3", w3), v("b3", b3);
  }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable h = F::relu(F::linear(x, w1, b1));
    h = F::relu(F::linear(h, w2, b2));
    return F::softmax_cross_entropy(F::linear(h, w3, b3), t);
  }
};

void expect_reference_losses(Device device, bool captured) {
  Array t = labels(), x = samples(t).to(device);
  t = t.to(device);
  Net net;
  net.to_device(device);
  optimizers::SGD optimizer(kRate);
  optimizer.setup(net);
  auto step = [&](const Variable& index) {
    return optimizer.update(net, constant(x[index.array()]), constant(t[index.array()]));
  };
  auto captured_step = capture(step);
  for (int i = 0; i < static_cast<int>(std::size(kReferenceLosses)); ++i) {
    Variable index = constant(batch(i).to(device));
    Variable loss = captured ? captured_step(index) : step(index);
    ASSERT_NEAR(loss.item<float>(), kReferenceLosses[i], 1e-4)
        << "step " << i << " on " << device << (captured ? ", captured" : "");
  }
}

TEST(ReferenceLosses, OneHundredSteps) {
  ASSERT_FALSE(config().tf32);
  for (Device device : testing::test_devices()) expect_reference_losses(device, false);
}

TEST(ReferenceLosses, OneHundredCapturedSteps) {
  for (Device device : testing::test_devices()) expect_reference_losses(device, true);
}

}  // namespace
}  // namespace rensa
