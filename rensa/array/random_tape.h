// Random numbers that are drawn again: what generators gave in one scope, given anew in another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rensa/array/random_basics.h"

namespace rensa::xp::random {

/// The positions that generators gave, in their order. In a recorded step they are its numbers: a
/// replay gives its own again.
class Tape {
 public:
  /// What this thread draws in the scope is noted (`record`), or gets what was noted, from the
  /// first on (`repeat`), and generators stay where they are. Scopes nest: what an inner one notes
  /// may come from an outer one's tape.
  class [[nodiscard]] Scope;
  /// What this thread draws in the scope is noted nowhere, nor given anew: what is made once only,
  /// such as parameters at their first use.
  class [[nodiscard]] Aside;

 private:
  struct Entry {
    const void* generator;
    std::int64_t count;
    GeneratorPosition position;
  };
  std::vector<Entry> entries_;
};

class [[nodiscard]] Tape::Scope {
 public:
  enum Mode { record, repeat };
  Scope(Tape& tape, Mode mode);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Whether nothing noted is left.
  bool at_end() const { return next_ == tape_.entries_.size(); }

  /// `count` counters of `generator`, for which `advance` asks it. Throws ValueError where others
  /// were noted.
  static GeneratorPosition take(const void* generator, std::int64_t count,
                                const std::function<GeneratorPosition()>& advance);

 private:
  GeneratorPosition position(const void* generator, std::int64_t count,
                             const std::function<GeneratorPosition()>& advance);

  Tape& tape_;
  Mode mode_;
  std::size_t next_ = 0;
  Scope* outer_;
};

class [[nodiscard]] Tape::Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  Scope* outer_;
};

}  // namespace rensa::xp::random
