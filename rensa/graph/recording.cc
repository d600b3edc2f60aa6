// Recording: collecting what a step does while it runs eagerly.
#include "rensa/graph/recording.h"

#include <algorithm>
#include <utility>

namespace rensa {

namespace {

/// Calls one function with every operand.
template <class F> class EachOperand final : public OperandVisitor {
 public:
  explicit EachOperand(F f) : f_(std::move(f)) {}
  void read(Operand& operand) override { f_(operand, false); }
  void write(Operand& operand) override { f_(operand, true); }

 private:
  F f_;
};

}  // namespace

// What the run has just let go of is there for what it asks for. Small pieces wait for the next
// operation.
void Recording::memory_wanted(std::int64_t bytes) {
  constexpr std::int64_t kMuch = 64 << 10;
  if (bytes >= kMuch && failure_.empty()) give_back_some();
}

void Recording::give_back_some() {
  for (Storage* storage : memory_.give_back(operations, storages)) outline.forget(storage);
}

void Recording::operation(Operation& operation) {
  if (!failure_.empty()) return drop();
  give_back_some();
  std::vector<Storage*> unknown, used;
  EachOperand visitor([&](Operand& operand, bool) {
    Device device = operand.view.device;
    if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(device);
    if (device.is_cpu() != devices_[0].is_cpu()) {
      cannot_record("it copies between host memory and the GPU");
    }
    used.push_back(operand.storage);
    bool is_new = storages.try_emplace(operand.storage, operand.storage).second;
    if (is_new) unknown.push_back(operand.storage);
  });
  operation.visit(visitor);
  if (!failure_.empty()) return drop();
  outline.add(operation);
  for (Storage* storage : unknown) {
    if (outline.made(storage)) memory_.add(storage);
  }
  for (Storage* storage : used) memory_.note_use(storage, operations.size());
  operations.push_back(operation.clone());
}

void Recording::give_back_memory() {
  std::erase_if(actions,
                [](const HostAction& action) { return action.target && action.target->expired(); });
  for (Storage* storage : memory_.give_back(operations, storages, true)) outline.forget(storage);
}

void Recording::give_memory(const std::unordered_set<Storage*>& lasting) {
  MoveOperands::Moves memory = rensa::give_memory(lasting, operations, storages);
  MoveOperands move(memory);
  for (Constant& constant : constants) {
    auto given = memory.find(constant.storage.get());
    if (given == memory.end()) continue;
    constant.fill->visit(move);
    launch(*constant.fill);
    constant.storage = given->second;
  }
}

void Recording::effect(std::function<void()> effect, double number, EffectTarget target) {
  outline.add_action(effect.target_type(), number);
  actions.push_back({std::move(effect), nullptr, -1, std::move(target)});
}

int Recording::scalar(std::function<HostScalar()> source) {
  outline.add_action(source.target_type());
  actions.push_back({nullptr, std::move(source), num_slots});
  return num_slots++;
}

void Recording::output(const ArrayView& view, Storage* storage,
                       std::function<void(StoragePtr, const ArrayView&)> use) {
  if (!view.is_c_contiguous()) cannot_record("it reports an array that is not C-contiguous");
  outline.add_action(use.target_type());
  outputs.push_back({Array(StoragePtr(storage), view), std::move(use)});
}

void Recording::binding(std::function<const Storage*()> current) {
  const Storage* recorded = current();
  if (outline.made(recorded)) return;  // by the step, as each replay will: the sum of two gradients
  bindings_.push_back({std::move(current), recorded});
}

void Recording::watch(std::function<std::vector<std::string>()> numbers) {
  watched.add(std::move(numbers));
}

std::vector<std::string> WatchedNumbers::now() const {
  std::vector<std::string> all;
  for (const auto& source : sources_) {
    for (std::string& number : source()) all.push_back(std::move(number));
  }
  return all;
}

void Recording::state(const std::shared_ptr<StateBody>& state, bool reads) {
  Array stands = states.add(state, reads);
  if (stands.defined()) outline.add_stand_in(stands.storage().get());
  if (states.leads_back()) {
    cannot_record(
        "a State's graph leads into the call before; cut it there with loss.unchain_backward(), or "
        "work under no_backprop_mode");
  }
}

void Recording::cannot_record(const char* reason) {
  // No more: a memory pool may say so while it holds its lock, and memory must not go back to it
  // now.
  if (failure_.empty()) failure_ = reason;
}

void Recording::drop() {
  operations.clear();
  memory_.let_go(storages);
}

bool Recording::bindings_hold() const {
  for (const Binding& binding : bindings_) {
    if (binding.current() != binding.recorded) return false;
  }
  return true;
}

Recording::Changed Recording::changed() const {
  struct Seen final : OperandVisitor {
    void read(Operand&) override {}
    void write(Operand& operand) override { written.insert(operand.storage); }
    void update(Operand& operand) override { updated.insert(operand.storage); }
    std::unordered_set<Storage*> written, updated;
  } seen;
  for (const auto& operation : operations) operation->visit(seen);
  auto of_others = [](std::unordered_set<Storage*>& storages) {
    std::erase_if(storages, [](const Storage* storage) { return is_own(*storage); });
    return std::vector<Storage*>(storages.begin(), storages.end());
  };
  return {of_others(seen.written), of_others(seen.updated)};
}

void Recording::Changed::count() const {
  for (Storage* storage : written) storage->count_write();
  for (Storage* storage : updated) storage->count_update();
}

Device device_of(Operation& operation) {
  Device device;
  EachOperand visitor([&](Operand& operand, bool) { device = operand.view.device; });
  operation.visit(visitor);
  return device;
}

std::vector<Access> accesses(Operation& operation) {
  std::vector<Access> result;
  EachOperand visitor([&](Operand& operand, bool write) {
    std::int64_t begin = 0, end = 0;
    operand.view.byte_range(&begin, &end);
    result.push_back({operand.storage, operand.view.data + begin, operand.view.data + end, write});
  });
  operation.visit(visitor);
  return result;
}

bool is_own(const Storage& storage) { return storage.use_count() == 1 && !storage.is_foreign(); }

std::unordered_set<Storage*> carried_over(const std::vector<std::vector<Access>>& uses) {
  std::unordered_set<Storage*> result, seen;
  for (const std::vector<Access>& of_one : uses) {
    for (const Access& use : of_one) {
      if (!use.write && seen.count(use.storage) == 0) result.insert(use.storage);
    }
    for (const Access& use : of_one) seen.insert(use.storage);
  }
  return result;
}

}  // namespace rensa
