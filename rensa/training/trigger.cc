// The interval trigger.
#include "rensa/training/trigger.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/training/trainer.h"

namespace rensa::training {

namespace {

/// Fires whenever a multiple of the period has been reached since it was last asked.
struct Interval {
  double period;
  bool epochs;
  std::int64_t previous_iteration = 0;
  double previous_epoch_detail = 0;

  bool operator()(Trainer& trainer) {
    const Updater& updater = trainer.updater();
    double before = epochs ? previous_epoch_detail : static_cast<double>(previous_iteration);
    previous_iteration = updater.iteration();
    previous_epoch_detail = updater.epoch_detail();
    double now = epochs ? previous_epoch_detail : static_cast<double>(previous_iteration);
    return std::floor(before / period) != std::floor(now / period);
  }
  void members(Visitor& v) {
    v("previous_iteration", previous_iteration);
    v("previous_epoch_detail", previous_epoch_detail);
  }
};

}  // namespace

bool Trigger::operator()(Trainer& trainer) {
  stay_eager("it asks a trigger");
  return body_->fires(trainer);
}

Trigger Trigger::interval(double period, const std::string& unit) {
  if (!(period > 0)) throw ValueError(fmt::format("Trigger: a period of {} {}s", period, unit));
  if (unit != "epoch" && unit != "iteration") {
    throw ValueError(
        fmt::format("Trigger: the unit is \"epoch\" or \"iteration\", not \"{}\"", unit));
  }
  Trigger trigger(Interval{period, unit == "epoch"});
  trigger.period_ = period;
  trigger.unit_ = unit;
  return trigger;
}

Trigger::Trigger() = default;
Trigger::Trigger(const Trigger& other)
    : body_(other.body_ ? other.body_->clone() : nullptr),
      period_(other.period_),
      unit_(other.unit_) {}
Trigger& Trigger::operator=(const Trigger& other) { return *this = Trigger(other); }
Trigger::Trigger(Trigger&&) noexcept = default;
Trigger& Trigger::operator=(Trigger&&) noexcept = default;
Trigger::~Trigger() = default;

void Trigger::members(Visitor& v) {
  if (body_) body_->members(v);
}

}  // namespace rensa::training
