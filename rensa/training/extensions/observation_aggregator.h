// ObservationAggregator: a reported value of all ranks as one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct ObservationAggregatorOptions {
  std::string aggregated_key = {};  // what the result is reported as; left out: the same key
  /// When the ranks exchange what was reported since the last time. The result stands in that
  /// iteration's observation.
  training::Trigger comm_trigger = {1, "iteration"};
  /// What is made of all ranks' values, by rank and, of each, in the order in which they were
  /// reported; the same function on all ranks. Left out: the mean.
  std::function<double(const std::vector<double>&)> aggregator = {};
};

/// Gathers what models report under `original_key` over all ranks (ChainerMN's). Called by all
/// ranks, in every iteration. Waits for the device where they exchange. Where nobody has reported
/// the key there is no result.
class ObservationAggregator final : public training::Extension {
 public:
  ObservationAggregator(Communicator communicator, std::string original_key,
                        ObservationAggregatorOptions options = {});

  void operator()(training::Trainer& trainer) override;
  void members(Visitor& v) override;
  std::string default_name() const override { return "ObservationAggregator"; }
  int default_priority() const override { return training::kPriorityEditor; }

 private:
  /// What was reported and not exchanged yet, on the CPU.
  Array pending() const;
  Communicator communicator_;
  std::string original_key_;
  ObservationAggregatorOptions options_;
  std::vector<Array> values_;
};

}  // namespace rensa::extensions
