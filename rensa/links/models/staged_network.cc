// Networks of published stages.
#include "rensa/links/models/staged_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/pooling.h"

namespace rensa::links {

namespace {

std::size_t place_of(const std::vector<Stage>& stages, const std::string& name) {
  auto found = std::ranges::find(stages, name, &Stage::name);
  if (found != stages.end()) return static_cast<std::size_t>(found - stages.begin());
  std::vector<std::string> names;
  for (const Stage& stage : stages) names.push_back(stage.name);
  throw ValueError(
      fmt::format("the network has no stage \"{}\" but [{}]", name, fmt::join(names, ", ")));
}

constexpr std::size_t kInput = static_cast<std::size_t>(-1);

/// The stage whose result stage i takes.
std::size_t source_of(const std::vector<Stage>& stages, std::size_t i) {
  if (!stages[i].after.empty()) return place_of(stages, stages[i].after);
  return i == 0 ? kInput : i - 1;
}

}  // namespace

Activations run_stages(const std::vector<Stage>& stages, const Variable& x,
                       const std::vector<std::string>& wanted) {
  std::vector<int> readers(stages.size());  // stages that take the result of one, and the caller
  for (const std::string& name : wanted) {
    for (std::size_t i = place_of(stages, name); i != kInput; i = source_of(stages, i)) {
      if (readers[i]++) break;
    }
  }
  Variables results(stages.size());
  Activations found;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!readers[i]) continue;
    std::size_t source = source_of(stages, i);
    results[i] = stages[i].call(source == kInput ? x : results[source]);
    if (std::ranges::find(wanted, stages[i].name) != wanted.end()) {
      found.emplace(stages[i].name, results[i]);
      --readers[i];
    }
    if (source != kInput && --readers[source] == 0) results[source] = {};
  }
  return found;
}

Variable run_to_scores(const std::vector<Stage>& stages, const Variable& x) {
  const std::string& name = stages[source_of(stages, place_of(stages, "prob"))].name;
  return run_stages(stages, x, {name}).at(name);
}

Variable global_average_pooling_2d(const Variable& x) {
  Variable h = F::average_pooling_2d(x, {x.shape(2), x.shape(3)});
  return F::reshape(h, {x.shape(0), x.shape(1)});
}

}  // namespace rensa::links
