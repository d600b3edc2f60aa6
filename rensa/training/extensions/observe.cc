// Values that are added to what is observed.
#include "rensa/training/extensions/observe.h"

#include <cmath>

#include "rensa/core/error.h"

namespace rensa::extensions {

void ObserveValue::operator()(training::Trainer& trainer) {
  trainer.observation()[key_] = xp::array(value_(trainer), cpu());
}

namespace {

/// Of Adam and its kin the step size of Kingma and Ba's section 2, what Chainer calls their lr.
double learning_rate(const Optimizer& optimizer) {
  try {
    return optimizer.attribute("lr");
  } catch (const ValueError&) {
    auto t = static_cast<double>(optimizer.t());
    return optimizer.attribute("alpha") * std::sqrt(1 - std::pow(optimizer.attribute("beta2"), t)) /
           (1 - std::pow(optimizer.attribute("beta1"), t));
  }
}

}  // namespace

ObserveValue observe_lr(const std::string& optimizer_name, std::string key) {
  return {std::move(key), [optimizer_name](training::Trainer& trainer) {
            return learning_rate(trainer.updater().get_optimizer(optimizer_name));
          }};
}

MicroAverage::MicroAverage(std::string numerator_key, std::string denominator_key,
                           std::string result_key, training::Trigger trigger)
    : numerator_key_(std::move(numerator_key)),
      denominator_key_(std::move(denominator_key)),
      result_key_(std::move(result_key)),
      trigger_(std::move(trigger)) {
  if (!trigger_) throw ValueError("MicroAverage: give a trigger, {1, \"epoch\"}");
}

void MicroAverage::operator()(training::Trainer& trainer) {
  const Observation& observation = trainer.observation();
  auto above = observation.find(numerator_key_), below = observation.find(denominator_key_);
  if (above == observation.end() || below == observation.end()) return;
  auto add = [](Array& sum, const Array& value) {
    Array wide = value.astype(float64);
    sum = sum.defined() ? sum.to(wide.device()) + wide : wide;
  };
  add(numerator_, above->second), add(denominator_, below->second);
  if (!trigger_(trainer)) return;
  double result = numerator_.item<double>() / denominator_.item<double>();
  numerator_ = {}, denominator_ = {};
  trainer.observation()[result_key_] = xp::array(result, cpu());
}

void MicroAverage::members(Visitor& v) {
  auto sum = [&](const char* name, Array& member) {
    v.computed(
        name, [&member] { return member.defined() ? member : xp::zeros({}, float64, cpu()); },
        [&member](const Array& read) {
          if (read.size() != 1) {
            throw ShapeError("MicroAverage: a sum has one element, not " + read.view().describe());
          }
          return [&member, value = read.astype(float64).reshape({})] { member = value; };
        });
  };
  sum("_numerator", numerator_), sum("_denominator", denominator_);
  v.optional("_trigger", trigger_);
}

ObserveValue::ObserveValue(std::string key, std::function<double(training::Trainer&)> value)
    : key_(std::move(key)), value_(std::move(value)) {}

ObserveValue observe_value(std::string key, std::function<double(training::Trainer&)> value) {
  return {std::move(key), std::move(value)};
}

}  // namespace rensa::extensions
