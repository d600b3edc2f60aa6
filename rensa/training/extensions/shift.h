// Shifts: extensions that change a hyperparameter of an optimizer by how often they were called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct ShiftOptions {
  std::optional<double> init = {};    // left out: what the hyperparameter is when the run begins
  std::optional<double> target = {};  // it goes no further
  /// Whose hyperparameter it is; left out: the updater's, "main".
  std::optional<Optimizer> optimizer = {};
};

/// Sets the hyperparameter `attr` to a function of t, the number of its calls: when the run begins
/// (t = 0, or that of the run that this one goes on from) and in each call. Called after every
/// iteration unless it is given another trigger. Steps that are captured follow. The run throws
/// ValueError where the optimizer has no hyperparameter of that name.
class Shift : public training::Extension {
 public:
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  /// "_t" and "_last_value", as Chainer has them (not all of its shifts have the latter), and what
  /// was found at first.
  void members(Visitor& v) override;

 protected:
  Shift(std::string attr, ShiftOptions options)
      : attr_(std::move(attr)), options_(std::move(options)) {}
  /// The value at `t`; none: it stays as it is. `init` is the options', or what was found.
  virtual std::optional<double> value(std::int64_t t, double init) const = 0;
  /// `value`, or the target where it lies beyond that on the way away from 0 (`grows`) or to it.
  double bounded(double value, bool grows) const;

 private:
  double& attribute(training::Trainer& trainer) const;
  std::string attr_;
  ShiftOptions options_;
  double init() const { return options_.init ? *options_.init : *found_; }
  std::int64_t t_ = 0;
  std::optional<double> found_, last_value_;  // what the hyperparameter was, and was last set to
};

/// init * rate^t. Throws ValueError for a negative rate.
class ExponentialShift final : public Shift {
 public:
  ExponentialShift(std::string attr, double rate, ShiftOptions options = {});
  std::string default_name() const override { return "ExponentialShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double rate_;
};

/// From value_range.first to .second in a straight line, while t goes from time_range.first to
/// .second; constant before and after.
class LinearShift final : public Shift {
 public:
  LinearShift(std::string attr, std::pair<double, double> value_range,
              std::pair<double, double> time_range, std::optional<Optimizer> optimizer = {});
  std::string default_name() const override { return "LinearShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  std::pair<double, double> values_, times_;
};

/// From value_range.first to .second along half a period of a cosine (Loshchilov and Hutter,
/// "SGDR: stochastic gradient descent with warm restarts"), while t goes from time_range.first to
/// .second: slow at both ends, fastest in the middle. Before that it stays as others set it, as a
/// WarmupShift; after that it stays .second. Throws ValueError where time_range does not grow.
class CosineShift final : public Shift {
 public:
  CosineShift(std::string attr, std::pair<double, double> value_range,
              std::pair<double, double> time_range, std::optional<Optimizer> optimizer = {});
  std::string default_name() const override { return "CosineShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  std::pair<double, double> values_, times_;
};

/// init * gamma^floor(t / step). Throws ValueError for a step that is not positive.
class StepShift final : public Shift {
 public:
  StepShift(std::string attr, double gamma, double step, ShiftOptions options = {});
  std::string default_name() const override { return "StepShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double gamma_, step_;
};

/// init * gamma^(the number of `step_value` that t has reached). Throws ValueError where they do
/// not grow.
class MultistepShift final : public Shift {
 public:
  MultistepShift(std::string attr, double gamma, std::vector<std::int64_t> step_value,
                 ShiftOptions options = {});
  std::string default_name() const override { return "MultistepShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double gamma_;
  std::vector<std::int64_t> step_value_;
};

/// From `warmup_start` to `init` in a straight line while t goes from 0 to `warmup_iter`; then it
/// stays as others set it. Throws ValueError where `warmup_iter` is less than 1.
class WarmupShift final : public Shift {
 public:
  WarmupShift(std::string attr, double warmup_start, std::int64_t warmup_iter, double init,
              std::optional<Optimizer> optimizer = {});
  std::string default_name() const override { return "WarmupShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double start_;
  std::int64_t iterations_;
};

/// init * (1 + gamma * t)^-power. Throws ValueError for a negative gamma.
class InverseShift final : public Shift {
 public:
  InverseShift(std::string attr, double gamma, double power, ShiftOptions options = {});
  std::string default_name() const override { return "InverseShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double gamma_, power_;
};

/// init * max(1 - t / max_count, 0)^rate. Throws ValueError for a max_count that is not positive.
class PolynomialShift final : public Shift {
 public:
  PolynomialShift(std::string attr, double rate, double max_count, ShiftOptions options = {});
  std::string default_name() const override { return "PolynomialShift"; }

 private:
  std::optional<double> value(std::int64_t t, double init) const override;
  double rate_, max_count_;
};

}  // namespace rensa::extensions
