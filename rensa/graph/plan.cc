// The step's own memory as blocks, their layout, and the operands moved into it.
#include "rensa/graph/plan.h"

#include <algorithm>
#include <map>
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

/// The memory of one device that a plan places: the step's own storages in the order of their first
/// use, and every operation's scratch.
class Blocks {
 public:
  void note_use(std::size_t i, Storage* storage) {
    auto [found, is_new] = block_of_.try_emplace(storage, blocks_.size());
    if (is_new) blocks_.push_back({aligned(storage->nbytes()), {}});
    std::vector<int>& users = blocks_[found->second].users;
    if (users.empty() || users.back() != static_cast<int>(i)) users.push_back(static_cast<int>(i));
  }
  void add_scratch(std::size_t operation, std::size_t bytes) {
    scratch_.emplace_back(operation, blocks_.size());
    blocks_.push_back({aligned(static_cast<std::int64_t>(bytes)), {static_cast<int>(operation)}});
  }
  /// Gives each its offset; returns whether bytes() is within reason then.
  bool place(const Precedence& precedence) {
    std::int64_t most = most_in_use(precedence.direct().size());
    bytes_ = place_blocks(blocks_, precedence);
    bool few = precedence.direct().size() <= kFew && blocks_.size() <= kFew;
    if (!few || is_within_reason(bytes_, most)) return is_within_reason(bytes_, most);
    std::vector<Block> largest_first = blocks_;
    std::int64_t others = place_largest_first(largest_first, precedence);
    if (others < bytes_) blocks_ = std::move(largest_first);
    bytes_ = std::min(bytes_, others);
    return is_within_reason(bytes_, most);
  }
  /// That the placed blocks take.
  std::int64_t bytes() const { return std::max(bytes_, kAlignment); }

  /// Calls `f(storage, offset)` for each storage.
  template <class F> void for_each_storage(F&& f) const {
    for (auto [storage, block] : block_of_) f(storage, blocks_[block].offset);
  }
  /// Calls `f(operation, offset)` for each scratch.
  template <class F> void for_each_scratch(F&& f) const {
    for (auto [operation, block] : scratch_) f(operation, blocks_[block].offset);
  }

 private:
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

  std::int64_t bytes_ = 0;
  std::vector<Block> blocks_;
  std::unordered_map<Storage*, std::size_t> block_of_;
  std::vector<std::pair<std::size_t, std::size_t>> scratch_;  // operation, block
};

using DeviceBlocks = std::map<Device, Blocks>;

/// The step's own storages, and the operations' scratch (`scratch_bytes`) on the device where each
/// runs.
DeviceBlocks blocks_of(const Recording& recording, const std::vector<std::vector<Access>>& uses,
                       const std::vector<std::size_t>& scratch_bytes) {
  DeviceBlocks blocks;
  for (Device device : recording.devices()) blocks[device];
  std::unordered_set<Storage*> stays = carried_over(uses);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (const Access& use : uses[i]) {
      if (!is_own(*use.storage) || stays.count(use.storage) != 0) continue;
      blocks.at(use.storage->device()).note_use(i, use.storage);
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (scratch_bytes[i] == 0) continue;
    blocks.at(device_of(*recording.operations[i])).add_scratch(i, scratch_bytes[i]);
  }
  return blocks;
}

/// For each operation the number of its device, -1 for those between devices.
std::vector<int> device_numbers(const Recording& recording) {
  std::vector<int> numbers;
  for (const auto& operation : recording.operations) {
    auto found = std::ranges::find(recording.devices(), device_of(*operation));
    numbers.push_back(operation->is_between_devices()
                          ? -1
                          : static_cast<int>(found - recording.devices().begin()));
  }
  return numbers;
}

/// Places the blocks. What runs side by side shares no memory: where that is much more than the
/// list needs, less of it does.
void place_within_reason(DeviceBlocks& blocks, const std::vector<int>& devices,
                         Precedence& precedence) {
  auto place = [&] {
    bool within_reason = true;
    for (auto& [device, own] : blocks) within_reason = own.place(precedence) && within_reason;
    return within_reason;
  };
  if (place()) return;
  for (std::size_t width : {8, 2, 1}) {
    precedence = precedence.narrowed(width, devices);
    if (place()) return;
  }
}

/// Where storages go: to places in others, which stand for the arenas.
struct Place {
  Storage* stand_in;
  std::int64_t offset;
};
using Places = std::unordered_map<Storage*, Place>;

/// Moves operands from their recorded storage to its place.
class Retarget final : public OperandVisitor {
 public:
  explicit Retarget(const Places& places) : places_(places) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    auto found = places_.find(operand.storage);
    if (found == places_.end()) return;
    std::int64_t inside = operand.view.data - operand.storage->data();
    // An offset for now. NOLINTNEXTLINE(performance-no-int-to-ptr)
    operand.view.data = reinterpret_cast<char*>(found->second.offset + inside);
    operand.storage = found->second.stand_in;
  }
  const Places& places_;
};

/// And from there to the arenas.
class PutInto final : public OperandVisitor {
 public:
  explicit PutInto(const std::unordered_map<Storage*, Storage*>& arenas) : arenas_(arenas) {}
  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }

 private:
  void move(Operand& operand) {
    auto found = arenas_.find(operand.storage);
    if (found == arenas_.end()) return;
    operand.view.data = found->second->data() + reinterpret_cast<std::intptr_t>(operand.view.data);
    operand.storage = found->second;
  }
  const std::unordered_map<Storage*, Storage*>& arenas_;
};

/// Lets go of the storages that have moved, and of those that only operations touched which were
/// rewritten.
void release_storages(Recording& recording, const std::vector<std::vector<Access>>& uses,
                      const Places& moved) {
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

/// Moves the step's own memory into the plan's arenas, which it makes.
void move_into_arenas(Recording& recording, const std::vector<std::vector<Access>>& uses,
                      const DeviceBlocks& blocks, Plan& plan) {
  Places places;
  std::vector<StoragePtr> stand_ins;
  for (const auto& [device, own] : blocks) {
    stand_ins.push_back(allocate(1, device));
    own.for_each_storage([&](Storage* storage, std::int64_t offset) {
      places.emplace(storage, Place{stand_ins.back().get(), offset});
    });
  }
  // What the run has held goes before the arenas come: there is no time when both are needed.
  Retarget retarget(places);
  for (const auto& operation : recording.operations) operation->visit(retarget);
  release_storages(recording, uses, places);
  std::unordered_map<Storage*, Storage*> arenas;
  for (const auto& [device, own] : blocks) {
    const StoragePtr& arena = plan.arenas[device] = allocate(own.bytes(), device);
    arenas.emplace(stand_ins[arenas.size()].get(), arena.get());
    own.for_each_scratch(
        [&](std::size_t i, std::int64_t offset) { plan.workspaces[i] = arena->data() + offset; });
  }
  PutInto put_into(arenas);
  for (const auto& operation : recording.operations) operation->visit(put_into);
}

}  // namespace

std::vector<std::int64_t> Plan::chains() const {
  std::size_t n = dependencies.size();
  std::vector<std::int64_t> up_to(n, 1), from(n, 1), through(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (int before : dependencies[i]) {
      up_to[i] = std::max(up_to[i], up_to[static_cast<std::size_t>(before)] + 1);
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (int before : dependencies[i]) {
      auto j = static_cast<std::size_t>(before);
      from[j] = std::max(from[j], from[i] + 1);
    }
    through[i] = up_to[i] + from[i] - 1;
  }
  return through;
}

std::int64_t Plan::longest_chain() const {
  std::vector<std::int64_t> all = chains();
  return all.empty() ? 0 : *std::ranges::max_element(all);
}

Plan make_plan(Recording& recording, bool branches) {
  recording.give_memory(carried_over(all_accesses(recording)));
  std::size_t n = recording.operations.size();
  std::vector<std::vector<Access>> uses = all_accesses(recording);
  Precedence precedence(uses, branches);
  Plan plan;
  plan.workspace_bytes.resize(n, 0);
  plan.workspaces.resize(n, nullptr);
  if (recording.is_on_gpus()) {
    for (std::size_t i = 0; i < n; ++i) {
      plan.workspace_bytes[i] = recording.operations[i]->workspace_bytes();
    }
  }
  DeviceBlocks blocks = blocks_of(recording, uses, plan.workspace_bytes);
  place_within_reason(blocks, device_numbers(recording), precedence);
  move_into_arenas(recording, uses, blocks, plan);
  plan.dependencies = precedence.direct();
  plan.lanes = precedence.lanes();
  return plan;
}

}  // namespace rensa
