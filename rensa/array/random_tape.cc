// Random numbers that are drawn again.
#include "rensa/array/random_tape.h"

#include <utility>

#include "rensa/core/error.h"

namespace rensa::xp::random {

namespace {

thread_local Tape::Scope* innermost = nullptr;

}  // namespace

Tape::Scope::Scope(Tape& tape, Mode mode)
    : tape_(tape), mode_(mode), outer_(std::exchange(innermost, this)) {}
Tape::Scope::~Scope() { innermost = outer_; }

Tape::Aside::Aside() : outer_(std::exchange(innermost, nullptr)) {}
Tape::Aside::~Aside() { innermost = outer_; }

GeneratorPosition Tape::Scope::take(const void* generator, std::int64_t count,
                                    const std::function<GeneratorPosition()>& advance) {
  return innermost ? innermost->position(generator, count, advance) : advance();
}

GeneratorPosition Tape::Scope::position(const void* generator, std::int64_t count,
                                        const std::function<GeneratorPosition()>& advance) {
  if (mode_ == record) {
    GeneratorPosition given = outer_ ? outer_->position(generator, count, advance) : advance();
    tape_.entries_.push_back({generator, count, given});
    return given;
  }
  if (!at_end()) {
    const Entry& entry = tape_.entries_[next_++];
    if (entry.generator == generator && entry.count == count) return entry.position;
  }
  throw ValueError(
      "random: a function that runs again draws other random numbers than the first time");
}

}  // namespace rensa::xp::random
