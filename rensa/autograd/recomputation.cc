// What F::forget runs a second time knows that it is the second time.
#include "rensa/autograd/recomputation.h"

#include <utility>

#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

thread_local autograd::Run current = autograd::Run::only;
thread_local autograd::RunScope* innermost = nullptr;

class Entrance final : public FunctionNode {
 public:
  explicit Entrance(const char* name) : FunctionNode(name) {}
  Arrays forward(const Arrays& x) override { return x; }
  Variables backward(const Indexes&, const Variables& gy) override { return {gy[0]}; }
};

}  // namespace

bool in_recomputing() { return current == autograd::Run::again; }

namespace autograd {

// A function within one that runs again does, too.
RunScope::RunScope(Run run, Notes& notes)
    : run_(run), previous_(current), notes_(notes), outer_(std::exchange(innermost, this)) {
  if (current != Run::again) current = run;
}
RunScope::~RunScope() {
  current = previous_;
  innermost = outer_;
}

Array RunScope::note(const std::function<Array()>& make) {
  if (run_ == Run::first) {
    notes_.push_back(outer_ ? outer_->note(make) : make());
    return notes_.back();
  }
  if (next_ < notes_.size()) return notes_[next_++];
  throw ValueError("forget: the function calls other links when it runs again");
}

Array noted(const std::function<Array()>& make) {
  return innermost ? innermost->note(make) : make();
}

Variable entrance(const char* name, const Variable& x) { return apply<Entrance>({x}, name)[0]; }

void check_state_may_be_used() {
  if (current == Run::only) return;
  throw NotImplementedError(
      "forget: the function uses the State of a link, which its second run would not find as the "
      "first one did; give it as an argument and return it (L::StatelessLSTM does)");
}

}  // namespace autograd
}  // namespace rensa
