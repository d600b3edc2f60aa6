// What ranks decide together.
#include "rensa/training/triggers/multi_node_triggers.h"

#include <optional>
#include <utility>

#include "rensa/array/creation.h"

namespace rensa::triggers {

namespace {

/// The mean over those ranks that have a value; none where none has.
ObservedMean::Agreement mean_over(const Communicator& communicator) {
  return [communicator](std::optional<double> own) -> std::optional<double> {
    Array told = xp::array({own.value_or(0), own ? 1.0 : 0.0}, cpu());
    Array sums = communicator.allreduce(told);
    double count = sums[1].item<double>();
    return count > 0 ? std::optional(sums[0].item<double>() / count) : std::nullopt;
  };
}

EarlyStoppingOptions options_of(EarlyStoppingOptions options, const Communicator& communicator) {
  options.verbose = options.verbose && communicator.rank() == 0;
  return options;
}

}  // namespace

MultiNodeEarlyStoppingTrigger::MultiNodeEarlyStoppingTrigger(const Communicator& communicator,
                                                             EarlyStoppingOptions options)
    : EarlyStoppingTrigger(options_of(std::move(options), communicator), mean_over(communicator)) {}

}  // namespace rensa::triggers
