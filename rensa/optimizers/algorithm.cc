// Updates by a row of the table.
#include "rensa/optimizers/algorithm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rensa/core/error.h"
#include "rensa/optimizers/row_launch.h"

namespace rensa {

double& number_of(const OptimizerAlgorithm& algorithm,
                  const OptimizerAlgorithm::NamedNumbers& numbers, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, value] : numbers) {
    if (known == name) return *value;
    names.push_back(known);
  }
  throw ValueError(fmt::format("{}: no hyperparameter \"{}\"; it has [{}]", algorithm.name(), name,
                               fmt::join(names, ", ")));
}

void RowAlgorithm::update(const UpdateCall& call) {
  RowLaunch launch(name(), rule_, call.parameters.size());
  auto algorithm = std::static_pointer_cast<RowAlgorithm>(shared_from_this());
  for (const UpdatedParameter& p : call.parameters) {
    auto add_set = [&] {
      return launch.add_set([rule = p.rule, algorithm] {  // asked by replays too
        return algorithm->numbers(rule->own_hyperparams(), rule->t);
      });
    };
    operations::UpdateTarget& target =
        launch.add(p.array, p.grad, launch.shared_set(p.rule, add_set));
    target.states.reserve(p.rule->states.size());
    for (const Array& state : p.rule->states) target.states.push_back(state.operand());
    if (p.rule->fp32_param.defined()) {
      target.narrow = p.parameter.array().operand();
    }
  }
  launch.run(call.enabled);
}

std::vector<UpdateState> OptimizerAlgorithm::states() const { return {}; }
std::vector<UpdateState> RowAlgorithm::states() const { return row_of(rule_).states; }

}  // namespace rensa
