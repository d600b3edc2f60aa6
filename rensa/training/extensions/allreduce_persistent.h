// AllreducePersistent: the running statistics of all ranks as one.
#pragma once

#include <memory>

#include "rensa/array/communicator.h"
#include "rensa/links/link.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// Replaces the floating persistents of a model, such as BatchNormalization's avg_mean and avg_var,
/// by their means over all ranks (ChainerMN's): before an Evaluator runs, every epoch unless
/// triggered otherwise. Called by all ranks at the same time. Models with
/// L::synchronize_batch_normalization have equal statistics without it.
class AllreducePersistent final : public training::Extension {
 public:
  AllreducePersistent(const Link& model, Communicator communicator);
  /// Throws ValueError on all ranks where their persistents differ in paths, shapes or dtypes.
  void operator()(training::Trainer& trainer) override;
  std::string default_name() const override { return "AllreducePersistent"; }
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return training::kPriorityWriter + 1; }

 private:
  std::shared_ptr<LinkAnchor> model_;
  Communicator communicator_;
};

}  // namespace rensa::extensions
