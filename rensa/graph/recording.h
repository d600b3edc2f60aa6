// Recording: what one run of a step did, as data: operations in order, host effects in order, the
// memory they touched.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/device/launcher.h"
#include "rensa/graph/outline.h"
#include "rensa/graph/recorded_states.h"
#include "rensa/graph/run_memory.h"

namespace rensa {

/// What the host does again in each replay: an effect, or a number for a slot.
struct HostAction {
  std::function<void()> effect;
  std::function<HostScalar()> source;  // set instead of `effect`
  int slot = -1;
  Recorder::EffectTarget target = {};  // of the effect
};

/// An array that leaves the step: returned (no `use`) or reported.
struct RecordedOutput {
  Array array;
  std::function<void(StoragePtr, const ArrayView&)> use;
};

/// Numbers of the host that a step works with, in words.
class WatchedNumbers {
 public:
  void add(std::function<std::vector<std::string>()> numbers) {
    sources_.push_back(std::move(numbers));
  }
  /// As they are now.
  std::vector<std::string> now() const;

 private:
  std::vector<std::function<std::vector<std::string>()>> sources_;
};

class Recording final : public Recorder {
 public:
  void memory_wanted(std::int64_t bytes) override;
  void operation(Operation& operation) override;
  void effect(std::function<void()> effect, double number, EffectTarget target) override;
  int scalar(std::function<HostScalar()> source) override;
  void output(const ArrayView& view, Storage* storage,
              std::function<void(StoragePtr, const ArrayView&)> use) override;
  void binding(std::function<const Storage*()> current) override;
  void watch(std::function<std::vector<std::string>()> numbers) override;
  void state(const std::shared_ptr<StateBody>& state, bool reads) override;
  void cannot_record(const char* reason) override;

  /// The run is over: drops effects on what has gone with it, and gives back all memory that it has
  /// made and that nobody else holds any more, which operation() does little by little.
  void give_back_memory();
  /// Gives those of `lasting` that have only a name memory for all replays, and writes constants
  /// there again. `lasting` is what the list, after its rewrites, reads before it writes it.
  void give_memory(const std::unordered_set<Storage*>& lasting);

  /// Whether every parameter that the step found for itself still has the memory it had.
  bool bindings_hold() const;
  /// Why the step cannot be replayed; empty when it can.
  const std::string& failure() const { return failure_; }
  /// Where the operations ran, in the order of their first ones: the CPU alone, or GPUs.
  const std::vector<Device>& devices() const { return devices_; }
  bool is_on_gpus() const { return !devices_.empty() && devices_[0].is_cuda(); }

  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<HostAction> actions;
  std::vector<RecordedOutput> outputs;
  int num_slots = 0;
  /// Memory that others can see and that every run changes.
  struct Changed {
    std::vector<Storage*> written, updated;  // by an optimizer
    void count() const;                      // one run more
  };
  Changed changed() const;
  Outline outline;        // of the run, not of the rewritten list
  RecordedStates states;  // what the run took from the one before and leaves for the next
  WatchedNumbers watched;
  /// A handle to every storage that an operation touches, or to the name of one (run_memory.h).
  std::unordered_map<Storage*, StoragePtr> storages;
  /// Memory of the step's own that holds what a folded operation has written: not to be reused.
  struct Constant {
    StoragePtr storage;
    std::unique_ptr<Operation> fill;  // writes it again where it had been given back
  };
  std::vector<Constant> constants;

 private:
  /// Gives back what of the next few storages nobody else holds.
  void give_back_some();
  /// Lets go of what was recorded, which nobody needs after a failure.
  void drop();
  struct Binding {
    std::function<const Storage*()> current;
    const Storage* recorded;
  };
  std::vector<Binding> bindings_;
  RunMemory memory_;
  std::string failure_;
  std::vector<Device> devices_;
};

/// One operand's memory as an operation uses it.
struct Access {
  Storage* storage;
  const char* begin;  // the byte range that the view's elements lie in
  const char* end;
  bool write;
};
std::vector<Access> accesses(Operation& operation);
/// The GPU that the operation runs on, or the CPU.
Device device_of(Operation& operation);
/// Whether only the recording holds the memory, and nobody else can see it. Memory of somebody
/// else's is never its own.
bool is_own(const Storage& storage);
/// The memory that holds something from run to run: an operation reads it before any has written
/// it. `uses` are those of a list of operations.
std::unordered_set<Storage*> carried_over(const std::vector<std::vector<Access>>& uses);

}  // namespace rensa
