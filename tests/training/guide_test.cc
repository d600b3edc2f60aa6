// What docs/guide.md and docs/guide_multi_gpu.md say: training loops written by hand, on one device
// and on two.
#include <gtest/gtest.h>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Chainer's MLP whose sizes are all given, with two functions more.
struct Net : Chain<Net> {
  L::Linear l1{784, 100}, l2{100, 100}, l3{100, 10};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

struct Digits {
  explicit Digits(std::int64_t train = 6000, std::int64_t test = 500)
      : sets(datasets::get_synthetic_digits(train, test)) {}
  datasets::TrainTest sets;
  Array x_train = (*sets.train.columns())[0], t_train = (*sets.train.columns())[1];
  Array x_test = (*sets.test.columns())[0], t_test = (*sets.test.columns())[1];
};

/// The values of all parameters, or of their gradients.
std::vector<std::vector<float>> values(const Link& model, bool of_gradients = false) {
  std::vector<std::vector<float>> result;
  for (const ParameterRef& p : model.params()) {
    result.push_back((of_gradients ? p.grad() : p.array()).to_vector<float>());
  }
  return result;
}

/// The pairs of devices that there are; the last has two GPUs where there are two.
std::vector<std::pair<Device, Device>> pairs() {
  std::vector<std::pair<Device, Device>> result{{cpu(), cpu()}};
  if (num_gpus() > 0) result.push_back({gpu(0), cpu()});
  if (num_gpus() > 1) result.push_back({gpu(0), gpu(1)});
  return result;
}

// The loop of 2015: the sizes given, the four steps of an update written out.
TEST(Guide, TheWrittenOutLoopLearns) {
  Digits digits;
  for (Device device : testing::test_devices()) {
    xp::random::seed(0);
    Net model;
    model.to(device);
    optimizers::Adam optimizer;
    optimizer.setup(model);
    auto forward = [&](const Array& x, const Array& t) {
      Variable y = model(x);
      return std::pair(F::softmax_cross_entropy(y, t), F::accuracy(y, t));
    };

    std::int64_t batchsize = 100, datasize = digits.x_train.shape(0);
    for (int epoch = 0; epoch < 6; ++epoch) {
      Array indexes = xp::random::permutation(datasize, cpu());
      for (std::int64_t i = 0; i < datasize; i += batchsize) {
        Array batch = indexes[Slice(i, i + batchsize)];
        Array x = digits.x_train[batch].to(device), t = digits.t_train[batch].to(device);

        optimizer.zero_grads();
        auto [loss, accuracy] = forward(x, t);
        loss.backward();
        optimizer.update();
      }
    }
    UsingConfig not_training(&Config::train, false);
    auto [loss, accuracy] = forward(digits.x_test.to(device), digits.t_test.to(device));
    EXPECT_GT(accuracy.item<float>(), 0.97f) << device;
  }
}

TEST(Guide, UpdateOfALossIsTheFourStepsWrittenOut) {
  Digits digits(300, 1);
  for (Device device : testing::test_devices()) {
    auto short_form = L::Classifier(Net());
    auto written_out = short_form.copy(CopyMode::copy);
    optimizers::MomentumSGD of_short, of_written_out;
    short_form.to(device), written_out.to(device);
    of_short.setup(short_form);
    of_written_out.setup(written_out);
    for (int i = 0; i < 3; ++i) {
      Slice rows(100 * i, 100 * (i + 1));
      Variable x = digits.x_train[rows].to(device), t = digits.t_train[rows].to(device);

      Variable loss = of_short.update(short_form, x, t);

      Variable same = written_out(x, t);
      written_out.cleargrads();
      same.backward();
      of_written_out.update();

      EXPECT_EQ(loss.item<float>(), same.item<float>());
      EXPECT_EQ(values(short_form), values(written_out)) << device;
      EXPECT_EQ(values(short_form, true), values(written_out, true)) << device;
    }
  }
}

TEST(Guide, ZeroGradsClears) {
  Net model;
  optimizers::SGD optimizer;
  EXPECT_THROW(optimizer.zero_grads(), ValueError);  // of no model
  optimizer.setup(model);
  F::sum(model(xp::ones({1, 784}))).backward();
  for (const ParameterRef& p : model.params()) EXPECT_TRUE(p.grad().defined());
  optimizer.zero_grads();
  for (const ParameterRef& p : model.params()) EXPECT_FALSE(p.grad().defined());
}

// Each of two copies gets half of a batch; the sum of their gradients is twice that of the batch.
TEST(Guide, TwoCopiesByHandLearnAsOneModelDoes) {
  Digits digits(400, 1);
  for (auto [device_0, device_1] : pairs()) {
    auto model = L::Classifier(Net());
    model.to(device_0);
    auto model_0 = model.copy(CopyMode::copy), model_1 = model.copy(CopyMode::copy);
    model_1.to(device_1);
    optimizers::SGD of_one(0.02), optimizer(0.01);  // roundings stay small over the steps
    of_one.setup(model);
    optimizer.setup(model_0);
    for (const ParameterRef& p : model_0.params()) EXPECT_TRUE(p.update_rule());
    for (const ParameterRef& p : model_1.params()) EXPECT_THROW((void)p.update_rule(), ValueError);

    for (int i = 0; i < 12; ++i) {
      std::int64_t start = 100 * (i % 4);
      Array x = digits.x_train[Slice(start, start + 100)];
      Array t = digits.t_train[Slice(start, start + 100)];
      float of_whole = of_one.update(model, x.to(device_0), t.to(device_0)).item<float>();

      Variable loss_0 = model_0(x[Slice(50)].to(device_0), t[Slice(50)].to(device_0));
      Variable loss_1 = model_1(x[Slice(50, none)].to(device_1), t[Slice(50, none)].to(device_1));
      model_0.cleargrads();
      model_1.cleargrads();
      loss_0.backward();
      loss_1.backward();
      model_0.addgrads(model_1);
      auto before = values(model_1);
      optimizer.update();
      EXPECT_EQ(values(model_1), before);  // the update is model_0's alone
      EXPECT_NE(values(model_0), before);
      model_1.copyparams(model_0);
      EXPECT_EQ(values(model_1), values(model_0));

      EXPECT_NEAR((loss_0.item<float>() + loss_1.item<float>()) / 2, of_whole, 1e-4)
          << "step " << i << " on " << device_0 << " and " << device_1;
    }
  }
}

TEST(Guide, AForgottenCleargradsDoublesTheGradient) {
  Digits digits(50, 1);
  for (auto [device_0, device_1] : pairs()) {
    Net model_0;
    model_0.to(device_0);
    Net model_1 = model_0.copy(CopyMode::copy);
    model_1.to(device_1);
    auto backward = [&](const Net& model) {
      Device device = model.l1.W.device();
      F::softmax_cross_entropy(model(digits.x_train.to(device)), digits.t_train.to(device))
          .backward();
    };
    backward(model_1);
    Array once = model_1.l3.W.grad().copy();
    backward(model_1);  // without model_1.cleargrads()
    EXPECT_TRUE(xp::allclose(model_1.l3.W.grad(), once * 2));

    backward(model_0);  // the same examples: the share of model_0
    model_0.addgrads(model_1);
    EXPECT_TRUE(xp::allclose(model_0.l3.W.grad(), once.to(device_0) * 3, 1e-4, 1e-6));
    EXPECT_EQ(model_0.l3.W.grad().device(), device_0);
  }
}

// As many copies with the same examples give as many times the gradient.
TEST(Guide, TheSumOfGradientsGrowsWithTheNumberOfModels) {
  Digits digits(20, 1);
  Net model;
  for (int n : {1, 2, 5}) {
    std::vector<Net> copies;
    for (int i = 0; i < n; ++i) copies.push_back(model.copy(CopyMode::copy));
    for (const Net& copy : copies) {
      F::softmax_cross_entropy(copy(digits.x_train), digits.t_train).backward();
    }
    Array single = copies[0].l1.W.grad().copy();
    for (int i = 1; i < n; ++i) copies[0].addgrads(copies[static_cast<std::size_t>(i)]);
    EXPECT_TRUE(xp::allclose(copies[0].l1.W.grad(), single * n, 1e-5, 1e-6));
  }
}

// copy() shares the arrays; to() gives each side its own.
TEST(Guide, ACopyThatMovesIsIndependent) {
  Net model_0;
  Net model_1 = model_0.copy();
  EXPECT_EQ(model_1.l1.W.array().data(), model_0.l1.W.array().data());
  RENSA_NEEDS_GPUS(1);
  for (auto [device_0, device_1] : pairs()) {
    if (device_0 == device_1) continue;
    Net one, two = one.copy();
    one.to(device_0);
    two.to(device_1);
    EXPECT_EQ(values(one), values(two));
    one.l1.W.array().fill(3);
    two.l1.b.array().fill(4);
    EXPECT_FALSE((two.l1.W.array() == 3).any().item<bool>());
    EXPECT_TRUE((one.l1.b.array() == 0).all().item<bool>());
  }
}

}  // namespace
}  // namespace rensa
