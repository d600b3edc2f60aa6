// Where the values of States lie between replays.
#include "rensa/graph/recorded_states.h"

#include <unordered_set>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/device/launcher.h"
#include "rensa/graph/outline.h"

namespace rensa {

namespace {

bool looks_like(const Array& a, const Array& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.device() == b.device() &&
         detail::MemoryOrder(a, 'K').axes() == detail::MemoryOrder(b, 'K').axes();
}

bool is_same(const Array& a, const Array& b) {
  return a.storage() == b.storage() && same_view(a.view(), b.view());
}

void refer_to(StateBody& state, const Array& array) {
  state.value = array.defined() ? constant(array) : Variable();
  state.in_replays = array.defined();
}

}  // namespace

Array RecordedStates::add(const std::shared_ptr<StateBody>& state, bool reads) {
  for (const Entry& known : entries_) {
    if (known.state.lock() == state) return {};
  }
  Entry& entry = entries_.emplace_back(Entry{state, reads, {}, {}});
  if (!reads || !state->value.defined()) return {};
  if (state->value.creator()) {
    leads_back_ = true;
    return {};
  }
  if (!state->in_replays) {
    RecorderScope apart(nullptr);
    refer_to(*state, state->value.array().copy('K'));
  }
  entry.before = state->value.array();
  return entry.before;
}

void RecordedStates::settle(const Outline& outline) {
  // Those of links that lived within the step leave nothing.
  std::erase_if(entries_, [](const Entry& entry) { return entry.state.expired(); });
  std::unordered_set<const Storage*> taken;  // by one State, so that no other one may lie there
  for (const Entry& entry : entries_) {
    if (entry.before.defined()) taken.insert(entry.before.storage().get());
  }
  std::vector<std::pair<Array, Array>> moves;  // to, from
  for (Entry& entry : entries_) {
    auto state = entry.state.lock();
    if (!state || !state->value.defined()) continue;
    Array value = state->value.array();
    if (entry.before.defined() && looks_like(value, entry.before)) {
      entry.after = entry.before;
      if (!is_same(value, entry.before)) {
        // States may change places: all values are read before any is written.
        bool lies_there = taken.count(value.storage().get()) != 0;
        moves.emplace_back(entry.before, lies_there ? value.copy('K') : value);
      }
    } else {
      bool fits = detail::is_dense(value) && outline.made(value.storage().get()) &&
                  taken.count(value.storage().get()) == 0;
      entry.after = fits ? value : value.copy('K');
      taken.insert(entry.after.storage().get());
    }
    refer_to(*state, entry.after);
  }
  for (const auto& [to, from] : moves) to.assign(from);
}

bool RecordedStates::fit() const {
  for (const Entry& entry : entries_) {
    if (!entry.reads) continue;
    auto state = entry.state.lock();
    if (!state || state->value.defined() != entry.before.defined()) return false;
    if (!entry.before.defined()) continue;
    if (state->value.node()->creator || !looks_like(state->value.array(), entry.before))
      return false;
  }
  return true;
}

bool RecordedStates::gone() const {
  for (const Entry& entry : entries_) {
    if (entry.state.expired()) return true;
  }
  return false;
}

void RecordedStates::before_replay() const {
  for (const Entry& entry : entries_) {
    if (!entry.before.defined()) continue;
    auto state = entry.state.lock();
    if (!is_same(state->value.array(), entry.before)) entry.before.assign(state->value.array());
  }
}

void RecordedStates::after_replay() const {
  for (const Entry& entry : entries_) {
    auto state = entry.state.lock();
    bool refers = state->value.defined() && entry.after.defined() && state->in_replays &&
                  is_same(state->value.array(), entry.after);
    if (!refers) refer_to(*state, entry.after);
  }
}

}  // namespace rensa
