// Means of evaluations over the ranks of a group.
#include "rensa/training/extensions/multi_node_evaluator.h"

#include <utility>

#include "rensa/array/agreement.h"
#include "rensa/array/creation.h"
#include "rensa/links/reporter.h"

namespace rensa::extensions {

MultiNodeEvaluator::MultiNodeEvaluator(Evaluator evaluator, Communicator communicator)
    : evaluator_(std::move(evaluator)), communicator_(std::move(communicator)) {}

std::map<std::string, double> MultiNodeEvaluator::evaluate() {
  evaluator_.name = name;
  std::map<std::string, double> own = evaluator_.evaluate();
  std::string keys;
  std::vector<double> values;
  for (const auto& [key, value] : own) keys += key + '\n', values.push_back(value);
  check_agreement(communicator_, "MultiNodeEvaluator", keys,
                  "all ranks have to report the same keys");
  Array means = communicator_.allreduce(xp::array(values, cpu()), ReduceOp::mean);
  std::vector<double> mean = means.to_vector<double>();
  std::size_t at = 0;
  for (auto& [key, value] : own) value = mean[at++];
  return own;
}

void MultiNodeEvaluator::operator()(training::Trainer&) {
  for (const auto& [key, mean] : evaluate()) report({{key, mean}});
}

}  // namespace rensa::extensions
