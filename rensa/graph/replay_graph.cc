// A planned recording as one CUDA graph.
#include <unordered_map>

#include "rensa/device/step_graph.h"
#include "rensa/graph/replay.h"

namespace rensa {

namespace {

class GraphReplay final : public Replay {
 public:
  GraphReplay(std::shared_ptr<Recording> recording, Plan plan, std::vector<Array> inputs)
      : recording_(std::move(recording)),
        plan_(std::move(plan)),
        inputs_(std::move(inputs)),
        stream_(cuda::current_stream_state(recording_->device())),
        graph_(recording_->device(), nodes(), input_places(), result_places(),
               recording_->num_slots) {}

  void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<Array>& results) override {
    cuda::StreamState* stream = cuda::current_stream_state(recording_->device());
    note_use(stream);
    std::vector<const void*> sources;
    for (const Array& input : inputs) {
      input.storage()->use_on(stream);
      sources.push_back(input.data());
    }
    std::vector<void*> destinations;
    for (const Array& result : results) destinations.push_back(result.data());
    graph_.launch(sources, slots, destinations);
  }

 private:
  std::vector<cuda::StepNode> nodes() const {
    std::vector<cuda::StepNode> result;
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      result.push_back({recording_->operations[i].get(), plan_.dependencies[i], plan_.lanes[i],
                        plan_.workspaces[i], plan_.workspace_bytes[i]});
    }
    return result;
  }

  std::vector<cuda::StepPlace> input_places() const {
    std::vector<cuda::StepPlace> places;
    for (const Array& input : inputs_) places.push_back({input.data(), input.nbytes(), {}});
    return places;
  }

  std::vector<cuda::StepPlace> result_places() const {
    std::vector<cuda::StepPlace> places;
    std::unordered_map<const Storage*, std::vector<std::size_t>> places_in;
    for (const RecordedOutput& output : recording_->outputs) {
      places_in[output.array.storage().get()].push_back(places.size());
      places.push_back({output.array.data(), output.array.nbytes(), {}});
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

  /// What the graph works on must not be handed out again before a launch on `stream` is done.
  void note_use(cuda::StreamState* stream) {
    if (stream == stream_) return;
    stream_ = stream;
    for (auto& [storage, holder] : recording_->storages) storage->use_on(stream);
    plan_.arena->use_on(stream);
    for (const Array& input : inputs_) input.storage()->use_on(stream);
  }

  std::shared_ptr<Recording> recording_;
  Plan plan_;
  std::vector<Array> inputs_;
  cuda::StreamState* stream_;  // of the latest launch, at first of the recording
  cuda::StepGraph graph_;
};

}  // namespace

std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs) {
  return std::make_unique<GraphReplay>(std::move(recording), std::move(plan), std::move(inputs));
}

}  // namespace rensa
