// RunMemory: the memory that a recorded run makes and lets go of. It goes back to its allocator
// while the run goes on, so that recording a step takes no more memory than running it; the
// recorded operations keep names for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rensa/device/operation.h"
#include "rensa/device/storage.h"

namespace rensa {

/// Stands for memory that has been given back: as many bytes at an address where no memory is, and
/// no other name. Storages and byte ranges still tell who touches what; nothing may run on it.
class MemoryName final : public Storage {
 public:
  /// For `memory`; `address` from kFirst on.
  MemoryName(const Storage& memory, std::uintptr_t address);
  static constexpr std::uintptr_t kFirst = std::uintptr_t{1} << 60;  // beyond what is addressed
  static bool is_one(const Storage& storage) {
    return reinterpret_cast<std::uintptr_t>(storage.data()) >= kFirst;
  }

 private:
  void destroy() noexcept override { delete this; }
};

/// Moves operands from storages to others of the same size, to the same bytes.
class MoveOperands final : public OperandVisitor {
 public:
  using Moves = std::unordered_map<Storage*, StoragePtr>;  // from, to
  explicit MoveOperands(const Moves& moves) : moves_(moves) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    auto found = moves_.find(operand.storage);
    if (found == moves_.end()) return;
    std::ptrdiff_t offset = operand.view.data - operand.storage->data();
    operand.storage = found->second.get();
    operand.view.data = operand.storage->data() + offset;
  }
  const Moves& moves_;
};

/// The storages that a recorded run has made and not given back, and which operations use them.
class RunMemory {
 public:
  using Operations = std::vector<std::unique_ptr<Operation>>;
  using Handles = std::unordered_map<Storage*, StoragePtr>;

  /// The run has made `storage`, and the list's next operation is the first to use it.
  void add(Storage* storage);
  /// The operation at `place` in the list uses `storage`, of the run or not.
  void note_use(Storage* storage, std::size_t place);
  /// Of the next few storages (`all`: of all) gives back those that nobody but `handles` holds:
  /// there and in `operations` their names take their places. Returns who they were.
  std::vector<Storage*> give_back(Operations& operations, Handles& handles, bool all = false);
  /// Takes all storages out of `handles`.
  void let_go(Handles& handles);

 private:
  struct Piece {
    Storage* storage;
    std::vector<std::size_t> users;  // places in the list
  };
  std::vector<Piece> take_unheld(std::size_t most);
  StoragePtr name_for(const Storage& storage);

  std::vector<Piece> pieces_;
  std::unordered_map<Storage*, std::size_t> piece_of_;
  std::size_t next_ = 0;  // of the pieces, to look at
  std::uintptr_t next_address_ = MemoryName::kFirst;
};

/// Gives memory, not written yet, to those of `storages` that are names: `operations` and `handles`
/// have it in their places. Returns who has got which.
MoveOperands::Moves give_memory(const std::unordered_set<Storage*>& storages,
                                RunMemory::Operations& operations, RunMemory::Handles& handles);

}  // namespace rensa
