// The interval trigger.
#include "rensa/training/trigger.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/training/trainer.h"

namespace rensa::training {

Trigger Trigger::interval(double period, const std::string& unit) {
  if (!(period > 0)) throw ValueError(fmt::format("Trigger: a period of {} {}s", period, unit));
  if (unit != "epoch" && unit != "iteration") {
    throw ValueError(
        fmt::format("Trigger: the unit is \"epoch\" or \"iteration\", not \"{}\"", unit));
  }
  Trigger trigger([period, epochs = unit == "epoch", reached = 0.0](Trainer& trainer) mutable {
    const Updater& updater = trainer.updater();
    double now = std::floor(
        (epochs ? updater.epoch_detail() : static_cast<double>(updater.iteration())) / period);
    return std::exchange(reached, now) != now;
  });
  trigger.period_ = period;
  trigger.unit_ = unit;
  return trigger;
}

}  // namespace rensa::training
