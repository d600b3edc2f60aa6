// Dependencies from byte ranges, and a first-fit layout of the step's own memory.
#include "rensa/graph/plan.h"

#include <algorithm>

namespace rensa {

namespace {

constexpr std::int64_t kAlignment = 512;

/// Which operations come before which, directly and at all.
struct Precedence {
  std::vector<std::vector<int>> direct;
  std::vector<std::vector<bool>> ancestor;  // ancestor[i][j]: j is done before i starts
};

Precedence order(const std::vector<std::vector<Access>>& uses, bool branches) {
  std::size_t n = uses.size();
  Precedence result{std::vector<std::vector<int>>(n),
                    std::vector<std::vector<bool>>(n, std::vector<bool>(n, false))};
  for (std::size_t i = 0; i < n; ++i) {
    auto& ancestors = result.ancestor[i];
    for (std::size_t j = i; j-- > 0;) {
      if (ancestors[j] || (branches && !conflict(uses[i], uses[j]))) continue;
      result.direct[i].push_back(static_cast<int>(j));
      ancestors[j] = true;
      for (std::size_t k = 0; k < j; ++k) ancestors[k] = ancestors[k] || result.ancestor[j][k];
    }
  }
  return result;
}

/// A piece of memory to place: who uses it, first of all `users.front()`.
struct Block {
  std::int64_t bytes;
  std::vector<int> users;
  std::int64_t offset = 0;
};

/// Whether every use of `a` comes before every one of `b`, of which several may be the first: they
/// may write parts of it.
bool done_before(const Block& a, const Block& b, const Precedence& order) {
  return std::all_of(b.users.begin(), b.users.end(), [&](int later) {
    const auto& ancestors = order.ancestor[static_cast<std::size_t>(later)];
    return std::all_of(a.users.begin(), a.users.end(),
                       [&](int user) { return ancestors[static_cast<std::size_t>(user)]; });
  });
}

/// Gives every block the lowest offset free of the blocks it must not share with; returns the size.
std::int64_t place(std::vector<Block>& blocks, const Precedence& order) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t j = 0; j < i; ++j) {
      if (!done_before(blocks[j], blocks[i], order) && !done_before(blocks[i], blocks[j], order)) {
        taken.emplace_back(blocks[j].offset, blocks[j].offset + blocks[j].bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + blocks[i].bytes <= begin) break;
      offset = std::max(offset, end);
    }
    blocks[i].offset = offset;
    total = std::max(total, offset + blocks[i].bytes);
  }
  return total;
}

/// Moves operands from their recorded storage to a place in the arena.
class Retarget final : public OperandVisitor {
 public:
  Retarget(const std::unordered_map<Storage*, char*>& places, Storage* arena)
      : places_(places), arena_(arena) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    auto found = places_.find(operand.storage);
    if (found == places_.end()) return;
    operand.view.data = found->second + (operand.view.data - operand.storage->data());
    operand.storage = arena_;
  }
  const std::unordered_map<Storage*, char*>& places_;
  Storage* arena_;
};

}  // namespace

Plan make_plan(Recording& recording, bool branches) {
  std::size_t n = recording.operations.size();
  std::vector<std::vector<Access>> uses;
  for (const auto& operation : recording.operations) uses.push_back(accesses(*operation));
  Precedence ordered = order(uses, branches);

  // The step's own storages, in the order of their first use. What is carried over stays.
  std::unordered_set<Storage*> stays = carried_over(uses), touched;
  std::vector<Storage*> own;
  std::unordered_map<Storage*, std::size_t> block_of;
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n; ++i) {
    for (const Access& use : uses[i]) {
      touched.insert(use.storage);
      if (!is_own(*use.storage) || stays.count(use.storage) != 0) continue;
      auto [block, is_new] = block_of.try_emplace(use.storage, blocks.size());
      if (is_new) {
        std::int64_t bytes = (use.storage->nbytes() + kAlignment - 1) / kAlignment * kAlignment;
        blocks.push_back({std::max(bytes, kAlignment), {}});
        own.push_back(use.storage);
      }
      blocks[block->second].users.push_back(static_cast<int>(i));
    }
  }
  Plan plan;
  plan.workspace_bytes.resize(n, 0);
  plan.workspaces.resize(n, nullptr);
  std::vector<std::size_t> workspace_block(n, 0);
  if (recording.device().is_cuda()) {
    for (std::size_t i = 0; i < n; ++i) {
      plan.workspace_bytes[i] = recording.operations[i]->workspace_bytes();
      if (plan.workspace_bytes[i] == 0) continue;
      workspace_block[i] = blocks.size();
      auto bytes = static_cast<std::int64_t>(plan.workspace_bytes[i]);
      blocks.push_back({(bytes + kAlignment - 1) / kAlignment * kAlignment, {static_cast<int>(i)}});
    }
  }
  plan.arena = allocate(std::max(place(blocks, ordered), kAlignment), recording.device());

  std::unordered_map<Storage*, char*> places;
  for (Storage* storage : own) {
    places[storage] = plan.arena->data() + blocks[block_of[storage]].offset;
  }
  for (std::size_t i = 0; i < n; ++i) {
    Retarget retarget(places, plan.arena.get());
    recording.operations[i]->visit(retarget);
    if (plan.workspace_bytes[i] != 0) {
      plan.workspaces[i] = plan.arena->data() + blocks[workspace_block[i]].offset;
    }
  }
  for (Storage* storage : own) recording.storages.erase(storage);
  std::erase_if(recording.storages, [&](const auto& held) {  // of operations that were rewritten
    return held.first->use_count() == 1 && touched.count(held.first) == 0;
  });
  plan.dependencies = std::move(ordered.direct);
  return plan;
}

}  // namespace rensa
