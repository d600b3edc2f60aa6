// EarlySum: what is summed while backward goes on, and what is not.
#include "rensa/training/early_sum.h"

#include <gmock/gmock.h>

#include <functional>

#include "rensa/array/random_basics.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/parallel_updater.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

constexpr std::int64_t kUnits = 6, kPack = kUnits * kUnits * 4;  // bytes: of one matrix

/// Matrices one behind the other; the last may be left out, or used in F::forget as well.
struct Tower : Chain<Tower> {
  L::Linear first{kUnits, kUnits, {.nobias = true}}, second{kUnits, kUnits, {.nobias = true}},
      third{kUnits, kUnits, {.nobias = true}};
  void members(Visitor& v) override { v("first", first), v("second", second), v("third", third); }
  Variable operator()(const Variable& x) const { return third(second(first(x))); }
};

using Loss = std::function<Variable(Tower&, const Variable&)>;
Variable plain(Tower& net, const Variable& x) { return F::sum(net(x)); }
Variable without_third(Tower& net, const Variable& x) { return F::sum(net.second(net.first(x))); }
/// Of the third matrix one part comes with the pass and another with what F::forget runs.
Variable third_twice(Tower& net, const Variable& x) {
  Variable h = F::forget([&](const Variables& in) { return Variables{net.third(in[0])}; }, {x})[0];
  return F::sum(net.third(net.second(net.first(h))));
}

/// Two replicas on the devices, the gradients of each one's own loss, and what was made of them.
struct Replicas {
  Replicas(Device a, Device b) : devices{a, b}, sum(devices, kPack) {
    for (Device device : devices) {
      nets.emplace_back();
      nets.back().to(device);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      Array w = xp::random::random({kUnits, kUnits}, float32, cpu());
      for (Tower& net : nets) net.params()[i].array().assign(w.to(net.params()[i].device()));
    }
  }

  void run(const Loss& first, const Loss& second) {
    sum.plan(nets[0]);
    const Loss* losses[] = {&first, &second};
    for (int member = 0; member < 2; ++member) {
      Tower& net = nets[static_cast<std::size_t>(member)];
      Array x = xp::full({2, kUnits}, 1.0 + member, float32, net.params()[0].device());
      net.cleargrads();
      Variable loss = (*losses[member])(net, constant(x));
      GradientWatchScope scope(sum.watch(member, net));
      std::move(loss).backward();
    }
    for (std::size_t i = 0; i < 3; ++i) summed[i] = sum.is_summed(i);
    sum.close();
    for (int member = 0; member < 2; ++member) {
      taken[member].clear();
      for (std::size_t i = 0; i < 3; ++i) taken[member].push_back(sum.taken(member, i));
      sum.finish(member);
    }
  }
  /// The gradients of one replica without anybody that watches.
  static std::vector<Array> alone(Tower& net, const Loss& loss, int member) {
    Array x = xp::full({2, kUnits}, 1.0 + member, float32, net.params()[0].device());
    net.cleargrads();
    loss(net, constant(x)).backward();
    std::vector<Array> gradients;
    for (const ParameterRef& p : net.params()) gradients.push_back(p.grad());
    return gradients;
  }

  std::vector<Device> devices;
  EarlySum sum;
  std::vector<Tower> nets;
  std::vector<Array> taken[2];
  bool summed[3] = {};
};

void expect_sums(Device a, Device b) {
  Replicas replicas(a, b);
  for (int step = 0; step < 3; ++step) {
    replicas.run(plain, plain);
    std::vector<Array> one = Replicas::alone(replicas.nets[0], plain, 0),
                       other = Replicas::alone(replicas.nets[1], plain, 1);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(replicas.summed[i], i > 0);  // backward ends with the first
      for (const std::vector<Array>& taken : replicas.taken) {
        ASSERT_EQ(taken[i].defined(), i > 0);
        if (i == 0) continue;
        Array wanted = one[i] + other[i].to(one[i].device());
        EXPECT_TRUE(xp::array_equal(taken[i].to(one[i].device()), wanted));
      }
    }
  }
}

TEST(EarlySum, SumsPacksThatAllHave) { expect_sums(cpu(), cpu()); }

TEST(EarlySum, SumsPacksOfGpus) {
  RENSA_NEEDS_GPUS(2);
  expect_sums(gpu(0), gpu(1));
  expect_sums(gpu(1), gpu(0));
}

TEST(EarlySum, LeavesAPackThatOneLacks) {
  Replicas replicas(cpu(), cpu());
  replicas.run(plain, without_third);
  EXPECT_FALSE(replicas.summed[2]);
  EXPECT_TRUE(replicas.summed[1]);
  EXPECT_TRUE(replicas.taken[0][2].defined());
  EXPECT_FALSE(replicas.taken[1][2].defined());
  EXPECT_FALSE(replicas.nets[1].params()[2].grad().defined());
}

TEST(EarlySum, OfWhatComesTwiceTheParameterHasTheRest) {
  Replicas replicas(cpu(), cpu());
  replicas.run(third_twice, third_twice);
  Array total = replicas.taken[0][2];
  for (const Tower& net : replicas.nets) {
    Array rest = net.params()[2].grad();
    ASSERT_TRUE(rest.defined());
    total = total + rest;
  }
  std::vector<Array> one = Replicas::alone(replicas.nets[0], third_twice, 0),
                     other = Replicas::alone(replicas.nets[1], third_twice, 1);
  EXPECT_TRUE(xp::allclose(total, one[2] + other[2]));
  replicas.run(third_twice, third_twice);  // from then on it is left to the end
  EXPECT_FALSE(replicas.taken[0][2].defined());
  EXPECT_TRUE(xp::allclose(replicas.nets[0].params()[2].grad(), one[2]));
  EXPECT_TRUE(xp::allclose(replicas.nets[1].params()[2].grad(), other[2]));
}

TEST(EarlySum, GradientsThatSomebodyKeepsStay) {
  Replicas replicas(cpu(), cpu());
  replicas.run(plain, plain);
  Array kept = replicas.taken[0][2], copy = kept.copy();
  replicas.nets[0].params()[1].array() *= 2;
  replicas.run(plain, plain);
  EXPECT_TRUE(xp::array_equal(kept, copy));
  EXPECT_FALSE(xp::array_equal(replicas.taken[0][2], copy));
}

/// Nets of which parts of the batch are forgotten, and one replica may fail.
struct Trained : Chain<Trained> {
  Tower tower;
  Loss loss = plain;
  std::shared_ptr<std::atomic<bool>> fails = std::make_shared<std::atomic<bool>>(false);
  void members(Visitor& v) override { v("tower", tower); }
  Variable operator()(const Variable& x) {
    if (*fails && x.array()[0].max().item<float>() > 4) throw IndexError("a bad example");
    return loss(tower, x) * 0.01;
  }
};

/// The parameters after some updates of two replicas; one of the updates fails.
std::vector<Array> trained(const Loss& loss, std::int64_t pack_bytes) {
  Trained net;
  net.loss = loss;
  for (const ParameterRef& p : net.params()) {
    p.array().assign(xp::linspace(-0.5, 0.5, p.array().size()).reshape(p.shape()));
  }
  optimizers::MomentumSGD optimizer(0.1);
  optimizer.setup(net);
  Array x = xp::linspace(0, 10, 4 * kUnits).astype(float32).reshape({4, kUnits});
  ParallelUpdater updater(
      iterators::SerialIterator(datasets::TupleDataset(x), 4, {.shuffle = false}), optimizer,
      {.devices = {{"main", cpu()}, {"second", cpu()}}, .pack_bytes = pack_bytes});
  for (int i = 0; i < 6; ++i) {
    *net.fails = i == 3;
    if (i == 3) EXPECT_THROW(updater.update(), IndexError);
    else updater.update();
  }
  std::vector<Array> values;
  for (const ParameterRef& p : net.params()) values.push_back(p.array());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(xp::array_equal(updater.model("second").params()[i].array(), values[i]));
  }
  return values;
}

TEST(EarlySum, UpdatesAreThoseOfLateSums) {
  for (const Loss& loss : {Loss(plain), Loss(third_twice)}) {
    std::vector<Array> early = trained(loss, kPack), late = trained(loss, 1 << 20);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(xp::allclose(early[i], late[i], 1e-5));
  }
}

}  // namespace
}  // namespace rensa::training
