// StepGraph: capturing a step's parts, a graph for each GPU, and launching them together.
#include "rensa/device/step_graph.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "rensa/backend/cuda/check.h"
#include "rensa/backend/cuda/step_part_graph.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/peers.h"
#include "rensa/device/step_parts.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda {

namespace {

void append(GraphNodes& nodes, const GraphNodes& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
}

/// Fills words that GPUs read and write, in the order of `stream`; those on the host at once.
void fill(const Storage& words, int byte, const Stream& stream) {
  auto bytes = static_cast<std::size_t>(words.nbytes());
  if (words.is_pinned()) {
    std::memset(words.data(), byte, bytes);
  } else {
    runtime::set_device(stream.device());
    RENSA_CUDA_CHECK("capture", cudaMemsetAsync(words.data(), byte, bytes,
                                                static_cast<cudaStream_t>(stream.handle())));
  }
}

/// Zeros, which the other GPUs write their marks over: in this GPU's memory, or where they do not
/// reach that on the host.
StoragePtr make_words(const std::vector<Device>& devices, Device device) {
  auto bytes = static_cast<std::int64_t>(8 * devices.size());
  bool reached =
      std::ranges::all_of(devices, [&](Device other) { return connect_peers(device, other); });
  StoragePtr words = reached ? allocate(bytes, device) : allocate_pinned(bytes);
  fill(*words.get(), 0, current_stream(device));
  return words;
}

}  // namespace

struct StepGraph::Impl {
  std::vector<Device> devices;
  std::vector<std::unique_ptr<PartGraph>> parts;  // by device
  // Of several devices:
  std::vector<StoragePtr> words;  // of each part, a word for each part that tells it of marks
  int launch_slot = 0;            // the number of the host that says which launch it is
  std::uint64_t numbers_of_a_launch = 0;
  std::uint64_t launches = 0;
  bool given_up = false;

  bool several() const { return parts.size() > 1; }

  unsigned long long* word(std::size_t teller, std::size_t told) const {
    return reinterpret_cast<unsigned long long*>(words[told]->data()) + teller;
  }

  CrossingParams crossing(std::size_t p, const StepAction& action) const {
    CrossingParams params{};
    params.launch = static_cast<const unsigned long long*>(parts[p]->slot_address(launch_slot));
    params.numbers_of_a_launch = numbers_of_a_launch;
    auto add = [&](std::size_t teller, std::size_t told, int number) {
      params.marks[params.num_marks++] = {word(teller, told),
                                          static_cast<unsigned long long>(number)};
    };
    if (action.kind == StepAction::Kind::tell) {
      for (std::size_t told : action.told) add(p, told, action.marks[0].number);
    } else {
      for (const StepMark& mark : action.marks) add(mark.part, p, mark.number);
    }
    return params;
  }

  /// Whether an operation's last `nodes` start before others that wait for a processor. On one GPU
  /// these are kernels which have a multiprocessor to themselves: smaller ones find room beside or
  /// behind them. Kernels of libraries count as such.
  bool hurries(const StepNode& step, const GraphNodes& nodes) const {
    if (several()) return step.operation->is_between_devices();
    return room_of(nodes).is_alone();
  }

  void capture_part(std::size_t p, const StepPart& part, const std::vector<StepNode>& steps) {
    PartGraph& graph = *parts[p];
    graph.add_copies_in();
    std::vector<bool> early =
        early_actions(part, steps, [&](const StepNode& step) { return graph.room_of(step); });
    std::vector<GraphNodes> last;  // of each action
    auto after = [&](const std::vector<std::size_t>& actions) {
      GraphNodes nodes;
      for (std::size_t action : actions) append(nodes, last[action]);
      return nodes;
    };
    GraphNodes all, hurried;
    for (std::size_t i = 0; i < part.actions.size(); ++i) {
      const StepAction& action = part.actions[i];
      GraphNodes before = after(action.after);
      if (before.empty()) before = graph.start();
      if (action.kind == StepAction::Kind::run) {
        const StepNode& step = steps[action.node];
        last.push_back(graph.add(step, std::move(before), early[i]));
        if (hurries(step, last.back())) append(hurried, last.back());
      } else {
        bool tells = action.kind == StepAction::Kind::tell;
        last.push_back(graph.add(tells ? tell_kernel() : await_kernel(), crossing(p, action),
                                 std::move(before)));
        append(hurried, last.back());
      }
      append(all, last.back());
    }
    std::vector<GraphNodes> before_results;
    for (const auto& actions : part.results) before_results.push_back(after(actions));
    append(all, graph.add_copies_out(before_results));
    graph.finish(std::move(all), hurried);
  }

  /// Has the first `launched` parts come to their ends, though the others do not run: what they
  /// await is more than told. No later launch would wait.
  void give_up(std::size_t launched) {
    given_up = true;
    for (std::size_t p = 0; p < launched; ++p) {
      Stream apart(devices[p], non_blocking);
      fill(*words[p].get(), 0x7f, apart);
      runtime::synchronize_stream(apart.handle());
    }
  }

  void make_all_words() {
    for (Device device : devices) words.push_back(make_words(devices, device));
    // They are zeros before any part is launched.
    for (Device later : devices) {
      for (Device earlier : devices) {
        current_stream_state(later)->wait_for(*current_stream_state(earlier));
      }
    }
  }
};

StepGraph::StepGraph(const std::vector<Device>& devices, const std::vector<StepNode>& nodes,
                     const std::vector<StepPlace>& inputs, const std::vector<StepPlace>& results,
                     int num_slots)
    : impl_(std::make_unique<Impl>()) {
  bool several = devices.size() > 1;
  if (several && environment::flag("CUDA_LAUNCH_BLOCKING").value_or(false)) {
    throw CudaError(
        "capture: with CUDA_LAUNCH_BLOCKING=1 a step on several GPUs cannot be replayed: the host "
        "waits for the first one's graph, and that for the next one's");
  }
  std::size_t num_lanes = 0;
  for (const StepNode& node : nodes) num_lanes = std::max(num_lanes, node.lane + 1);
  std::vector<StepPart> parts = step_parts(devices, nodes, results);
  impl_->devices = devices;
  impl_->launch_slot = num_slots;
  impl_->numbers_of_a_launch = static_cast<std::uint64_t>(most_marks(parts)) + 1;
  if (several) impl_->make_all_words();
  for (Device device : devices) {
    impl_->parts.push_back(std::make_unique<PartGraph>(device, inputs, results,
                                                       num_slots + (several ? 1 : 0), num_lanes));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) impl_->capture_part(p, parts[p], nodes);
}

StepGraph::~StepGraph() = default;

void StepGraph::launch(const std::vector<const void*>& inputs,
                       const std::vector<std::uint64_t>& slots, const std::vector<void*>& results) {
  if (impl_->given_up) {
    throw CudaError("capture: the launch of this step failed on one GPU before; record it again");
  }
  std::vector<std::uint64_t> with_launch;
  if (impl_->several()) {
    with_launch = slots;
    with_launch.push_back(++impl_->launches);
  }
  const std::uint64_t* numbers = impl_->several() ? with_launch.data() : slots.data();
  std::vector<StreamState*> streams;
  for (std::size_t p = 0; p < impl_->parts.size(); ++p) {
    streams.push_back(current_stream_state(impl_->devices[p]));
    if (impl_->several()) impl_->words[p]->use_on(streams[p]);
    impl_->parts[p]->set(streams[p], numbers, inputs, results);
  }
  if (!impl_->several()) return impl_->parts[0]->launch(streams[0]);
  std::size_t launched = 0;
  try {
    std::unique_lock<std::shared_mutex> hold(stream_order());
    for (; launched < streams.size(); ++launched) impl_->parts[launched]->launch(streams[launched]);
  } catch (...) {  // without the lock: giving up makes a stream and lets go of it
    impl_->give_up(launched);
    throw;
  }
}

}  // namespace rensa::cuda
