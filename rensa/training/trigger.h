// Triggers: when an extension is called, and when a training run is over.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace rensa::training {

class Trainer;

/// A function of the trainer, asked once an iteration. A value: each copy counts for itself.
class Trigger {
 public:
  /// No trigger: the extension's own.
  Trigger() = default;
  /// {20, "epoch"} or {100, "iteration"}: fires whenever a multiple of `period` has been reached.
  /// Throws ValueError for a period that is not positive and for another unit.
  template <class T>
  requires std::is_arithmetic_v<T> Trigger(T period, std::string unit)
      : Trigger(interval(static_cast<double>(period), unit)) {}
  template <class F>
  requires(std::predicate<F&, Trainer&> && !std::same_as<std::remove_cvref_t<F>, Trigger>)
      Trigger(F function)
      : fires_(std::move(function)) {}

  explicit operator bool() const { return static_cast<bool>(fires_); }
  bool operator()(Trainer& trainer) { return fires_(trainer); }
  /// Of an interval; 0 and empty for any other trigger.
  double period() const { return period_; }
  const std::string& unit() const { return unit_; }

 private:
  static Trigger interval(double period, const std::string& unit);
  std::function<bool(Trainer&)> fires_;
  double period_ = 0;
  std::string unit_;
};

}  // namespace rensa::training
