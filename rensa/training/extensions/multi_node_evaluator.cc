// Means of evaluations over the ranks of a group.
#include "rensa/training/extensions/multi_node_evaluator.h"

#include <fmt/format.h>

#include <utility>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
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
  std::vector<std::string> all = communicator_.allgather_bytes(keys);
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (all[static_cast<std::size_t>(rank)] == keys) continue;
    throw ValueError(fmt::format("MultiNodeEvaluator: {} reports\n{}but {} reports\n{}",
                                 communicator_.describe(communicator_.rank()), keys,
                                 communicator_.describe(rank),
                                 all[static_cast<std::size_t>(rank)]));
  }
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
