// The patterns by which a recorded list becomes a shorter one with the same results, bit for bit. A
// pattern looks at one operation and at those around it by dataflow, and changes the list where it
// finds what it knows. A new one is a function in patterns.cc and a row of its table.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "rensa/graph/recording.h"
#include "rensa/graph/storage_uses.h"

namespace rensa {

/// A recorded list while it is rewritten. Operations keep their places, from which some are taken
/// out.
class RecordedList {
 public:
  using Operations = std::vector<std::unique_ptr<Operation>>;
  explicit RecordedList(Recording& recording) : recording_(recording), uses_(recording) {}

  std::size_t size() const { return recording_.operations.size(); }
  /// The operation at `i` where it is one of that kind; null: it is another one, or taken out.
  template <class Kind> Kind* at(std::size_t i) const {
    return dynamic_cast<Kind*>(recording_.operations[i].get());
  }
  bool is_taken_out(std::size_t i) const { return !recording_.operations[i]; }
  /// Who touches which memory.
  const StorageUses& uses() const { return uses_; }
  /// Whether the memory holds something from run to run.
  bool is_carried_over(Storage* storage);

  void take_out(std::size_t i);
  void replace(std::size_t i, std::unique_ptr<Operation> operation);
  /// The operation at `i` goes in `parts`, which touch together what it touched. No pattern after
  /// this one sees the parts.
  void split(std::size_t i, Operations parts);
  /// The operation at `i` has been given other operands.
  void has_changed(std::size_t i) { uses_.replace(i, recording_.operations[i].get()); }
  /// Takes out the operation at `i`: what it has written to `storage` is what every run needs.
  void keep_constant(std::size_t i, Storage* storage);
  /// Makes the recording's list of what is left.
  void close();

 private:
  Recording& recording_;
  StorageUses uses_;
  std::map<std::size_t, Operations> parts_;                     // but the first, by place
  std::unique_ptr<std::unordered_set<Storage*>> carried_over_;  // made when it is first asked for
};

struct Pattern {
  const char* name;
  /// Changes the list where the operation at `i`, which is not taken out, is the pattern's.
  void (*apply)(RecordedList& list, std::size_t i);
};

/// All of them, in the order in which they are tried; each over the whole list, from its end.
std::span<const Pattern> patterns();

}  // namespace rensa
