// Steps that tempt a recording to freeze something: what one is, and the links that they train.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"

namespace rensa::tempting {

inline constexpr int kCalls = 14;

using Step = std::function<Variable(const Variable&)>;

/// A step, what its caller does before each call, and what can be seen after it.
struct Program {
  Step step;
  std::function<void(int)> before = [](int) {};
  std::function<std::vector<Array>()> seen = [] { return std::vector<Array>(); };
};

struct Row {
  const char* name;
  /// A new program; what its functions share they hold.
  std::function<Program(Device)> make;
  /// Part of stats().last_fallback; null where the step is replayed.
  const char* reason;
};
inline std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

template <class T> std::shared_ptr<T> shared(T value) {
  return std::make_shared<T>(std::move(value));
}

inline Array zeros(Device device) { return xp::zeros({3}, float32, device); }

/// A recurrent link: h = tanh(W x + U h), c = c / 2 + h.
struct Recurrent : Chain<Recurrent> {
  L::Linear W{3, 3, {.initialW = 0.25}}, U{3, 3, {.nobias = true, .initialW = 0.5}};
  State h, c;
  void members(Visitor& v) override { v("W", W), v("U", U), v("h", h), v("c", c); }
  Variable operator()(const Variable& x) {
    Variable row = F::reshape(x, {1, 3});
    Variable y = F::tanh(h.defined() ? W(row) + U(h) : W(row));
    c = c.defined() ? c.value() * 0.5f + y : y;
    h = y;
    return F::reshape(c, {3});
  }
};

/// Moving averages as a batch normalization keeps them.
struct Averages : Chain<Averages> {
  Parameter scale{Initializer(2), {3}};
  Persistent mean, square;
  Counter calls;
  void members(Visitor& v) override {
    v("scale", scale), v("mean", mean), v("square", square), v("calls", calls);
  }
  Variable operator()(const Variable& x) {
    if (!mean.defined()) {
      mean = xp::zeros_like(x.array());
      square = xp::ones_like(x.array());
    }
    mean = mean * 0.9f + x.array() * 0.1f;
    square *= 0.9f;
    square += xp::square(x.array()) * 0.1f;
    ++calls;
    return (x - constant(mean)) * scale;
  }
};

inline std::vector<Array> counted(const Counter& counter) {
  return {xp::array(static_cast<float>(counter.value()), cpu())};
}

/// A parameter of one's own with a loss: gradients and what they leave behind.
struct Weighted : Chain<Weighted> {
  Parameter w{Initializer(0.5), {3}};
  State h;
  void members(Visitor& v) override { v("w", w), v("h", h); }
  Variable operator()(const Variable& x) { return F::sum(F::square(w * x)); }
};

}  // namespace rensa::tempting
