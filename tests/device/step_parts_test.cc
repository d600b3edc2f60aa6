// The parts of steps on several GPUs, run in many orders as the GPUs might.
#include "rensa/device/step_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "rensa/device/kind.h"

namespace rensa::cuda {
namespace {

/// Work on the memory of some devices.
struct Work final : KindOf<Work> {
  Work() : KindOf("work") {}
  std::vector<Operand> operands;
  template <class V> void fields(V& v) {
    for (Operand& operand : operands) v.write(operand);
  }
  bool is_between_devices() const override { return operands.size() > 1; }
  void run_cpu() override {}
  void run_cuda(const LaunchContext&) override {}
};

struct Step {
  std::vector<Device> devices;
  StoragePtr memory = allocate(4, cpu());  // nobody looks at it
  std::vector<std::unique_ptr<Work>> work;
  std::vector<StepNode> nodes;
  std::vector<StepPlace> results;

  /// On `device`, touching the memory of `others` too.
  void add(int device, std::vector<int> dependencies, std::vector<int> others = {}) {
    work.push_back(std::make_unique<Work>());
    others.push_back(device);
    for (int touched : others) {
      Operand& operand = work.back()->operands.emplace_back();
      operand.view.device = gpu(touched);
      operand.storage = memory.get();
    }
    nodes.push_back({work.back().get(), gpu(device), std::move(dependencies), 0, nullptr, 0});
  }
  /// On the first device.
  void add_one(std::vector<int> dependencies, bool urgent) {
    add(0, std::move(dependencies));
    nodes.back().urgent = urgent;
  }
  std::vector<StepPart> parts() const { return step_parts(devices, nodes, results); }
};

Step random_step(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  Step step;
  std::size_t num_devices = 1 + seed % 4;
  for (std::size_t d = 0; d < num_devices; ++d) step.devices.push_back(gpu(static_cast<int>(d)));
  for (int i = 0; i < 60; ++i) {
    std::set<int> before;
    for (int k = below(4); k > 0 && i > 0; --k) before.insert(std::max(0, i - 1 - below(8)));
    int device = below(num_devices), other = below(num_devices);
    bool between = other != device && below(3) == 0;
    step.add(device, {before.rbegin(), before.rend()},
             between ? std::vector<int>{other} : std::vector<int>());
    step.nodes.back().urgent = below(2) == 0;
  }
  for (int r = 0; r < 3; ++r) {
    StepPlace result{gpu(below(num_devices)), nullptr, 4, {}};
    for (int k = below(3); k >= 0; --k) result.writers.push_back(below(60));
    step.results.push_back(result);
  }
  return step;
}

/// Runs parts, each on a GPU that takes one action after the other, in any order that heeds what
/// these follow.
class Course {
 public:
  Course(const Step& step, const std::vector<StepPart>& parts, unsigned seed)
      : step_(step),
        parts_(parts),
        random_(seed),
        told_(parts.size() * parts.size(), 0),
        begun_(parts.size(), false) {
    for (const StepPart& part : parts) gpus_.push_back(order_of(part));
  }

  /// Whether all came to their ends.
  bool to_the_end() {
    for (bool moved = true; moved;) {
      moved = false;
      std::vector<std::size_t> turn(gpus_.size());
      for (std::size_t p = 0; p < turn.size(); ++p) turn[p] = p;
      std::ranges::shuffle(turn, random_);
      for (std::size_t p : turn) {
        if (!begun_[p] && random_() % 4 != 0) {
          moved = true;
          continue;  // its stream has other work before
        }
        begun_[p] = true;
        while (!gpus_[p].empty() && act(p, *gpus_[p].front())) {
          gpus_[p].erase(gpus_[p].begin());
          moved = true;
          if (gpus_[p].empty()) end(p);
          if (random_() % 3 == 0) break;
        }
      }
    }
    return std::ranges::all_of(gpus_, [](const auto& left) { return left.empty(); });
  }
  const std::set<std::size_t>& nodes_run() const { return done_; }

 private:
  using Order = std::vector<const StepAction*>;

  Order order_of(const StepPart& part) {
    std::vector<std::set<std::size_t>> before;
    for (std::size_t i = 0; i < part.actions.size(); ++i) {
      before.emplace_back(part.actions[i].after.begin(), part.actions[i].after.end());
      for (std::size_t j : before.back()) EXPECT_LT(j, i);
    }
    Order order;
    std::set<std::size_t> taken;
    while (order.size() < part.actions.size()) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < part.actions.size(); ++i) {
        if (!taken.contains(i) && std::ranges::includes(taken, before[i])) ready.push_back(i);
      }
      std::size_t next = ready[random_() % ready.size()];
      taken.insert(next);
      order.push_back(&part.actions[next]);
    }
    return order;
  }

  bool touches(std::size_t node, std::size_t part) const {
    return std::ranges::any_of(step_.work[node]->operands, [&](const Operand& operand) {
      return operand.view.device == step_.devices[part];
    });
  }

  /// Nothing touches the memory of a GPU whose part has ended.
  void end(std::size_t p) {
    for (std::size_t i = 0; i < step_.nodes.size(); ++i) {
      EXPECT_TRUE(!touches(i, p) || done_.contains(i)) << p << " without " << i;
    }
  }

  int& told(std::size_t teller, std::size_t part) { return told_[teller * parts_.size() + part]; }

  /// False where it has to wait.
  bool act(std::size_t p, const StepAction& action) {
    switch (action.kind) {
      case StepAction::Kind::run:
        for (int j : step_.nodes[action.node].dependencies) {
          EXPECT_TRUE(done_.contains(static_cast<std::size_t>(j))) << action.node << " after " << j;
        }
        for (std::size_t q = 0; q < parts_.size(); ++q) {
          EXPECT_TRUE(!touches(action.node, q) || begun_[q]) << action.node << " before " << q;
        }
        EXPECT_EQ(step_.nodes[action.node].device, step_.devices[p]);
        EXPECT_TRUE(done_.insert(action.node).second);
        return true;
      case StepAction::Kind::tell:
        for (std::size_t part : action.told) {
          EXPECT_LT(told(p, part), action.marks[0].number);
          told(p, part) = action.marks[0].number;
        }
        return true;
      case StepAction::Kind::await:
        return std::ranges::all_of(
            action.marks, [&](const StepMark& mark) { return told(mark.part, p) >= mark.number; });
    }
    return false;
  }

  const Step& step_;
  const std::vector<StepPart>& parts_;
  std::mt19937 random_;
  std::vector<Order> gpus_;  // what each has still to do
  std::vector<int> told_;
  std::vector<bool> begun_;
  std::set<std::size_t> done_;
};

TEST(StepParts, ComeToTheirEndsInAnyOrder) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Step step = random_step(seed);
    std::vector<StepPart> parts = step.parts();
    for (unsigned turn = 0; turn < 20; ++turn) {
      Course run(step, parts, 100 * seed + turn);
      EXPECT_TRUE(run.to_the_end()) << turn;
      EXPECT_EQ(run.nodes_run().size(), step.nodes.size());
    }
  }
}

std::size_t count(const StepPart& part, StepAction::Kind kind) {
  return static_cast<std::size_t>(
      std::ranges::count(part.actions, kind, [](const StepAction& action) { return action.kind; }));
}

TEST(StepParts, OnOneGpuTellNothing) {
  Step step;
  step.devices = {gpu(0)};
  step.add(0, {});
  step.add(0, {0});
  step.add(0, {1});
  step.results.push_back({gpu(0), nullptr, 4, {2}});
  std::vector<StepPart> parts = step.parts();
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].actions.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(parts[0].actions[i].node, i);
  EXPECT_EQ(parts[0].results, (std::vector<std::vector<std::size_t>>{{2}}));
}

TEST(StepParts, OnOneGpuWhatIsUrgentComesFirst) {
  Step step;
  step.devices = {gpu(0)};
  step.add_one({}, false);      // 0
  step.add_one({}, true);       // 1
  step.add_one({1}, false);     // 2
  step.add_one({0, 1}, true);   // 3: behind one that is not urgent
  step.add_one({1}, true);      // 4
  step.add_one({4, 4}, true);   // 5
  step.add_one({2, 5}, false);  // 6
  step.results.push_back({gpu(0), nullptr, 4, {3}});
  std::vector<StepPart> parts = step.parts();
  std::vector<std::size_t> order;
  for (const StepAction& action : parts[0].actions) order.push_back(action.node);
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 4, 5, 0, 3, 2, 6}));
  EXPECT_EQ(parts[0].actions[4].after, (std::vector<std::size_t>{3, 0}));
  EXPECT_EQ(parts[0].results, (std::vector<std::vector<std::size_t>>{{4}}));
}

std::vector<StepAction::Kind> crossings(const StepPart& part) {
  std::vector<StepAction::Kind> kinds;
  for (const StepAction& action : part.actions) {
    if (action.kind != StepAction::Kind::run) kinds.push_back(action.kind);
  }
  return kinds;
}

// Two replicas, recorded one after the other, whose gradients are summed behind both.
TEST(StepParts, SumsWaitForTheirGradientsAlone) {
  Step step;
  step.devices = {gpu(0), gpu(1)};
  for (int d = 0; d < 2; ++d) {
    step.add(d, {});           // 0, 4: forward
    step.add(d, {d * 4});      // 1, 5: a gradient
    step.add(d, {d * 4 + 1});  // 2, 6: backward goes on
    step.add(d, {d * 4 + 2});  // 3, 7: another gradient
  }
  for (int d = 0; d < 2; ++d) step.add(d, {5, 1}, {1 - d});
  for (int d = 0; d < 2; ++d) step.add(d, {7, 3}, {1 - d});
  using enum StepAction::Kind;
  std::vector<StepPart> parts = step.parts();
  for (std::size_t p = 0; p < 2; ++p) {
    const StepPart& part = parts[p];
    // The start, both gradients, which do not wait for a sum, and the sums, which the end awaits.
    EXPECT_EQ(crossings(part),
              (std::vector<StepAction::Kind>{tell, tell, tell, await, tell, await, tell, await}));
    const StepAction& first_sum = *std::ranges::find_if(
        part.actions, [](const StepAction& a) { return a.kind == run && a.node >= 8; });
    std::size_t awaited = first_sum.after.back();
    ASSERT_EQ(part.actions[awaited].kind, await);
    std::vector<std::size_t> nodes;  // that are done before the GPU waits
    for (std::size_t before : part.actions[awaited].after) {
      const StepAction& action = part.actions[before];
      if (action.kind == run) nodes.push_back(action.node);
      else EXPECT_LE(action.marks[0].number, part.actions[awaited].marks[0].number);
    }
    EXPECT_EQ(nodes, (std::vector<std::size_t>{4 * p + 1}));
  }
}

/// A step of one GPU whose nodes take room.
struct StepWithRooms : Step {
  std::vector<StepRoom> rooms;
  std::vector<int> asked;  // by node, how often for its room

  StepWithRooms() { devices = {gpu(0)}; }
  void add(std::vector<int> dependencies, bool urgent, double block, double all = 1) {
    add_one(std::move(dependencies), urgent);
    rooms.push_back({block, all});
  }
  /// The nodes that are early.
  std::vector<std::size_t> early() {
    std::vector<StepPart> of_gpus = parts();
    const std::vector<StepAction>& actions = of_gpus[0].actions;
    asked.assign(rooms.size(), 0);
    std::vector<bool> are = early_actions(of_gpus[0], nodes, [&](const StepNode& node) {
      auto i = static_cast<std::size_t>(&node - nodes.data());
      ++asked[i];
      return rooms[i];
    });
    EXPECT_EQ(are.size(), rooms.size());
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < are.size(); ++i) {
      if (are[i]) found.push_back(actions[i].node);
    }
    std::ranges::sort(found);
    return found;
  }
};

TEST(EarlyActions, UrgentOnesAndSmallOnesBesideThem) {
  StepWithRooms step;
  step.add({}, true, 1.0);       // 0
  step.add({0}, true, 0.75);     // 1
  step.add({0}, false, 0.5);     // 2: beside 1
  step.add({0}, false, 0.51);    // 3: too large
  step.add({1, 2}, false, 0.1);  // 4: behind two
  step.add({1}, true, 0.76);     // 5
  step.add({1}, false, 0.1);     // 6: beside 5, which needs all of a multiprocessor
  step.add({2}, false, 0.1);     // 7: behind one that is not urgent
  step.add({5}, false, 0.1);     // 8: behind 5, with nothing urgent beside
  step.add({}, false, 0.1);      // 9: at the front
  step.add({0, 1}, true, 0.1);   // 10
  step.add({8}, true, 0.1);      // 11
  step.nodes[8].captured_once = true;
  EXPECT_EQ(step.early(), (std::vector<std::size_t>{0, 1, 2, 5, 10, 11}));
  EXPECT_EQ(step.asked[8], 0);
  EXPECT_EQ(*std::ranges::max_element(step.asked), 1);
  step.nodes[8].captured_once = false;
  EXPECT_EQ(step.early(), (std::vector<std::size_t>{0, 1, 2, 5, 8, 10, 11}));
}

TEST(EarlyActions, NotWhatWouldTakeTheRoomThatOthersWaitFor) {
  auto early_last = [](const std::function<void(StepWithRooms&)>& change) {
    StepWithRooms step;
    step.add({}, true, 0.1);    // 0: a loss's gradient
    step.add({0}, true, 0.8);   // 1: a gradient of a layer's input, which fills the GPU
    step.add({0}, false, 0.8);  // 2: of its weights, which waits for room
    step.add({1}, true, 0.8);   // 3: of the weights below
    change(step);
    std::vector<std::size_t> early = step.early();
    EXPECT_LE(*std::ranges::max_element(step.asked), 1);
    EXPECT_TRUE(std::ranges::find(early, 1U) != early.end());
    return std::ranges::find(early, 3U) != early.end();
  };
  EXPECT_FALSE(early_last([](StepWithRooms&) {}));
  EXPECT_FALSE(early_last([](StepWithRooms& step) { step.nodes[2].captured_once = true; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.rooms[1].all = 0.5; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.rooms[1].block = 0.6; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.rooms[2].block = 0.6; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.rooms[3].block = 0.6; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.nodes[2].urgent = true; }));
  // It follows the input's gradient as well, or nothing, so that it may have been done long before.
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.nodes[2].dependencies = {1}; }));
  EXPECT_TRUE(early_last([](StepWithRooms& step) { step.nodes[2].dependencies = {}; }));
}

TEST(EarlyActions, BehindMarksNothingButWhatIsUrgent) {
  Step step;
  step.devices = {gpu(0), gpu(1)};
  step.add(0, {});
  step.add(1, {0});  // awaits node 0's mark
  step.nodes[1].urgent = false;
  std::vector<StepPart> parts = step.parts();
  auto room = [](const StepNode&) { return StepRoom{0.1, 1}; };
  std::vector<bool> early = early_actions(parts[1], step.nodes, room);
  for (std::size_t i = 0; i < early.size(); ++i) {
    EXPECT_EQ(early[i], parts[1].actions[i].kind != StepAction::Kind::run);
  }
}

TEST(StepParts, WhatIsKnownIsNotAwaitedAgain) {
  Step step;
  step.devices = {gpu(0), gpu(1)};
  step.add(0, {});
  step.add(0, {0});
  step.add(1, {1});
  step.add(1, {0});  // does not wait for node 1, whose mark stands behind that of node 0
  step.add(1, {1, 2});
  std::vector<StepPart> parts = step.parts();
  EXPECT_EQ(count(parts[0], StepAction::Kind::tell), 2u);
  EXPECT_EQ(count(parts[1], StepAction::Kind::await), 2u);
  EXPECT_EQ(count(parts[0], StepAction::Kind::await), 0u);
}

}  // namespace
}  // namespace rensa::cuda
