// FailOnNonNumber: ends a run that has gone astray.
#pragma once

#include <string>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// Throws ValueError, which names the first of the model's parameters that holds a NaN or an
/// infinity, with how many there are of each. Called after every iteration unless it is given
/// another trigger. Waits for the device. (Which function made the first NaN, config().debug tells;
/// it lets infinities pass, which masks are made of.)
class FailOnNonNumber final : public training::Extension {
 public:
  void operator()(training::Trainer& trainer) override;
  std::string default_name() const override { return "FailOnNonNumber"; }
};

}  // namespace rensa::extensions
