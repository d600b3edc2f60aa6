// The step's own memory as blocks, their layout, and the operands moved into it.
#include "rensa/graph/plan.h"

#include <algorithm>
#include <utility>

#include "rensa/graph/layout.h"
#include "rensa/graph/precedence.h"

namespace rensa {

namespace {

constexpr std::int64_t kAlignment = 512;
constexpr std::int64_t kNoMatter = std::int64_t{64} << 20;  // bytes that nobody misses
constexpr std::size_t kFew = 4096;  // operations, and blocks, that may be compared with each other

std::int64_t aligned(std::int64_t bytes) {
  return std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

/// Whether a plan may take so much of a list that has `most_in_use` at once: up to some hundred
/// megabytes twice of that, beyond them little more.
bool is_within_reason(std::int64_t bytes, std::int64_t most_in_use) {
  constexpr std::int64_t kLittle = std::int64_t{256} << 20;
  return bytes <= kNoMatter || bytes <= most_in_use + most_in_use / 16 ||
         (bytes <= kLittle && bytes <= 2 * most_in_use);
}

/// The memory that a plan places: the step's own storages in the order of their first use, and
/// every operation's scratch.
class Blocks {
 public:
  explicit Blocks(const std::vector<std::vector<Access>>& uses) {
    std::unordered_set<Storage*> stays = carried_over(uses);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (const Access& use : uses[i]) {
        if (is_own(*use.storage) && stays.count(use.storage) == 0) note_use(i, use.storage);
      }
    }
  }

  void add_scratch(std::size_t operation, std::size_t bytes) {
    scratch_.emplace_back(operation, blocks_.size());
    blocks_.push_back({aligned(static_cast<std::int64_t>(bytes)), {static_cast<int>(operation)}});
  }
  /// Gives each its offset; returns how many bytes that takes. `most` is most_in_use().
  std::int64_t place(const Precedence& precedence, std::int64_t most) {
    std::int64_t bytes = place_blocks(blocks_, precedence);
    bool few = precedence.direct().size() <= kFew && blocks_.size() <= kFew;
    if (!few || is_within_reason(bytes, most)) return bytes;
    std::vector<Block> largest_first = blocks_;
    std::int64_t others = place_largest_first(largest_first, precedence);
    if (others < bytes) blocks_ = std::move(largest_first);
    return std::min(bytes, others);
  }
  /// The most that is in use at once where the operations run one by one.
  std::int64_t most_in_use(std::size_t num_operations) const {
    std::vector<std::int64_t> change(num_operations + 1, 0);
    for (const Block& block : blocks_) {
      change[static_cast<std::size_t>(block.users.front())] += block.bytes;
      change[static_cast<std::size_t>(block.users.back()) + 1] -= block.bytes;
    }
    std::int64_t in_use = 0, most = 0;
    for (std::int64_t bytes : change) most = std::max(most, in_use += bytes);
    return most;
  }

  /// Calls `f(storage, offset)` for each storage.
  template <class F> void for_each_storage(F&& f) const {
    for (auto [storage, block] : block_of_) f(storage, blocks_[block].offset);
  }
  /// Calls `f(operation, offset)` for each scratch.
  template <class F> void for_each_scratch(F&& f) const {
    for (auto [operation, block] : scratch_) f(operation, blocks_[block].offset);
  }

 private:
  void note_use(std::size_t i, Storage* storage) {
    auto [found, is_new] = block_of_.try_emplace(storage, blocks_.size());
    if (is_new) blocks_.push_back({aligned(storage->nbytes()), {}});
    std::vector<int>& users = blocks_[found->second].users;
    if (users.empty() || users.back() != static_cast<int>(i)) users.push_back(static_cast<int>(i));
  }

  std::vector<Block> blocks_;
  std::unordered_map<Storage*, std::size_t> block_of_;
  std::vector<std::pair<std::size_t, std::size_t>> scratch_;  // operation, block
};

/// Places the blocks and returns how many bytes that takes. What runs side by side shares no
/// memory: where that is much more than the list needs, less of it does.
std::int64_t place_within_reason(Blocks& blocks, Precedence& precedence) {
  std::int64_t most = blocks.most_in_use(precedence.direct().size());
  std::int64_t bytes = blocks.place(precedence, most);
  for (std::size_t width : {8, 2, 1}) {
    if (is_within_reason(bytes, most)) break;
    precedence = precedence.narrowed(width);
    bytes = blocks.place(precedence, most);
  }
  return bytes;
}

/// Moves operands from their recorded storage to a place in one that stands for the arena.
class Retarget final : public OperandVisitor {
 public:
  Retarget(const std::unordered_map<Storage*, std::int64_t>& places, Storage* stand_in)
      : places_(places), stand_in_(stand_in) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    auto found = places_.find(operand.storage);
    if (found == places_.end()) return;
    std::int64_t inside = operand.view.data - operand.storage->data();
    operand.view.data = reinterpret_cast<char*>(found->second + inside);  // an offset for now
    operand.storage = stand_in_;
  }
  const std::unordered_map<Storage*, std::int64_t>& places_;
  Storage* stand_in_;
};

/// And from there to the arena.
class PutInto final : public OperandVisitor {
 public:
  PutInto(Storage* stand_in, Storage* arena) : stand_in_(stand_in), arena_(arena) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    if (operand.storage != stand_in_) return;
    operand.view.data = arena_->data() + reinterpret_cast<std::intptr_t>(operand.view.data);
    operand.storage = arena_;
  }
  Storage *stand_in_, *arena_;
};

/// Lets go of the storages that have moved, and of those that only operations touched which were
/// rewritten.
void release_storages(Recording& recording, const std::vector<std::vector<Access>>& uses,
                      const std::unordered_map<Storage*, std::int64_t>& moved) {
  std::unordered_set<Storage*> touched;
  for (const std::vector<Access>& of_one : uses) {
    for (const Access& use : of_one) touched.insert(use.storage);
  }
  std::erase_if(recording.storages, [&](const auto& held) {
    bool unused = held.first->use_count() == 1 && touched.count(held.first) == 0;
    return unused || moved.count(held.first) != 0;
  });
}

std::vector<std::vector<Access>> all_accesses(const Recording& recording) {
  std::vector<std::vector<Access>> uses;
  uses.reserve(recording.operations.size());
  for (const auto& operation : recording.operations) uses.push_back(accesses(*operation));
  return uses;
}

}  // namespace

Plan make_plan(Recording& recording, bool branches) {
  recording.give_memory(carried_over(all_accesses(recording)));
  std::size_t n = recording.operations.size();
  std::vector<std::vector<Access>> uses = all_accesses(recording);
  Precedence precedence(uses, branches);
  Blocks blocks(uses);
  Plan plan;
  plan.workspace_bytes.resize(n, 0);
  plan.workspaces.resize(n, nullptr);
  if (recording.device().is_cuda()) {
    for (std::size_t i = 0; i < n; ++i) {
      plan.workspace_bytes[i] = recording.operations[i]->workspace_bytes();
      if (plan.workspace_bytes[i] != 0) blocks.add_scratch(i, plan.workspace_bytes[i]);
    }
  }
  std::int64_t bytes = std::max(place_within_reason(blocks, precedence), kAlignment);
  std::unordered_map<Storage*, std::int64_t> places;
  blocks.for_each_storage([&](Storage* storage, std::int64_t offset) { places[storage] = offset; });
  // What the run has held goes before the arena comes: there is no time when both are needed.
  StoragePtr stand_in = allocate(1, recording.device());
  Retarget retarget(places, stand_in.get());
  for (const auto& operation : recording.operations) operation->visit(retarget);
  release_storages(recording, uses, places);
  plan.arena = allocate(bytes, recording.device());
  PutInto put_into(stand_in.get(), plan.arena.get());
  for (const auto& operation : recording.operations) operation->visit(put_into);
  blocks.for_each_scratch([&](std::size_t i, std::int64_t offset) {
    plan.workspaces[i] = plan.arena->data() + offset;
  });
  plan.dependencies = precedence.direct();
  plan.lanes = precedence.lanes();
  return plan;
}

}  // namespace rensa
