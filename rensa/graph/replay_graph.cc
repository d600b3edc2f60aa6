// A planned recording as CUDA graphs.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "rensa/device/step_graph.h"
#include "rensa/graph/replay.h"
#include "rensa/graph/storage_uses.h"

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

class GraphReplay final : public Replay {
 public:
  GraphReplay(std::shared_ptr<Recording> recording, Plan plan, std::vector<Array> inputs)
      : recording_(std::move(recording)),
        plan_(std::move(plan)),
        inputs_(std::move(inputs)),
        streams_(current_streams()),
        graph_(recording_->devices(), nodes(), input_places(), result_places(),
               recording_->num_slots) {}

  void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<Array>& results) override {
    note_use();
    std::vector<const void*> sources;
    for (const Array& input : inputs) {
      input.storage()->use_on(cuda::current_stream_state(input.device()));
      sources.push_back(input.data());
    }
    std::vector<void*> destinations;
    for (const Array& result : results) destinations.push_back(result.data());
    graph_.launch(sources, slots, destinations);
  }

 private:
  std::vector<cuda::StepNode> nodes() const {
    std::vector<cuda::StepNode> result;
    StorageUses uses(*recording_);
    SettleOperands settle(uses, inputs_);
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      Operation& operation = *recording_->operations[i];
      settle.visit(operation, i);
      result.push_back({&operation, device_of(operation), plan_.dependencies[i], plan_.lanes[i],
                        plan_.workspaces[i], plan_.workspace_bytes[i]});
    }
    return result;
  }

  std::vector<cuda::StepPlace> input_places() const {
    std::vector<cuda::StepPlace> places;
    for (const Array& input : inputs_)
      places.push_back({input.device(), input.data(), input.nbytes(), {}});
    return places;
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

  using Streams = std::map<Device, cuda::StreamState*>;
  Streams current_streams() const {
    Streams streams;
    for (Device device : recording_->devices()) {
      streams[device] = cuda::current_stream_state(device);
    }
    return streams;
  }

  /// What the graphs work on must not be handed out again before this launch is done. (Each
  /// device's stream has the launch's end behind it.)
  void note_use() {
    Streams now = current_streams();
    if (now == streams_) return;
    streams_ = std::move(now);
    auto use = [&](Storage* storage) {
      auto stream = streams_.find(storage->device());
      if (stream != streams_.end()) storage->use_on(stream->second);
    };
    for (const auto& [storage, holder] : recording_->storages) use(storage);
    for (const auto& [device, arena] : plan_.arenas) use(arena.get());
    for (const Array& input : inputs_) use(input.storage().get());
  }

  std::shared_ptr<Recording> recording_;
  Plan plan_;
  std::vector<Array> inputs_;
  Streams streams_;  // of the latest launch, at first of the recording
  cuda::StepGraph graph_;
};

}  // namespace

std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs) {
  return std::make_unique<GraphReplay>(std::move(recording), std::move(plan), std::move(inputs));
}

}  // namespace rensa
