// Reported values of all ranks.
#include "rensa/training/extensions/observation_aggregator.h"

#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/manipulation.h"
#include "rensa/links/reporter.h"

namespace rensa::extensions {

ObservationAggregator::ObservationAggregator(Communicator communicator, std::string original_key,
                                             ObservationAggregatorOptions options)
    : communicator_(std::move(communicator)),
      original_key_(std::move(original_key)),
      options_(std::move(options)) {
  if (options_.aggregated_key.empty()) options_.aggregated_key = original_key_;
}

Array ObservationAggregator::pending() const {
  if (values_.empty()) return xp::empty({0}, float64, cpu());
  return xp::stack(values_).to(cpu());
}

void ObservationAggregator::operator()(training::Trainer& trainer) {
  const Observation& observation = trainer.observation();
  if (auto found = observation.find(original_key_); found != observation.end()) {
    values_.push_back(found->second.reshape({}).astype(float64));
  }
  if (!options_.comm_trigger(trainer)) return;
  std::vector<double> all;
  for (const Array& of_rank : communicator_.allgather(pending())) {
    for (double value : of_rank.to_vector<double>()) all.push_back(value);
  }
  values_.clear();
  if (all.empty()) return;
  double result = 0;
  if (options_.aggregator) {
    result = options_.aggregator(all);
  } else {
    for (double value : all) result += value / static_cast<double>(all.size());
  }
  report({{options_.aggregated_key, result}});
}

void ObservationAggregator::members(Visitor& v) {
  v("comm_trigger", options_.comm_trigger);
  v.computed(
      "values", [this] { return pending(); },
      [this](const Array& values) {
        values_.clear();
        for (double value : values.to_vector<double>()) values_.push_back(xp::array(value, cpu()));
      });
}

}  // namespace rensa::extensions
