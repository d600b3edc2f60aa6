// What States and Counters tell a recording.
#include "rensa/autograd/state.h"

#include <utility>

#include "rensa/autograd/graph.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

/// The value as a copy of the link has it.
Variable copied(const State& source) {
  Variable value = source.value();
  if (!value.defined() || autograd::copy_mode() == CopyMode::init) return {};
  bool shared = autograd::copy_mode() == CopyMode::share;
  return constant(shared ? value.array() : value.array().copy('K'));
}

void tell(const std::shared_ptr<StateBody>& body, bool reads) {
  autograd::check_state_may_be_used();
  if (Recorder* recorder = ThreadState::current().recorder) recorder->state(body, reads);
}

}  // namespace

State::State() : body_(std::make_shared<StateBody>()) {}
State::State(const Variable& value) : State() { set(value); }
State::State(const State& other) : State(copied(other)) {}
State& State::operator=(const State& other) {
  if (this != &other) set(copied(other));
  return *this;
}

State& State::operator=(const Variable& value) {
  set(value);
  return *this;
}

State& State::operator=(const Array& value) {
  set(value.defined() ? constant(value) : Variable());
  return *this;
}

void State::reset() { set({}); }

void State::set(Variable value) {
  if (!body_) body_ = std::make_shared<StateBody>();  // it was moved from
  tell(body_, false);
  body_->value = std::move(value);
  body_->in_replays = false;
}

bool State::defined() const {
  if (!body_) return false;
  tell(body_, true);
  return body_->value.defined();
}

Variable State::value() const {
  if (!defined()) return {};
  if (!body_->in_replays || ThreadState::current().recorder) return body_->value;
  return constant(body_->value.array().copy('K'));
}

void State::to(Device device) {
  if (!defined() || body_->value.device() == device) return;
  set(constant(body_->value.array().to(device)));
}

const std::shared_ptr<std::int64_t>& Counter::count() {
  if (!count_) count_ = std::make_shared<std::int64_t>();
  return count_;
}

Counter& Counter::operator=(Counter&& other) noexcept {
  stay_eager("it replaces a Counter by another one");
  count_ = std::move(other.count_);
  return *this;
}

Counter& Counter::operator=(std::int64_t value) {
  host_effect([counter = count(), value] { *counter = value; }, static_cast<double>(value));
  return *this;
}

Counter& Counter::operator+=(std::int64_t step) {
  if (in_recomputing()) return *this;
  host_effect([counter = count(), step] { *counter += step; }, static_cast<double>(step));
  return *this;
}

std::int64_t Counter::value() const {
  stay_eager("it reads a Counter on the host");
  return count_ ? *count_ : 0;
}

}  // namespace rensa
