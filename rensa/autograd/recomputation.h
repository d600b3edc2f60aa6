// What F::forget runs a second time knows that it is the second time.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa {

/// Whether F::forget runs its function again, for the gradients: what each call changes (running
/// statistics, a vector of a power iteration) has been changed already. Assignments to a Persistent
/// and steps of a Counter do nothing then, nor do reports. Chainer's config.in_recomputing.
bool in_recomputing();

namespace autograd {

/// Which run of a function that forgets this thread is in.
enum class Run { only, first, again };

/// A run, and arrays that the first one gives to the second.
class [[nodiscard]] RunScope {
 public:
  using Notes = std::vector<Array>;  // in the order in which they are noted
  RunScope(Run run, Notes& notes);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  friend Array noted(const std::function<Array()>& make);
  Array note(const std::function<Array()>& make);

  Run run_, previous_;
  Notes& notes_;
  std::size_t next_ = 0;
  RunScope* outer_;
};

/// make(), or, in a second run, what it gave at this place of the first: what a link makes of
/// something that each call changes. Nobody changes the array. Throws ValueError where a second run
/// asks for more.
Array noted(const std::function<Array()>& make);

/// x, of a node of its own, `name`: where gradients that are to be differentiated go from what a
/// backward computes again to the graph around it. grad() with respect to it stops there.
Variable entrance(const char* name, const Variable& x);

/// Throws NotImplementedError where a function that forgets uses a State: its second run would not
/// find what the first one did.
void check_state_may_be_used();

}  // namespace autograd
}  // namespace rensa
