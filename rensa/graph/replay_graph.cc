// A planned recording as CUDA graphs.
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/device/step_graph.h"
#include "rensa/graph/replay.h"
#include "rensa/graph/storage_uses.h"
#include "rensa/operations/exchange/exchange.h"
#include "rensa/portable/launch_plan.h"

namespace rensa {

namespace {

/// Notes which operands of an operation are settled.
class SettleOperands final : public OperandVisitor {
 public:
  SettleOperands(const StorageUses& uses, const std::vector<Array>& inputs)
      : uses_(uses), inputs_(inputs) {}
  void visit(Operation& operation, std::size_t place) {
    place_ = place;
    operation.visit(*this);
  }
  void read(Operand& operand) override {
    operand.settled =
        uses_.writer_before(operand.storage, place_) == place_ && !is_input(*operand.storage);
  }
  void write(Operand&) override {}

 private:
  /// Each launch writes the inputs.
  bool is_input(const Storage& storage) const {
    return std::ranges::any_of(inputs_, [&](const Array& input) {
      const Storage* other = input.storage().get();
      return other->data() < storage.data() + storage.nbytes() &&
             storage.data() < other->data() + other->nbytes();
    });
  }
  const StorageUses& uses_;
  const std::vector<Array>& inputs_;
  std::size_t place_ = 0;
};

/// Where the arrays of a launch lie: inputs, then results.
using Addresses = std::vector<const void*>;

/// Memory of a recording that one array alone brings into the step or out of it. Null: there is
/// none, as somebody else works with what lies there too.
struct Passage {
  const Storage* storage = nullptr;
  const char* data = nullptr;
  std::int64_t nbytes = 0;
};

/// Has a recording's operations work where the arrays of a launch lie, as long as this lives.
class MoveToArrays final : public OperandVisitor {
 public:
  /// `addresses`: null where an array's passage stays where it was recorded.
  MoveToArrays(Recording& recording, const std::vector<Passage>& passages,
               const Addresses& addresses)
      : recording_(recording) {
    for (std::size_t i = 0; i < passages.size(); ++i) {
      if (addresses[i]) {
        moves_[passages[i].storage] = static_cast<const char*>(addresses[i]) - passages[i].data;
      }
    }
    visit_all();
  }
  ~MoveToArrays() override {
    for (auto& [storage, distance] : moves_) distance = -distance;
    visit_all();
  }
  MoveToArrays(const MoveToArrays&) = delete;
  MoveToArrays& operator=(const MoveToArrays&) = delete;

  void read(Operand& operand) override { move(operand); }
  void write(Operand& operand) override { move(operand); }
  /// Where that which was recorded at `data` is.
  char* place_of(const Storage* storage, char* data) const {
    auto found = moves_.find(storage);
    return found == moves_.end() ? data : data + found->second;
  }

 private:
  void move(Operand& operand) { operand.view.data = place_of(operand.storage, operand.view.data); }
  void visit_all() {
    for (const auto& operation : recording_.operations) operation->visit(*this);
  }
  Recording& recording_;
  std::unordered_map<const Storage*, std::ptrdiff_t> moves_;
};

class GraphReplay final : public Replay {
 public:
  GraphReplay(std::shared_ptr<Recording> recording, Plan plan, std::vector<Array> inputs)
      : recording_(std::move(recording)), plan_(std::move(plan)), inputs_(std::move(inputs)) {
    for (Device device : recording_->devices()) {
      streams_.push_back(cuda::current_stream_state(device));
    }
    StorageUses uses(*recording_);
    settle_operands(uses);
    passages_ = find_passages(uses);
    graph_ = make_graph({});
  }

  void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<Array>& results) override {
    note_use();
    Addresses addresses;
    for (const Array& input : inputs) {
      input.storage()->use_on(cuda::current_stream_state(input.device()));
      addresses.push_back(input.data());
    }
    for (const Array& result : results) addresses.push_back(result.data());
    const InPlace* in_place = graph_in_place(addresses);
    std::vector<const void*> sources;
    std::vector<void*> destinations;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (in_place && in_place->at[i]) continue;
      if (i < inputs.size()) sources.push_back(inputs[i].data());
      else destinations.push_back(results[i - inputs.size()].data());
    }
    (in_place ? *in_place->graph : *graph_).launch(sources, slots, destinations);
  }

 private:
  /// Arrays that have been seen at some addresses, and once they have been seen there again, a
  /// graph that works on them there.
  struct InPlace {
    Addresses seen;
    std::uint64_t last_launch;
    bool again = false;
    Addresses at = {};                                 // null: copied
    std::unique_ptr<cuda::StepGraph> graph = nullptr;  // null then: all have to be copied
  };

  /// The graph for arrays at `addresses`, made when they are seen there for the second time: memory
  /// that is used again is likely to be used further. Null: they are to be copied.
  const InPlace* graph_in_place(Addresses addresses) {
    constexpr std::size_t kMost = 4;
    constexpr std::uint64_t kLong = 256;  // launches
    if (passages_.empty() || streams_changed_) return nullptr;
    ++launches_;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!passages_[i].storage) addresses[i] = nullptr;  // copied, wherever it lies
    }
    auto found = std::ranges::find(in_place_, addresses, &InPlace::seen);
    if (found == in_place_.end()) {
      if (in_place_.size() == kMost) {
        auto least = std::ranges::min_element(in_place_, {}, [](const InPlace& one) {
          return std::pair(one.again, one.last_launch);
        });
        if (least->again && launches_ - least->last_launch < kLong) return nullptr;
        in_place_.erase(least);
      }
      in_place_.push_back({std::move(addresses), launches_});
      return nullptr;
    }
    found->last_launch = launches_;
    if (!found->again) {
      found->again = true;
      found->at = those_in_place(addresses);
      bool any = std::ranges::any_of(found->at, [](const void* at) { return at != nullptr; });
      try {
        if (any) found->graph = make_graph(found->at);
      } catch (const Error&) {
        // The driver's memory may be full. All has been captured before, and can be copied.
      }
    }
    return found->graph ? &*found : nullptr;
  }

  /// Of `addresses` those where the step may work: aligned as what was recorded, so that operations
  /// do the same, and apart from all memory that the step found, which it may write.
  Addresses those_in_place(Addresses addresses) const {
    constexpr std::int64_t kAlignment = 256;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const Passage& passage = passages_[i];
      const auto* begin = static_cast<const char*>(addresses[i]);
      const char* end = begin + passage.nbytes;
      bool fits = passage.storage && cuda::is_aligned(begin, kAlignment) &&
                  cuda::is_aligned(passage.data, kAlignment);
      for (const auto& [storage, holder] : recording_->storages) {
        if (!fits) break;
        fits = end <= storage->data() || storage->data() + storage->nbytes() <= begin;
      }
      if (!fits) addresses[i] = nullptr;
    }
    return addresses;
  }

  /// What each input and each result goes through; nothing for steps whose graphs are better made
  /// once: of several GPUs or processes (what a library may have noted of memory that it sends has
  /// to stay true, and another capture that fails would tell the other ranks), or so long that
  /// copies hardly count.
  std::vector<Passage> find_passages(const StorageUses& uses) const {
    constexpr std::size_t kMostNodes = 512;
    std::vector<Passage> passages;
    bool exchanges = std::ranges::any_of(
        recording_->operations, [](const auto& operation) { return is_exchange(*operation); });
    if (exchanges || recording_->devices().size() > 1 ||
        recording_->operations.size() > kMostNodes) {
      return passages;
    }
    auto carried_over = uses.carried_over();
    auto add = [&](const Array& array, bool passes) {
      Passage& passage = passages.emplace_back();
      const auto* data = static_cast<const char*>(array.data());
      if (passes) passage = {array.storage().get(), data, array.nbytes()};
    };
    for (const Array& input : inputs_) add(input, is_held_here_alone(input));
    for (const RecordedOutput& output : recording_->outputs) {
      add(output.array, is_held_here_alone(output.array) && writes_all_of(uses, output.array) &&
                            carried_over.count(output.array.storage().get()) == 0);
    }
    return passages;
  }

  static bool is_exchange(const Operation& operation) {
    return dynamic_cast<const operations::Exchange*>(&operation) != nullptr;
  }

  /// Whether nobody holds an input or output but the list of these, and the recording.
  bool is_held_here_alone(const Array& array) const {
    Storage* storage = array.storage().get();
    std::int64_t holders = 1 + static_cast<std::int64_t>(recording_->storages.count(storage));
    return storage->use_count() == holders && !storage->is_foreign();
  }

  /// Whether each run writes the array, and touches nothing of its memory beside it.
  static bool writes_all_of(const StorageUses& uses, const Array& array) {
    const auto* begin = static_cast<const char*>(array.data());
    const Storage* storage = array.storage().get();
    bool written = false;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (const Access& access : uses.of(i)) {
        if (access.storage != storage) continue;
        if (access.begin < begin || access.end > begin + array.nbytes()) return false;
        written = written || access.write;
      }
    }
    return written;
  }

  /// Captures the recording, with arrays `in_place` (null, or none: copied) of its inputs and
  /// results.
  std::unique_ptr<cuda::StepGraph> make_graph(const Addresses& in_place) {
    std::optional<MoveToArrays> moved;
    if (!in_place.empty()) moved.emplace(*recording_, passages_, in_place);
    auto is_copied = [&](std::size_t i) { return in_place.empty() || !in_place[i]; };
    std::vector<cuda::StepPlace> sources, destinations = result_places(), copied;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Array& input = inputs_[i];
      if (is_copied(i)) sources.push_back({input.device(), input.data(), input.nbytes(), {}});
    }
    for (std::size_t i = 0; i < destinations.size(); ++i) {
      if (!is_copied(inputs_.size() + i)) continue;
      const Storage* storage = recording_->outputs[i].array.storage().get();
      auto* data = static_cast<char*>(destinations[i].data);
      if (moved) destinations[i].data = moved->place_of(storage, data);
      copied.push_back(std::move(destinations[i]));
    }
    return std::make_unique<cuda::StepGraph>(recording_->devices(), nodes(), sources, copied,
                                             recording_->num_slots);
  }

  void settle_operands(const StorageUses& uses) {
    SettleOperands settle(uses, inputs_);
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      settle.visit(*recording_->operations[i], i);
    }
  }

  std::vector<cuda::StepNode> nodes() const {
    std::vector<cuda::StepNode> result;
    std::vector<std::int64_t> chains = plan_.chains();
    auto longest = std::ranges::max_element(chains);
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      Operation& operation = *recording_->operations[i];
      bool urgent = chains[i] == *longest || operation.is_between_devices();
      bool captured_once = operation.is_between_devices() || is_exchange(operation);
      result.push_back({&operation, device_of(operation), plan_.dependencies[i], plan_.lanes[i],
                        plan_.workspaces[i], plan_.workspace_bytes[i], urgent, captured_once});
    }
    return result;
  }

  std::vector<cuda::StepPlace> result_places() const {
    std::vector<cuda::StepPlace> places;
    std::unordered_map<const Storage*, std::vector<std::size_t>> places_in;
    for (const RecordedOutput& output : recording_->outputs) {
      places_in[output.array.storage().get()].push_back(places.size());
      const Array& array = output.array;
      places.push_back({array.device(), array.data(), array.nbytes(), {}});
    }
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      for (const Access& access : accesses(*recording_->operations[i])) {
        auto found = places_in.find(access.storage);
        if (!access.write || found == places_in.end()) continue;
        for (std::size_t place : found->second) {
          places[place].writers.push_back(static_cast<int>(i));
        }
      }
    }
    return places;
  }

  /// What the graphs work on must not be handed out again before this launch is done. (Each
  /// device's stream has the launch's end behind it.)
  void note_use() {
    bool changed = false;
    const std::vector<Device>& devices = recording_->devices();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      cuda::StreamState* now = cuda::current_stream_state(devices[i]);
      changed = std::exchange(streams_[i], now) != now || changed;
    }
    if (!changed) return;
    // Each graph waits for its own launches on other streams, not for those of others.
    streams_changed_ = true;
    in_place_.clear();
    auto use = [&](Storage* storage) {
      auto device = std::ranges::find(devices, storage->device());
      if (device != devices.end()) storage->use_on(streams_[device - devices.begin()]);
    };
    for (const auto& [storage, holder] : recording_->storages) use(storage);
    for (const auto& [device, arena] : plan_.arenas) use(arena.get());
    for (const Array& input : inputs_) use(input.storage().get());
  }

  std::shared_ptr<Recording> recording_;
  Plan plan_;
  std::vector<Array> inputs_;
  std::vector<cuda::StreamState*> streams_;  // of the latest launch, by the recording's devices
  bool streams_changed_ = false;
  std::vector<Passage> passages_;           // none: everything is copied
  std::unique_ptr<cuda::StepGraph> graph_;  // copies inputs and results
  std::vector<InPlace> in_place_;           // as long as the streams are those of the recording
  std::uint64_t launches_ = 0;
};

}  // namespace

std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs) {
  return std::make_unique<GraphReplay>(std::move(recording), std::move(plan), std::move(inputs));
}

}  // namespace rensa
