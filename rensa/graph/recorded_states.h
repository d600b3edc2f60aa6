// RecordedStates: the States that a recorded step reads and sets, as inputs and outputs of its
// replays.
#pragma once

#include <memory>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/autograd/state.h"

namespace rensa {

class Outline;

class RecordedStates {
 public:
  /// The step reads or sets `state`, perhaps not for the first time. Gives the memory that stands
  /// for the value which the call before left, nobody else's, where a first read takes one.
  Array add(const std::shared_ptr<StateBody>& state, bool reads);
  /// Whether some State's graph reaches into the call before, where no recording can follow.
  bool leads_back() const { return leads_back_; }
  /// The step is over, but still recorded: what the States are now goes into memory where each
  /// replay leaves it, the same that the next one reads where it has the same looks.
  void settle(const Outline& outline);

  /// Whether the States are such as the step found them: whether one is defined decides what a step
  /// does, and a shape is baked into its operations.
  bool fit() const;
  /// Whether a link that the step worked with is no more.
  bool gone() const;
  /// Puts values that came from elsewhere to where the replay reads them.
  void before_replay() const;
  /// Makes the States refer to what the replay left.
  void after_replay() const;

 private:
  struct Entry {
    std::weak_ptr<StateBody> state;
    bool reads;
    Array before, after;  // undefined where the State is
  };
  std::vector<Entry> entries_;
  bool leads_back_ = false;
};

}  // namespace rensa
