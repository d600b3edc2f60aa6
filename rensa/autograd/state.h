// State and Counter: what a link keeps from one call to the next. A captured step replays them as
// it ran eagerly: nothing in a link or a function speaks of recordings.
#pragma once

#include <cstdint>
#include <memory>

#include "rensa/autograd/variable.h"

namespace rensa {

/// What a State refers to; a recording finds it here, wherever the link has moved.
struct StateBody {
  Variable value;           // undefined when cleared
  bool in_replays = false;  // the array's memory is what replays read and write
};

/// A variable that a step replaces: a recurrent link's h, a moving average, what the last call
/// computed. A member of a link: `v("h", h)` in members() has it moved with the model and cleared
/// by reset_state(); it is not saved (a Persistent is). A value: copies are as the CopyModeScope
/// says, without the graph, and undefined under CopyMode::init.
///
///   Variable operator()(const Variable& x) {
///     Variable y = h.defined() ? W(x) + U(h) : W(x);
///     h = F::tanh(y);
///     return h;
///   }
///
/// Within a step it is the variable that was assigned, graph included. A recorded step leaves the
/// value behind without its graph; where a graph would lead into the call before, the step stays
/// eager (cut it: loss.unchain_backward()). Outside of a step nobody sees a replay write: what is
/// read there after a replay is a copy.
class State {
 public:
  State();
  explicit State(const Variable& value);
  State(const State& other);
  State& operator=(const State& other);
  State(State&&) noexcept = default;
  State& operator=(State&&) noexcept = default;

  /// Replaces the value; an undefined one is what reset() leaves.
  State& operator=(const Variable& value);
  /// Of an array: without a gradient.
  State& operator=(const Array& value);
  void reset();  // back to none

  /// The value; undefined before the first assignment and after reset().
  [[nodiscard]] Variable value() const;
  operator Variable() const { return value(); }
  bool defined() const;
  /// The value's. Throws ValueError where it is undefined.
  Array array() const { return value().array(); }
  Shape shape() const { return value().shape(); }  // of the value
  Dtype dtype() const { return value().dtype(); }
  template <class T> T item() const { return value().item<T>(); }

  /// Moves the value, off its graph.
  void to(Device device);

 private:
  void set(Variable value);
  std::shared_ptr<StateBody> body_;
};

/// A count that steps change: each replay changes it again. A member of a link, saved with it:
/// `v("n", n)`. A value.
class Counter {
 public:
  Counter(std::int64_t count = 0) : count_(std::make_shared<std::int64_t>(count)) {}
  Counter(const Counter& other) : Counter(other.value()) {}
  Counter& operator=(const Counter& other) { return *this = other.value(); }
  Counter(Counter&&) noexcept = default;
  Counter& operator=(Counter&& other) noexcept;

  Counter& operator=(std::int64_t value);
  Counter& operator+=(std::int64_t step);  // counts on, in each replay too
  Counter& operator++() { return *this += 1; }
  /// The count. A step that asks for it on the host stays eager: a replay would not ask again.
  /// Where arithmetic needs it, count in a State.
  std::int64_t value() const;
  operator std::int64_t() const { return value(); }

  /// What files read and write.
  std::int64_t& stored() { return *count(); }

 private:
  /// Made anew where it was moved from.
  const std::shared_ptr<std::int64_t>& count();
  std::shared_ptr<std::int64_t> count_;
};

}  // namespace rensa
