// When the triggers fire.
#include "rensa/training/triggers/triggers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/training/trainer.h"

namespace rensa::triggers {

using training::Trainer;
using training::Trigger;
using training::Updater;

ObservedMean::ObservedMean(std::string owner, std::string key, Trigger interval,
                           Agreement agreement)
    : owner_(std::move(owner)),
      key_(std::move(key)),
      interval_(std::move(interval)),
      agreement_(std::move(agreement)) {
  if (!interval_) throw ValueError(fmt::format("{}: give a trigger, {{1, \"epoch\"}}", owner_));
}

std::optional<double> ObservedMean::operator()(Trainer& trainer) {
  const Observation& observation = trainer.observation();
  if (auto found = observation.find(key_); found != observation.end()) summary_.add({*found});
  if (!interval_(trainer)) return std::nullopt;
  auto means = std::exchange(summary_, {}).compute_mean();
  std::optional<double> mean;
  if (auto found = means.find(key_); found != means.end()) mean = found->second;
  if (agreement_) mean = agreement_(mean);
  if (mean) return mean;
  if (!std::exchange(told_, true)) {
    std::string there;
    for (const auto& [name, value] : observation) there += (there.empty() ? "" : ", ") + name;
    std::fprintf(stderr, "%s: nobody has reported \"%s\" so far; there are: %s\n", owner_.c_str(),
                 key_.c_str(), there.empty() ? "none" : there.c_str());
  }
  return std::nullopt;
}

void ObservedMean::members(Visitor& v) {
  v("interval_trigger", interval_);
  v("summary", summary_);
}

BestValueTrigger::BestValueTrigger(std::string key, Compare compare, Trigger trigger)
    : mean_("a trigger by the best value", std::move(key), std::move(trigger)),
      compare_(std::move(compare)) {}

bool BestValueTrigger::operator()(Trainer& trainer) {
  std::optional<double> value = mean_(trainer);
  if (!value || std::isnan(*value) || (best_ && !compare_(*best_, *value))) return false;
  best_ = value;
  return true;
}

void BestValueTrigger::members(Visitor& v) {
  mean_.members(v);
  v("best_value", best_);
}

namespace {

bool is_more_better(const std::string& mode, const std::string& monitor) {
  if (mode == "max" || mode == "min") return mode == "max";
  if (mode == "auto") return monitor.find("accuracy") != std::string::npos;
  throw ValueError(fmt::format(
      "EarlyStoppingTrigger: the mode is \"max\", \"min\" or \"auto\", not \"{}\"", mode));
}

}  // namespace

EarlyStoppingTrigger::EarlyStoppingTrigger(EarlyStoppingOptions options,
                                           ObservedMean::Agreement agreement)
    : options_(std::move(options)),
      mean_("EarlyStoppingTrigger", options_.monitor, options_.check_trigger, std::move(agreement)),
      more_is_better_(is_more_better(options_.mode, options_.monitor)),
      best_((more_is_better_ ? -1 : 1) * std::numeric_limits<double>::infinity()) {
  if (options_.patience < 1) {
    throw ValueError(
        fmt::format("EarlyStoppingTrigger: a patience of {}; give 1 or more", options_.patience));
  }
  if (!options_.max_trigger) throw ValueError("EarlyStoppingTrigger: give a max_trigger");
}

bool EarlyStoppingTrigger::operator()(Trainer& trainer) {
  std::optional<double> value = mean_(trainer);
  if (options_.max_trigger(trainer)) return true;
  if (!value) return false;
  if (more_is_better_ ? *value > best_ : *value < best_) best_ = *value, count_ = 0;
  else ++count_;
  if (count_ < options_.patience) return false;
  if (options_.verbose) {
    std::printf("Epoch %lld: early stopping\n", static_cast<long long>(trainer.updater().epoch()));
  }
  return true;
}

void EarlyStoppingTrigger::members(Visitor& v) {
  // Chainer's files have nothing of it.
  if (!v.reads("count")) return;
  mean_.members(v);
  v("max_trigger", options_.max_trigger);
  v("best", best_), v("count", count_);
}

ManualScheduleTrigger::ManualScheduleTrigger(std::vector<double> points, std::string unit)
    : points_(std::move(points)), epochs_(unit == "epoch") {
  if (points_.empty()) throw ValueError("ManualScheduleTrigger: no points");
  if (epochs_ || unit == "iteration") return;
  throw ValueError(fmt::format(
      "ManualScheduleTrigger: the unit is \"epoch\" or \"iteration\", not \"{}\"", unit));
}

bool ManualScheduleTrigger::operator()(Trainer& trainer) {
  const Updater& updater = trainer.updater();
  double before = epochs_ ? previous_epoch_detail_ : static_cast<double>(previous_iteration_);
  previous_iteration_ = updater.iteration();
  previous_epoch_detail_ = updater.epoch_detail();
  double now = epochs_ ? previous_epoch_detail_ : static_cast<double>(previous_iteration_);
  finished_ = now >= *std::ranges::max_element(points_);
  return std::ranges::any_of(points_, [&](double p) { return before < p && p <= now; });
}

void ManualScheduleTrigger::members(Visitor& v) {
  v("previous_iteration", previous_iteration_);
  v("previous_epoch_detail", previous_epoch_detail_);
  v.optional("finished", finished_);
}

bool OnceTrigger::operator()(Trainer&) {
  bool resumed = std::exchange(resumed_, false);
  return std::exchange(first_, false) || resumed;
}

TimeTrigger::TimeTrigger(double period) : period_(period), next_time_(period) {
  if (!(period > 0)) throw ValueError(fmt::format("TimeTrigger: a period of {} s", period));
}

bool TimeTrigger::operator()(Trainer& trainer) {
  if (!(next_time_ < trainer.elapsed_time())) return false;
  next_time_ += period_;
  return true;
}

MaxValueTrigger::MaxValueTrigger(std::string key, training::Trigger trigger)
    : BestValueTrigger(std::move(key), std::less<double>(), std::move(trigger)) {}
MinValueTrigger::MinValueTrigger(std::string key, training::Trigger trigger)
    : BestValueTrigger(std::move(key), std::greater<double>(), std::move(trigger)) {}

}  // namespace rensa::triggers
