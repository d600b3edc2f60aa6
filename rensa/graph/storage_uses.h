// Who touches which memory in a recorded list, kept while the list is rewritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <set>
#include <unordered_map>
#include <vector>

#include "rensa/graph/recording.h"

namespace rensa {

/// The accesses of a list of operations, and by storage who they are of. Storages that share bytes
/// (wrappers of somebody else's memory) count as one.
class StorageUses {
 public:
  using Places = std::pmr::set<std::size_t>;  // of operations in the list

  explicit StorageUses(const Recording& recording);

  /// The operation at `i` is now `operation`; null: it has been taken out.
  void replace(std::size_t i, Operation* operation);

  std::size_t size() const { return accesses_.size(); }  // of the list
  const std::vector<Access>& of(std::size_t i) const { return accesses_[i]; }
  const Places& users(const Storage* storage) const { return memory_of(storage).users; }
  const Places& writers(const Storage* storage) const { return memory_of(storage).writers; }
  /// Whether one operation writes the storage and a later one reads it, and nobody else in the list
  /// touches it: users() are these two.
  bool is_handed_over(const Storage* storage) const;
  bool used_after(const Storage* storage, std::size_t i) const;
  /// Whether an operation after `first` and before `last` touches the storage.
  bool used_between(const Storage* storage, std::size_t first, std::size_t last) const;
  /// Whether one of them writes it.
  bool written_between(const Storage* storage, std::size_t first, std::size_t last) const;
  /// The same of operations from `first` on, that one too.
  bool used_from(const Storage* storage, std::size_t first, std::size_t last) const;
  bool written_from(const Storage* storage, std::size_t first, std::size_t last) const;
  /// The operation before `i` that writes the storage last; `i` where none does.
  std::size_t writer_before(const Storage* storage, std::size_t i) const;
  /// The memory that holds something from run to run.
  std::unordered_set<Storage*> carried_over() const { return rensa::carried_over(accesses_); }

  /// False where the operations at `i` and `j` surely have no byte in common. Costs next to
  /// nothing.
  bool may_meet(std::size_t i, std::size_t j) const { return (marks_[i] & marks_[j]) != 0; }
  /// Whether the order of the operations at `i` and `j` matters: one writes bytes that the other
  /// reads or writes.
  bool conflict(std::size_t i, std::size_t j) const;

 private:
  struct Memory {
    explicit Memory(std::pmr::memory_resource* nodes) : users(nodes), writers(nodes) {}
    Places users, writers;
  };

  void number_memory();
  const Memory& memory_of(const Storage* storage) const {
    return memories_[number_of_.at(storage)];
  }
  void enter(std::size_t i);

  std::pmr::monotonic_buffer_resource nodes_;                  // of the sets
  std::unordered_map<const Storage*, std::size_t> number_of_;  // in memories_
  std::vector<Memory> memories_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<std::uint64_t> marks_;  // of each operation: a bit for each memory, modulo 64
};

}  // namespace rensa
