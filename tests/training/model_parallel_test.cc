// The guide's model-parallel net: its halves on two devices, against the same net on one.
#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/computational_graph.h"
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

struct MLP : Chain<MLP> {
  L::Linear l1, l2, l3;
  MLP(std::int64_t units, std::int64_t out) : l1(units), l2(units), l3(out) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

/// TOUR's ParallelMLP with the devices as arguments, and of `units` each, which meet as `met`.
struct ParallelMLP : Chain<ParallelMLP> {
  MLP mlp1_gpu0, mlp1_gpu1, mlp2_gpu0, mlp2_gpu1;
  Device first, second;
  ParallelMLP(Device a, Device b, std::int64_t units = 20, std::int64_t met = 24)
      : mlp1_gpu0(units, met),
        mlp1_gpu1(units, met),
        mlp2_gpu0(units, 10),
        mlp2_gpu1(units, 10),
        first(a),
        second(b) {
    place();
  }
  void place() {
    mlp1_gpu0.to_device(first), mlp1_gpu1.to_device(second);
    mlp2_gpu0.to_device(first), mlp2_gpu1.to_device(second);
  }
  void members(Visitor& v) override {
    v("mlp1_gpu0", mlp1_gpu0), v("mlp1_gpu1", mlp1_gpu1);
    v("mlp2_gpu0", mlp2_gpu0), v("mlp2_gpu1", mlp2_gpu1);
  }
  Variable operator()(const Variable& x) const {
    Variable z0 = mlp1_gpu0(x), z1 = mlp1_gpu1(F::copy(x, second));
    Variable h0 = F::relu(z0 + F::copy(z1, first)), h1 = F::relu(z1 + F::copy(z0, second));
    return mlp2_gpu0(h0) + F::copy(mlp2_gpu1(h1), first);
  }
};

/// Losses of the first steps of a net whose halves start from the same numbers whatever the
/// devices.
std::vector<float> losses(Device first, Device second, bool captured = false) {
  auto model = L::Classifier(ParallelMLP(first, second));
  optimizers::SGD optimizer(0.2);
  optimizer.setup(model);
  xp::random::seed(5, cpu());
  auto draw = [&](const Shape& shape, double scale) {
    return xp::random::normal(0, scale, shape, float32, cpu());
  };
  Array probe = xp::zeros({1, 30}, float32, first);
  model.predictor(probe);  // gives the parameters their shapes
  for (const ParameterRef& p : model.params()) {
    p.array().assign(draw(p.shape(), 0.2).to(p.device()));
  }
  std::vector<float> result;
  auto step =
      capture([&](const Variable& x, const Variable& t) { return optimizer.update(model, x, t); },
              {.replay_lists = true});
  for (int i = 0; i < (testing::quick() ? 20 : 60); ++i) {
    Array x = draw({64, 30}, 1).to(first);
    Array t = xp::argmax(x[{Slice(), Slice(10)}], 1);  // something to learn
    Variable loss = captured ? step(constant(x), constant(t))
                             : optimizer.update(model, constant(x), constant(t));
    result.push_back(loss.item<float>());
  }
  if (captured) {
    EXPECT_EQ(step.stats().fallbacks, 0) << step.stats().last_fallback;
    EXPECT_GE(step.stats().replays, 10);
  }
  for (const ParameterRef& p : model.params()) EXPECT_TRUE(p.grad().defined());
  return result;
}

TEST(ModelParallel, OnOneDeviceItLearns) {
  for (Device device : testing::test_devices()) {
    std::vector<float> l = losses(device, device);
    EXPECT_LT(l.back(), l.front()) << device;
  }
}

TEST(ModelParallel, EachPartHasItsPathItsDeviceAndTheSizesItSaw) {
  Device first = cpu(), second = testing::test_devices().back();
  ParallelMLP model(first, second);
  model(xp::ones({2, 30}, float32, first));
  std::vector<std::string> parts;
  for (const NamedParameter& p : model.namedparams()) {
    if (!p.path.ends_with("/W")) continue;
    parts.push_back(p.path + " " + p.parameter.shape().str());
    bool on_first = p.path.find("_gpu0/") != std::string::npos;
    EXPECT_EQ(p.parameter.device(), on_first ? first : second) << p.path;
  }
  EXPECT_EQ(
      parts,
      (std::vector<std::string>{
          "/mlp1_gpu0/l1/W (20, 30)", "/mlp1_gpu0/l2/W (20, 20)", "/mlp1_gpu0/l3/W (24, 20)",
          "/mlp1_gpu1/l1/W (20, 30)", "/mlp1_gpu1/l2/W (20, 20)", "/mlp1_gpu1/l3/W (24, 20)",
          "/mlp2_gpu0/l1/W (20, 24)", "/mlp2_gpu0/l2/W (20, 20)", "/mlp2_gpu0/l3/W (10, 20)",
          "/mlp2_gpu1/l1/W (20, 24)", "/mlp2_gpu1/l2/W (20, 20)", "/mlp2_gpu1/l3/W (10, 20)"}));
}

// After the third and the sixth layer: nowhere else does anything cross from one device to another.
TEST(ModelParallel, FourCopiesInAForward) {
  Device last = num_gpus() > 0 ? gpu(num_gpus() - 1) : cpu();
  Device first = num_gpus() > 1 ? gpu(0) : cpu();
  ParallelMLP model(first, last);
  Variable y = model(xp::ones({2, 30}, float32, first));
  EXPECT_EQ(y.device(), first);
  auto graph = computational_graph::build_computational_graph({y});
  int copies = 0;
  for (const auto& node : graph.nodes) copies += node.is_function && node.name == "copy";
  EXPECT_EQ(copies, 4) << graph.dump();
  for (const auto& [from, to] : graph.edges) {
    const auto &a = graph.nodes[from], &b = graph.nodes[to];
    if (a.is_function) continue;
    for (const auto& [middle, end] : graph.edges) {
      if (middle != to || b.name == "copy") continue;
      EXPECT_EQ(a.device, graph.nodes[end].device) << b.name;
    }
  }
}

TEST(ModelParallel, TwoGpusLearnAsOneDoes) {
  RENSA_NEEDS_GPUS(2);
  std::vector<float> one = losses(gpu(0), gpu(0)), two = losses(gpu(0), gpu(1));
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 1e-4) << "step " << i;
}

TEST(ModelParallel, CapturedStepsAreTheEagerOnes) {
  for (Device first : testing::test_devices()) {
    Device second = num_gpus() > 1 && first.is_cuda() ? gpu(1) : first;
    EXPECT_EQ(losses(first, second, true), losses(first, second)) << first;
    EXPECT_EQ(losses(second, first, true), losses(second, first)) << first;
  }
}

template <class Net> void train_captured(Net net, const Array& x, const Array& t) {
  optimizers::SGD optimizer(0.01);
  optimizer.setup(net);
  auto step = capture(
      [&](const Variable& in, const Variable& of) { return optimizer.update(net, in, of); });
  for (int i = 0; i < 12; ++i) (void)step(constant(x), constant(t));
  EXPECT_GE(step.stats().replays, 5) << step.stats().last_fallback;
}

// What the larger nets have left goes back to the driver while steps of the smaller ones run on
// both GPUs. (This ended with an illegal address where it did so before the streams had got there.)
TEST(ModelParallel, SmallerNetsAreTrainedAfterLargerOnes) {
  RENSA_NEEDS_GPUS(2);
  for (std::int64_t units : {4096, 2048}) {
    const std::int64_t batch = 8192;
    Array x = xp::random::random({batch, 784}, float32, gpu(0));
    Array t = xp::random::randint(0, 10, {batch}, int32, gpu(0));
    auto whole = [&] {
      return L::Classifier(Sequential(MLP(units, units), F::relu, MLP(units, 10)));
    };
    auto alone = whole(), main = whole();
    alone.to(gpu(0));
    train_captured(std::move(alone), x, t);
    train_captured(L::Classifier(ParallelMLP(gpu(0), gpu(1), units / 2, units)), x, t);
    optimizers::SGD optimizer(0.01);
    optimizer.setup(main);
    training::ParallelUpdater updater(
        iterators::SerialIterator(datasets::TupleDataset(x.to(cpu()), t.to(cpu())), batch),
        optimizer,
        {.devices = {{"main", gpu(0)}, {"second", gpu(1)}}, .reduction = "mean", .capture = true});
    for (int i = 0; i < 12; ++i) updater.update();
    EXPECT_GE(updater.capture_stats().replays, 5) << updater.capture_stats().last_fallback;
    for (std::size_t i = 0; i < main.params().size(); ++i) {
      Array other = updater.model("second").params()[i].array();
      EXPECT_TRUE(xp::array_equal(main.params()[i].array(), other.to(gpu(0)))) << i;
    }
  }
}

TEST(ModelParallel, OperandsOnTwoGpusAreRefused) {
  RENSA_NEEDS_GPUS(2);
  Variable a(xp::ones({2}, float32, gpu(0))), b(xp::ones({2}, float32, gpu(1)));
  EXPECT_THROW(a + b, DeviceError);
  EXPECT_EQ((a + F::copy(b, gpu(0))).array().to_vector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace rensa
