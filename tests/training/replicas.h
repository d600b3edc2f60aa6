// What tests of replicas begin with.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/data.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/training/models.h"

namespace rensa::testing {

/// The names and places of replicas.
using Devices = std::vector<std::pair<std::string, Device>>;

inline const Devices kThreeCpus{{"main", cpu()}, {"second", cpu()}, {"third", cpu()}};

/// Over so many examples of a line, in their order.
inline iterators::SerialIterator iterator_of(std::int64_t batch_size, std::int64_t n = 20) {
  return iterators::SerialIterator(line_data(n), batch_size, {.shuffle = false});
}

/// What a user may set of an optimizer, in the course of training.
inline void set_in_between(const Optimizer& optimizer, int iteration) {
  if (iteration == 4) optimizer.add_hook(optimizer_hooks::WeightDecay(0.1));
  if (iteration == 7) {
    for (const ParameterRef& p : optimizer.target().params()) {
      p.update_rule()->set_hyperparam("alpha", 0.05);
    }
  }
}

/// As many as no machine of tests has GPUs.
inline Devices eight_cpus() {
  Devices devices{{"main", cpu()}};
  while (devices.size() < 8) devices.emplace_back(fmt::format("{}", devices.size()), cpu());
  return devices;
}

}  // namespace rensa::testing
