// Who is told of gradients while backward still computes others.
#include "rensa/autograd/gradient_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/autograd/backward.h"
#include "rensa/functions/functions.h"

namespace rensa {
namespace {

/// Takes all gradients, and notes what it was shown.
struct Noting final : GradientWatch {
  std::vector<std::string> seen;
  bool takes = true;
  bool take(const std::shared_ptr<VariableBody>& leaf, const Variable& gradient) override {
    seen.push_back(leaf->name + " " + std::to_string(gradient.array().item<int>()));
    return takes;
  }
  void end() override { seen.emplace_back("end"); }
};

TEST(GradientWatch, SeesEachLeafWhenItsLastUserIsDone) {
  auto leaf = [](const char* name, float value) {
    Variable v(xp::full({}, value));
    v.body()->name = name;
    return v;
  };
  Variable a = leaf("a", 2), b = leaf("b", 3), c = leaf("c", 5);
  Noting noting;
  for (bool takes : {true, false}) {
    noting.takes = takes, noting.seen.clear();
    Variable y = F::identity(a * b) * b * c;
    GradientWatchScope scope(&noting);
    y.backward();
    EXPECT_THAT(noting.seen, ::testing::ElementsAre("c 18", "a 45", "b 60", "end"));
    EXPECT_EQ(a.grad_var().defined(), !takes);
  }
  EXPECT_EQ(b.grad().item<float>(), 60);
}

TEST(GradientWatch, LeavesKnowTheirLowestUser) {
  Variable p(xp::ones({2})), q(xp::ones({2})), unused(xp::ones({2}));
  EXPECT_EQ(p.node()->lowest_user, VariableNode::kNoUser);
  Variable y = F::exp(F::exp(p)) * q;
  EXPECT_EQ(p.node()->lowest_user, 0);
  EXPECT_EQ(q.node()->lowest_user, 2);
  (void)F::exp(q);
  EXPECT_EQ(q.node()->lowest_user, 0);
  EXPECT_EQ(y.node()->lowest_user, VariableNode::kNoUser);
  EXPECT_EQ(unused.node()->lowest_user, VariableNode::kNoUser);
}

// Passes that functions make within a pass end with that one.
TEST(GradientWatch, SeesWhatIsForgottenEachTime) {
  Variable a(xp::full({}, 2.f)), b(xp::full({}, 3.f));
  a.body()->name = "a", b.body()->name = "b";
  Noting noting;
  noting.takes = false;
  Variable y = F::forget([&](const Variable& x) { return x * b; }, a) * b;
  GradientWatchScope scope(&noting);
  y.backward();
  EXPECT_THAT(noting.seen, ::testing::ElementsAre("b 6", "b 6", "a 9", "end"));
  EXPECT_EQ(b.grad().item<float>(), 12);
}

}  // namespace
}  // namespace rensa
