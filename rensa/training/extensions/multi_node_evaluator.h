// MultiNodeEvaluator: a validation set shared out over the ranks of a group.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/training/extensions/evaluator.h"

namespace rensa::extensions {

/// Each rank evaluates its own part; all of them report the means over the ranks, so that what
/// decides by them (a trigger, a snapshot of the best) decides alike. Parts have to be of the same
/// length to count alike (datasets::scatter_dataset). Run by all ranks at the same time. Throws
/// ValueError on all of them where they report different keys.
class MultiNodeEvaluator final : public training::Extension {
 public:
  MultiNodeEvaluator(Evaluator evaluator, Communicator communicator);

  /// The means by key.
  std::map<std::string, double> evaluate();
  void operator()(training::Trainer& trainer) override;
  const Evaluator& evaluator() const { return evaluator_; }
  /// Those of the evaluator.
  void members(Visitor& v) override { evaluator_.members(v); }
  std::string default_name() const override { return evaluator_.default_name(); }
  training::Trigger default_trigger() const override { return evaluator_.default_trigger(); }
  int default_priority() const override { return evaluator_.default_priority(); }

 private:
  Evaluator evaluator_;
  Communicator communicator_;
};

}  // namespace rensa::extensions
