// Which operands and numbers an update has, and in which order.
#include "rensa/functions/operations/update_parameters/update_parameters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/index.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufunc.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/device/launcher.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// "r3u2" for an operation that reads an array of 3 elements and updates one of 2.
std::string listed(Operation& operation) {
  struct Listing final : OperandVisitor {
    void read(Operand& o) override { text += "r" + std::to_string(o.view.size()); }
    void write(Operand& o) override { text += "w" + std::to_string(o.view.size()); }
    void update(Operand& o) override { text += "u" + std::to_string(o.view.size()); }
    void scalar(HostScalar& s) override { text += "s" + std::to_string(s.integer); }
    std::string text;
  } listing;
  operation.visit(listing);
  return listing.text;
}

TEST(UpdateParameters, ListsWhatItsRuleChanges) {
  std::vector<Array> arrays;
  for (std::int64_t n = 0; n < 7; ++n) arrays.push_back(xp::zeros({n}));
  operations::UpdateParameters update("sgd", UpdateRuleId::momentum_sgd);
  update.set_size = 1;
  update.hyperparameters.emplace_back().integer = 9;
  update.targets.resize(2);
  for (operations::UpdateTarget& target : update.targets) {
    target.parameter = arrays[1].operand();
    target.gradient = arrays[2].operand();
    target.states = {arrays[3].operand()};
  }
  EXPECT_EQ(listed(update), "r2u1w3r2u1w3s9");
  update.targets.resize(1);
  update.targets[0].narrow = arrays[6].operand();
  EXPECT_EQ(listed(update), "r2u1w3u6s9");
  update.rule = UpdateRuleId::gradient_noise;  // of which the states are read
  update.enabled = arrays[4].operand(), update.targets[0].numbers = arrays[5].operand();
  EXPECT_EQ(listed(update), "r4r5r1r3w2s9");
  update.rule = UpdateRuleId::number;
  EXPECT_EQ(listed(update), "r4r5r2w1w3u6s9");
}

// Gradients and copies of 16 bits beside parameters of float32, few and many, aligned or not.
TEST(UpdateParameters, OfHalvesBesideFloat32) {
  constexpr double kRate = 0.375;
  auto numbers = [](std::int64_t n) {
    return (xp::arange(static_cast<double>(n)) * 0.618 % 2.0 - 1.0).astype(float32);
  };
  for (Device device : testing::test_devices()) {
    for (Dtype half : {float16, bfloat16}) {
      for (std::int64_t offset : {0, 1}) {
        std::vector<Array> parameters, gradients, narrow, old, old_gradients;
        operations::UpdateParameters step("sgd", UpdateRuleId::sgd);
        operations::UpdateParameters hook("decay", UpdateRuleId::weight_decay);
        for (std::int64_t size : {1200003, 77, 4}) {
          Array all = numbers(size + offset), part = all[Slice(offset, none)];
          old.push_back(part), old_gradients.push_back((part * 0.7f).astype(half));
          parameters.push_back(part.copy().to(device));
          gradients.push_back(xp::zeros({size + offset}, half, device)[Slice(offset, none)]);
          gradients.back().assign(old_gradients.back().to(device));
          narrow.push_back(xp::zeros({size + offset}, half, device)[Slice(offset, none)]);
        }
        for (operations::UpdateParameters* op : {&hook, &step}) {
          op->set_size = 1;
          op->hyperparameters.emplace_back().real = kRate;
          for (std::size_t i = 0; i < parameters.size(); ++i) {
            operations::UpdateTarget& target = op->targets.emplace_back();
            target.parameter = parameters[i].operand();
            target.gradient = gradients[i].operand();
            if (op == &step) target.narrow = narrow[i].operand();
          }
          launch(*op);
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          Array g = (old_gradients[i].astype(float32) + old[i] * kRate).astype(half);
          Array p = old[i] - g.astype(float32) * kRate;
          EXPECT_TRUE(xp::array_equal(gradients[i].to(cpu()), g)) << device.str() << offset << i;
          EXPECT_TRUE(xp::array_equal(parameters[i].to(cpu()), p)) << device.str() << offset << i;
          EXPECT_TRUE(xp::array_equal(narrow[i].to(cpu()), p.astype(half))) << offset << i;
        }
      }
    }
  }
}

TEST(UpdateRules, RowsSayTheirStatesAndNumbers) {
  const UpdateRuleRow& row = row_of(UpdateRuleId::smorms3);
  ASSERT_EQ(row.states.size(), 3u);
  EXPECT_EQ(row.states[0].name, "mem");
  EXPECT_EQ(row.states[0].initial, 1);
  EXPECT_EQ(row.states[2].name, "g2");
  EXPECT_EQ(row.states[2].initial, 0);
  EXPECT_EQ(row.hyperparameters, (std::vector<std::string>{"lr", "eps"}));
  EXPECT_EQ(row_of(UpdateRuleId::sgd).states.size(), 0u);
}

}  // namespace
}  // namespace rensa
