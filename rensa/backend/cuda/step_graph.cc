// StepGraph: capturing a list of operations with the order that the caller gives, and its launches.
#include "rensa/device/step_graph.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "rensa/backend/cuda/capture_kernels.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/launcher.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"
#include "rensa/device/timeline_span.h"

namespace rensa::cuda {

namespace {

void check(cudaError_t error) { RENSA_CUDA_CHECK("capture", error); }

/// Points the operations' host numbers at the slots of the device block.
class BindScalars final : public OperandVisitor {
 public:
  explicit BindScalars(const char* block) : block_(block) {}
  void read(Operand&) override {}
  void write(Operand&) override {}
  void scalar(HostScalar& scalar) override {
    if (scalar.slot >= 0) scalar.device = block_ + scalar.slot * 8;
  }

 private:
  const char* block_;
};

/// Owns a stream that a graph is captured on: what is queued there becomes nodes of its device.
class CaptureStream {
 public:
  explicit CaptureStream(Device device) {
    runtime::set_device(device);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CaptureStream() { cudaStreamDestroy(stream_); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  cudaStream_t get() const { return stream_; }

  /// What is queued next runs after `nodes`.
  void depend_on(std::vector<cudaGraphNode_t>& nodes) {
    check(cudaStreamUpdateCaptureDependencies(stream_, nodes.data(),
#if CUDART_VERSION >= 13000
                                              nullptr,
#endif
                                              nodes.size(), cudaStreamSetCaptureDependencies));
  }

  /// The nodes that what is queued next would run after.
  std::vector<cudaGraphNode_t> frontier() {
    const cudaGraphNode_t* nodes = nullptr;
    std::size_t count = look_at_frontier(&nodes);
    return std::vector<cudaGraphNode_t>(nodes, nodes + count);
  }
  /// The one that is the frontier alone: of a kernel that was queued last.
  cudaGraphNode_t last_node() {
    const cudaGraphNode_t* nodes = nullptr;
    look_at_frontier(&nodes);
    return nodes[0];
  }

 private:
  std::size_t look_at_frontier(const cudaGraphNode_t** nodes) {
    cudaStreamCaptureStatus status;
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    check(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, nodes, nullptr, &count));
#else
    check(cudaStreamGetCaptureInfo_v2(stream_, &status, nullptr, nullptr, nodes, &count));
#endif
    return count;
  }

  cudaStream_t stream_ = nullptr;
};

using Nodes = std::vector<cudaGraphNode_t>;

void append(Nodes& nodes, const Nodes& more) {
  for (cudaGraphNode_t node : more) nodes.push_back(node);
}

void sort_unique(Nodes& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

constexpr CaptureLaunch kMoreScalarsLaunch{1, kBlock};

/// Has kernels among the nodes start before others that wait for a processor.
void hurry(const Nodes& nodes) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    cudaLaunchAttributeValue value{};
    value.priority = greatest;
    check(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value));
  }
}

/// Places that one kernel copies to or from, and which of the launch's addresses those are.
struct CopyPart {
  std::vector<StepPlace> places;
  std::vector<std::size_t> addresses;
  cudaGraphNode_t node = nullptr;

  CaptureLaunch launch() const {
    long long total = 0;
    for (const StepPlace& place : places) total += place.nbytes;
    return capture_launch(total);
  }
};

std::vector<CopyPart> parts_of(const std::vector<StepPlace>& all, Device device) {
  std::vector<CopyPart> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].device != device) continue;
    if (parts.empty() || parts.back().places.size() == kMaxCaptureCopies) parts.emplace_back();
    parts.back().places.push_back(all[i]);
    parts.back().addresses.push_back(i);
  }
  return parts;
}

template <class Params>
void queue(const void* kernel, CaptureLaunch dims, Params& params, const LaunchContext& context) {
  void* arguments[] = {&params};
  launch_address("capture", context, kernel, dim3(dims.grid), static_cast<int>(dims.block),
                 arguments, 0);
}

template <class Params>
void set_params(cudaGraphExec_t exec, cudaGraphNode_t node, const void* kernel, CaptureLaunch dims,
                Params& params) {
  void* arguments[] = {&params};
  cudaKernelNodeParams node_params{};
  node_params.func = const_cast<void*>(kernel);
  node_params.gridDim = dim3(dims.grid);
  node_params.blockDim = dim3(dims.block);
  node_params.kernelParams = arguments;
  check(cudaGraphExecKernelNodeSetParams(exec, node, &node_params));
}

/// What of a graph is one GPU's: its stream of the capture, the numbers of the host, and the nodes
/// that bring them and the inputs in, and take the results out.
class DeviceSide {
 public:
  DeviceSide(Device device, const std::vector<StepPlace>& inputs,
             const std::vector<StepPlace>& results, int num_slots, std::size_t num_lanes)
      : device_(device),
        num_slots_(num_slots),
        scalar_block_(allocate(8 * std::max(num_slots, 1), device)),
        semaphores_(allocate(static_cast<std::int64_t>(num_lanes) * kSemaphores * 4, device)),
        input_parts_(parts_of(inputs, device)),
        result_parts_(parts_of(results, device)) {
    context_ = make_context(current_stream_state(device), 0);
    check(cudaMemsetAsync(semaphores_->data(), 0, static_cast<std::size_t>(semaphores_->nbytes()),
                          static_cast<cudaStream_t>(context_.handle)));
    capturing_.emplace(device);
    context_.handle = capturing_->get();
  }

  Device device() const { return device_; }
  CaptureStream& capturing() { return *capturing_; }
  const Nodes& results_nodes() const { return results_nodes_; }

  void begin() { check(cudaStreamBeginCapture(capturing_->get(), cudaStreamCaptureModeRelaxed)); }
  /// Makes this side's stream, which was not, part of the capture of the other's; what is queued
  /// next on it runs after nothing but what the other's has queued.
  void join(DeviceSide& other) {
    runtime::set_device(other.device_);
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t error = cudaEventRecord(event, other.capturing_->get());
    if (error == cudaSuccess) {
      runtime::set_device(device_);
      error = cudaStreamWaitEvent(capturing_->get(), event, 0);
    }
    cudaEventDestroy(event);
    check(error);
  }

  /// The prologue and what follows it.
  void add_copies_in() {
    runtime::set_device(device_);
    PrologueParams first = prologue(nullptr);
    queue(prologue_kernel(), prologue_launch(), first, context_);
    prologue_node_ = capturing_->last_node();
    for_more_scalars([&](int slot) {
      MoreScalarsParams more = more_scalars(nullptr, slot);
      queue(more_scalars_kernel(), kMoreScalarsLaunch, more, context_);
      more_scalars_nodes_.push_back(capturing_->last_node());
    });
    Nodes before = start();
    for (std::size_t k = 1; k < input_parts_.size(); ++k) {
      capturing_->depend_on(before);
      CopiesParams params{};
      queue(copies_kernel(), input_parts_[k].launch(), params, context_);
      input_parts_[k].node = capturing_->last_node();
    }
  }

  /// What an operation that waits for no other one waits for.
  Nodes start() const {
    Nodes nodes;
    for (std::size_t k = 1; k < input_parts_.size(); ++k) {
      if (input_parts_[k].node) nodes.push_back(input_parts_[k].node);
    }
    if (nodes.empty()) {
      nodes.push_back(more_scalars_nodes_.empty() ? prologue_node_ : more_scalars_nodes_.back());
    }
    return nodes;
  }

  /// An operation after `before`, of which some may be another GPU's (`between`); gives the nodes
  /// that what follows it has to follow.
  Nodes add(const StepNode& step, Nodes before, bool between) {
    runtime::set_device(device_);
    context_.overlaps = !between;
    if (before.empty()) before = start();
    capturing_->depend_on(before);
    BindScalars bind(scalar_block_->data());
    step.operation->visit(bind);
    context_.workspace = step.workspace;
    context_.workspace_bytes = step.workspace_bytes;
    context_.semaphores =
        reinterpret_cast<unsigned*>(semaphores_->data()) + step.lane * kSemaphores;
    step.operation->run_cuda(context_);
    return capturing_->frontier();
  }

  /// The results leave as soon as those of one kernel are there, beside what still runs. `last`:
  /// the last nodes of each operation, of which some may be another GPU's (`between`).
  void add_copies_out(const std::vector<Nodes>& last, bool between) {
    runtime::set_device(device_);
    context_.overlaps = !between;
    for (CopyPart& part : result_parts_) {
      Nodes before = start();
      for (const StepPlace& result : part.places) {
        for (int writer : result.writers) append(before, last[static_cast<std::size_t>(writer)]);
      }
      sort_unique(before);
      capturing_->depend_on(before);
      CopiesParams params{};
      queue(copies_kernel(), part.launch(), params, context_);
      part.node = capturing_->last_node();
      results_nodes_.push_back(part.node);
    }
  }

  /// Gives the nodes at the front this launch's numbers and inputs.
  void set_front(cudaGraphExec_t exec, const std::uint64_t* slots,
                 const std::vector<const void*>& sources) const {
    runtime::set_device(device_);
    auto add = [&](auto& params, const CopyPart& part) {
      for (std::size_t i = 0; i < part.places.size(); ++i) {
        params.copies[params.num_copies++] = {sources[part.addresses[i]], part.places[i].data,
                                              part.places[i].nbytes};
      }
    };
    PrologueParams first = prologue(slots);
    if (!input_parts_.empty()) add(first, input_parts_[0]);
    set_params(exec, prologue_node_, prologue_kernel(), prologue_launch(), first);
    auto node = more_scalars_nodes_.begin();
    for_more_scalars([&](int slot) {
      MoreScalarsParams more = more_scalars(slots, slot);
      set_params(exec, *node++, more_scalars_kernel(), kMoreScalarsLaunch, more);
    });
    for (std::size_t k = 1; k < input_parts_.size(); ++k) {
      CopiesParams params{};
      add(params, input_parts_[k]);
      set_params(exec, input_parts_[k].node, copies_kernel(), input_parts_[k].launch(), params);
    }
  }
  void set_back(cudaGraphExec_t exec, const std::vector<void*>& destinations) const {
    runtime::set_device(device_);
    for (const CopyPart& part : result_parts_) {
      CopiesParams params{};
      for (std::size_t i = 0; i < part.places.size(); ++i) {
        params.copies[params.num_copies++] = {part.places[i].data, destinations[part.addresses[i]],
                                              part.places[i].nbytes};
      }
      set_params(exec, part.node, copies_kernel(), part.launch(), params);
    }
  }

  void end() { capturing_.reset(); }
  /// The memory is used by what is queued on the device's stream.
  void use_on(StreamState* stream) const {
    scalar_block_->use_on(stream);
    semaphores_->use_on(stream);
  }

 private:
  PrologueParams prologue(const std::uint64_t* slots) const {
    PrologueParams params{};
    params.num_scalars = std::min(num_slots_, kMaxCaptureScalars);
    if (slots) std::copy_n(slots, params.num_scalars, params.scalars);
    params.scalar_block = scalar_block_->data();
    return params;
  }
  CaptureLaunch prologue_launch() const {
    return input_parts_.empty() ? capture_launch(0) : input_parts_[0].launch();
  }

  /// The numbers from slot `first` on, which one kernel has room for.
  MoreScalarsParams more_scalars(const std::uint64_t* slots, int first) const {
    MoreScalarsParams params{};
    params.num_scalars = std::min(num_slots_ - first, kMaxMoreCaptureScalars);
    if (slots) std::copy_n(slots + first, params.num_scalars, params.scalars);
    params.scalar_block = scalar_block_->data() + 8 * static_cast<std::ptrdiff_t>(first);
    return params;
  }
  /// Calls `f(first)` for each kernel of further numbers.
  template <class F> void for_more_scalars(F&& f) const {
    for (int first = kMaxCaptureScalars; first < num_slots_; first += kMaxMoreCaptureScalars) {
      f(first);
    }
  }

  Device device_;
  int num_slots_;
  StoragePtr scalar_block_, semaphores_;
  std::vector<CopyPart> input_parts_;  // the prologue's first, which has no node of its own
  std::vector<CopyPart> result_parts_;
  LaunchContext context_{};
  std::optional<CaptureStream> capturing_;
  cudaGraphNode_t prologue_node_ = nullptr;
  Nodes more_scalars_nodes_;  // one behind the other, after the prologue
  Nodes results_nodes_;
};

}  // namespace

struct StepGraph::Impl {
  std::vector<std::unique_ptr<DeviceSide>> sides;  // the first one's stream is that of launches
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  Nodes between_devices;  // the last ones of each operation of that kind: others' work waits for it
  cudaStream_t last_stream = nullptr;
  cudaEvent_t done = nullptr;

  // A launch may still be running: its memory goes back through the stream's order, and the driver
  // keeps the graph until it is done.
  ~Impl() {
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
    if (done) cudaEventDestroy(done);
  }

  DeviceSide& side(Device device) {
    return **std::ranges::find_if(sides, [&](const auto& s) { return s->device() == device; });
  }

  void add_nodes(const std::vector<StepNode>& steps) {
    for (std::size_t k = 1; k < sides.size(); ++k) sides[k]->join(*sides[0]);
    for (const auto& side : sides) side->add_copies_in();
    std::vector<Nodes> last;  // of each operation
    for (const StepNode& step : steps) {
      Nodes before;
      bool between = step.operation->is_between_devices();
      if (between) {  // it may read another GPU's inputs
        for (const auto& side : sides) append(before, side->start());
      }
      for (int j : step.dependencies) {
        append(before, last[static_cast<std::size_t>(j)]);
        between |= steps[static_cast<std::size_t>(j)].device != step.device;
      }
      sort_unique(before);
      last.push_back(side(step.device).add(step, std::move(before), between));
      if (step.operation->is_between_devices()) append(between_devices, last.back());
    }
    Nodes all;  // the stream ends after every branch
    for (const Nodes& nodes : last) append(all, nodes);
    for (const auto& side : sides) {
      side->add_copies_out(last, sides.size() > 1);
      append(all, side->results_nodes());
    }
    sort_unique(all);
    for (std::size_t k = 1; k < sides.size(); ++k) {
      sides[k]->capturing().depend_on(all);
      sides[0]->join(*sides[k]);
    }
    runtime::set_device(sides[0]->device());
    sides[0]->capturing().depend_on(all);
  }

  void capture(const std::vector<StepNode>& steps) {
    cudaStream_t origin = sides[0]->capturing().get();
    sides[0]->begin();
    try {
      add_nodes(steps);
    } catch (...) {
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(origin, &broken);
      if (broken) cudaGraphDestroy(broken);
      cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(origin, &graph));
    for (const auto& side : sides) side->end();
    hurry(between_devices);
    check(cudaGraphInstantiate(
        &exec, graph, between_devices.empty() ? 0 : cudaGraphInstantiateFlagUseNodePriority));
    check(cudaGraphUpload(exec, last_stream));
  }

  /// Launches share the graph's memory: one on another stream waits for the one before.
  void follow_last(cudaStream_t handle) {
    if (last_stream == handle) return;
    if (!done) check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    check(cudaEventRecord(done, last_stream));
    check(cudaStreamWaitEvent(handle, done, 0));
    last_stream = handle;
  }
};

StepGraph::StepGraph(const std::vector<Device>& devices, const std::vector<StepNode>& nodes,
                     const std::vector<StepPlace>& inputs, const std::vector<StepPlace>& results,
                     int num_slots)
    : impl_(std::make_unique<Impl>()) {
  std::size_t num_lanes = 0;
  for (const StepNode& node : nodes) num_lanes = std::max(num_lanes, node.lane + 1);
  for (Device device : devices) {
    impl_->sides.push_back(
        std::make_unique<DeviceSide>(device, inputs, results, num_slots, num_lanes));
  }
  LaunchContext context = make_context(current_stream_state(devices[0]), 0);
  impl_->last_stream = static_cast<cudaStream_t>(context.handle);
  impl_->capture(nodes);
}

StepGraph::~StepGraph() = default;

void StepGraph::launch(const std::vector<const void*>& inputs,
                       const std::vector<std::uint64_t>& slots, const std::vector<void*>& results) {
  std::vector<StreamState*> streams;
  for (const auto& side : impl_->sides) {
    streams.push_back(current_stream_state(side->device()));
    side->use_on(streams.back());
    side->set_front(impl_->exec, slots.data(), inputs);
    side->set_back(impl_->exec, results);
  }
  for (std::size_t k = 1; k < streams.size(); ++k) streams[0]->wait_for(*streams[k]);
  auto handle = static_cast<cudaStream_t>(make_context(streams[0], 0).handle);
  impl_->follow_last(handle);
  {
    timeline::Span span(timeline::Kind::operation, "recorded step", streams[0]->device());
    check(cudaGraphLaunch(impl_->exec, handle));
  }
  for (std::size_t k = 1; k < streams.size(); ++k) streams[k]->wait_for(*streams[0]);
}

}  // namespace rensa::cuda
