// UpdateRule: what an optimizer keeps for one parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

class OptimizerState;

/// Belongs to one optimizer; state arrays are named by the optimizer ("m", "v") and made on the
/// parameter's device at the first update.
class UpdateRule {
 public:
  explicit UpdateRule(std::weak_ptr<OptimizerState> optimizer) : owner(std::move(optimizer)) {}
  std::weak_ptr<OptimizerState> owner;
  std::int64_t t = 0;         // updates of this parameter so far
  std::vector<Array> states;  // in the order of the optimizer's state names
};

}  // namespace rensa
