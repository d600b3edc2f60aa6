// Which operands and numbers an update has, and in which order.
#include "rensa/functions/operations/update_parameters/update_parameters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/update_rule_ids.h"

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
