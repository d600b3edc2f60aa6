// Triggers: when an extension is called, and when a training run is over.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "rensa/links/visitor.h"

namespace rensa::training {

class Trainer;

/// A function of the trainer, asked once per iteration. A value: each copy counts for itself. One
/// that counts is a class with an operator()(Trainer&), and shows what lasts in members(Visitor&).
class Trigger {
 public:
  /// No trigger: the extension's own.
  Trigger();
  /// {20, "epoch"} or {100, "iteration"}: fires whenever a multiple of `period` has been reached.
  /// Throws ValueError for a period that is not positive and for another unit.
  template <class T>
  requires std::is_arithmetic_v<T> Trigger(T period, std::string unit)
      : Trigger(interval(static_cast<double>(period), unit)) {}
  template <class F>
  requires(std::predicate<F&, Trainer&> && !std::same_as<std::remove_cvref_t<F>, Trigger>)
      Trigger(F function)
      : body_(std::make_unique<Function<F>>(std::move(function))) {}
  Trigger(const Trigger& other);
  Trigger& operator=(const Trigger& other);
  Trigger(Trigger&&) noexcept;
  Trigger& operator=(Trigger&&) noexcept;
  ~Trigger();

  explicit operator bool() const { return body_ != nullptr; }
  bool operator()(Trainer& trainer);
  void members(Visitor& v);
  /// Of an interval; 0 and empty for any other trigger.
  double period() const { return period_; }
  const std::string& unit() const { return unit_; }  // "epoch" or "iteration"

 private:
  struct Body {
    virtual ~Body() = default;
    virtual bool fires(Trainer& trainer) = 0;
    virtual void members(Visitor& v) = 0;
    virtual std::unique_ptr<Body> clone() const = 0;
  };
  template <class F> struct Function final : Body {
    explicit Function(F f) : function(std::move(f)) {}
    bool fires(Trainer& trainer) override { return function(trainer); }
    void members(Visitor& v) override {
      if constexpr (HasMembers<F>) function.members(v);
    }
    std::unique_ptr<Body> clone() const override { return std::make_unique<Function>(function); }
    F function;
  };

  static Trigger interval(double period, const std::string& unit);
  std::unique_ptr<Body> body_;
  double period_ = 0;
  std::string unit_;
};

}  // namespace rensa::training
