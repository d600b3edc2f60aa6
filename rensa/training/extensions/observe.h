// Extensions that add a value to what is observed.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// Observes what a function of the trainer gives, under `key`, at the end of each epoch unless it
/// is given another trigger.
class ObserveValue final : public training::Extension {
 public:
  ObserveValue(std::string key, std::function<double(training::Trainer&)> value);
  void operator()(training::Trainer& trainer) override;
  std::string default_name() const override { return "_observe_value"; }  // Chainer's
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return training::kPriorityWriter; }

 private:
  std::string key_;
  std::function<double(training::Trainer&)> value_;
};

/// An ObserveValue.
ObserveValue observe_value(std::string key, std::function<double(training::Trainer&)> value);
/// The learning rate of the updater's optimizer of that name: its hyperparameter "lr", or, of Adam
/// and its kin, alpha * sqrt(1 - beta2^t) / (1 - beta1^t) of the last update, as Chainer has it;
/// alpha itself is observed by observe_value.
ObserveValue observe_lr(const std::string& optimizer_name = "main", std::string key = "lr");

/// Observes the sum of what was observed as `numerator_key` by that of `denominator_key`, over each
/// interval of `trigger`, as `result_key`: the mean over samples of batches that differ in size.
/// Adds up on the device; where the trigger fires it waits.
class MicroAverage final : public training::Extension {
 public:
  MicroAverage(std::string numerator_key, std::string denominator_key, std::string result_key,
               training::Trigger trigger = {1, "epoch"});
  void operator()(training::Trainer& trainer) override;
  void members(Visitor& v) override;
  std::string default_name() const override { return "MicroAverage"; }
  int default_priority() const override { return training::kPriorityEditor; }

 private:
  std::string numerator_key_, denominator_key_, result_key_;
  training::Trigger trigger_;
  Array numerator_, denominator_;  // sums in float64; undefined where there is nothing
};

}  // namespace rensa::extensions
