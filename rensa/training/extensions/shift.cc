// What the shifts make of t.
#include "rensa/training/extensions/shift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rensa/core/error.h"

namespace rensa::extensions {

double& Shift::attribute(training::Trainer& trainer) const {
  const Optimizer& optimizer =
      options_.optimizer ? *options_.optimizer : trainer.updater().optimizer();
  return optimizer.attribute(attr_);
}

void Shift::initialize(training::Trainer& trainer) {
  // A trainer's file has the hyperparameters of its optimizer, which other shifts may have set too.
  if (found_ && !options_.optimizer) return;
  double& now = attribute(trainer);
  if (!found_) found_ = now;
  for (std::int64_t t = t_; !last_value_ && t >= 0; --t) last_value_ = value(t, init());
  if (last_value_) now = *last_value_;
}

void Shift::operator()(training::Trainer& trainer) {
  std::optional<double> now = value(++t_, init());
  if (now) attribute(trainer) = *(last_value_ = now);
}

void Shift::members(Visitor& v) {
  v("_t", t_);
  v.optional("_last_value", last_value_);
  v.optional("_init", found_);
  if (v.reading() && v.reads("_current_step")) {  // of Chainer's MultistepShift: t_ tells it too
    v.computed(
        "_current_step", [] { return std::int64_t{0}; }, [](std::int64_t) {});
  }
}

double Shift::bounded(double value, bool grows) const {
  if (!options_.target) return value;
  double share = value / *options_.target;
  return (grows ? share > 1 : share < 1) ? *options_.target : value;
}

ExponentialShift::ExponentialShift(std::string attr, double rate, ShiftOptions options)
    : Shift(std::move(attr), std::move(options)), rate_(rate) {
  if (!(rate >= 0)) throw ValueError(fmt::format("ExponentialShift: a rate of {}", rate));
}

std::optional<double> ExponentialShift::value(std::int64_t t, double init) const {
  return bounded(init * std::pow(rate_, t), rate_ > 1);
}

LinearShift::LinearShift(std::string attr, std::pair<double, double> value_range,
                         std::pair<double, double> time_range, std::optional<Optimizer> optimizer)
    : Shift(std::move(attr), {.optimizer = std::move(optimizer)}),
      values_(value_range),
      times_(time_range) {}

std::optional<double> LinearShift::value(std::int64_t t, double) const {
  auto now = static_cast<double>(t);
  if (now <= times_.first) return values_.first;
  if (now >= times_.second) return values_.second;
  double share = (now - times_.first) / (times_.second - times_.first);
  return values_.first + share * (values_.second - values_.first);
}

CosineShift::CosineShift(std::string attr, std::pair<double, double> value_range,
                         std::pair<double, double> time_range, std::optional<Optimizer> optimizer)
    : Shift(std::move(attr), {.optimizer = std::move(optimizer)}),
      values_(value_range),
      times_(time_range) {
  if (!(time_range.first < time_range.second)) {
    throw ValueError(fmt::format("CosineShift: a time_range from {} to {}; it must grow",
                                 time_range.first, time_range.second));
  }
}

std::optional<double> CosineShift::value(std::int64_t t, double) const {
  auto now = static_cast<double>(t);
  if (now < times_.first) return std::nullopt;
  if (now >= times_.second) return values_.second;
  double share = (now - times_.first) / (times_.second - times_.first);
  double weight = (1 + std::cos(std::numbers::pi * share)) / 2;
  return values_.second + weight * (values_.first - values_.second);
}

StepShift::StepShift(std::string attr, double gamma, double step, ShiftOptions options)
    : Shift(std::move(attr), std::move(options)), gamma_(gamma), step_(step) {
  if (!(step > 0)) throw ValueError(fmt::format("StepShift: a step of {}", step));
}

std::optional<double> StepShift::value(std::int64_t t, double init) const {
  return bounded(init * std::pow(gamma_, std::floor(static_cast<double>(t) / step_)), gamma_ > 1);
}

MultistepShift::MultistepShift(std::string attr, double gamma, std::vector<std::int64_t> step_value,
                               ShiftOptions options)
    : Shift(std::move(attr), std::move(options)),
      gamma_(gamma),
      step_value_(std::move(step_value)) {
  if (!std::ranges::is_sorted(step_value_, std::less_equal<>())) {
    throw ValueError("MultistepShift: step_value must grow");
  }
}

std::optional<double> MultistepShift::value(std::int64_t t, double init) const {
  auto reached = std::ranges::upper_bound(step_value_, t) - step_value_.begin();
  return bounded(init * std::pow(gamma_, reached), gamma_ > 1);
}

WarmupShift::WarmupShift(std::string attr, double warmup_start, std::int64_t warmup_iter,
                         double init, std::optional<Optimizer> optimizer)
    : Shift(std::move(attr), {.init = init, .optimizer = std::move(optimizer)}),
      start_(warmup_start),
      iterations_(warmup_iter) {
  if (warmup_iter < 1) {
    throw ValueError(fmt::format("WarmupShift: a warmup_iter of {}; give 1 or more", warmup_iter));
  }
}

std::optional<double> WarmupShift::value(std::int64_t t, double init) const {
  if (t > iterations_) return std::nullopt;
  auto now = static_cast<double>(t), all = static_cast<double>(iterations_);
  return (now * init + (all - now) * start_) / all;
}

InverseShift::InverseShift(std::string attr, double gamma, double power, ShiftOptions options)
    : Shift(std::move(attr), std::move(options)), gamma_(gamma), power_(power) {
  if (!(gamma >= 0)) throw ValueError(fmt::format("InverseShift: a gamma of {}", gamma));
}

std::optional<double> InverseShift::value(std::int64_t t, double init) const {
  return bounded(init * std::pow(1 + gamma_ * static_cast<double>(t), -power_), power_ < 0);
}

PolynomialShift::PolynomialShift(std::string attr, double rate, double max_count,
                                 ShiftOptions options)
    : Shift(std::move(attr), std::move(options)), rate_(rate), max_count_(max_count) {
  if (!(max_count > 0))
    throw ValueError(fmt::format("PolynomialShift: a max_count of {}", max_count));
}

std::optional<double> PolynomialShift::value(std::int64_t t, double init) const {
  double left = std::max(1 - static_cast<double>(t) / max_count_, 0.0);
  return bounded(init * std::pow(left, rate_), rate_ < 0);
}

}  // namespace rensa::extensions
