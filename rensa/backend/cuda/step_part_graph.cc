// PartGraph: capturing one GPU's part of a step with the order that the caller gives, and its
// launches.
#include "rensa/backend/cuda/step_part_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "rensa/backend/cuda/kernel.cuh"
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

void sort_unique(GraphNodes& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

constexpr CaptureLaunch kMoreScalarsLaunch{1, kBlock}, kCrossingLaunch{1, 32};
static_assert(kMaxGpus <= static_cast<int>(kCrossingLaunch.block));

GraphNodes nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count));
  GraphNodes nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

bool is_kernel(cudaGraphNode_t node) {
  cudaGraphNodeType type;
  check(cudaGraphNodeGetType(node, &type));
  return type == cudaGraphNodeTypeKernel;
}

/// Gives kernels of the graph the priority `usual`, a stream's, and those among `hurried` the next
/// higher one: they start before others that wait for a processor.
void set_priorities(cudaGraph_t graph, Device device, const GraphNodes& hurried, int usual) {
  auto set = [](const GraphNodes& nodes, int priority) {
    for (cudaGraphNode_t node : nodes) {
      if (!is_kernel(node)) continue;
      cudaLaunchAttributeValue value{};
      value.priority = priority;
      check(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value));
    }
  };
  if (usual != 0) set(nodes_of(graph), usual);  // as they are captured it is 0
  set(hurried, std::max(usual - 1, runtime::priority_range(device).first));
}

/// The room that the node takes of the current device, if it is a kernel.
StepRoom room_of(cudaGraphNode_t node) {
  if (!is_kernel(node)) return {0, 0};
  cudaKernelNodeParams params{};
  cudaFuncAttributes attributes{};
  if (cudaGraphKernelNodeGetParams(node, &params) != cudaSuccess ||
      cudaFuncGetAttributes(&attributes, params.func) != cudaSuccess) {
    cudaGetLastError();  // a library's kernel, or of another shared library of ours
    return {};
  }
  int device = 0;
  check(cudaGetDevice(&device));
  auto of_all = [&](double taken, cudaDeviceAttr attribute) {
    int all = 0;
    check(cudaDeviceGetAttribute(&all, attribute, device));
    return taken / all;
  };
  auto count = [](const dim3& dims) { return double{1} * dims.x * dims.y * dims.z; };
  double registers = attributes.numRegs * count(params.blockDim);
  auto bytes = static_cast<double>(attributes.sharedSizeBytes + params.sharedMemBytes);
  double block = std::max(of_all(registers, cudaDevAttrMaxRegistersPerMultiprocessor),
                          of_all(bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  double all = of_all(count(params.gridDim), cudaDevAttrMultiProcessorCount);
  return {block, all / std::floor(1 / block)};
}

std::vector<CopyGroup> groups_of(const std::vector<StepPlace>& all, Device device) {
  std::vector<CopyGroup> groups;
  std::size_t number = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].device != device) continue;
    if (groups.empty() || groups.back().places.size() == kMaxCaptureCopies) groups.emplace_back();
    groups.back().places.push_back(all[i]);
    groups.back().addresses.push_back(i);
    groups.back().numbers.push_back(number++);
  }
  return groups;
}

}  // namespace

// --- CaptureStream ---

CaptureStream::CaptureStream(Device device) {
  runtime::set_device(device);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CaptureStream::~CaptureStream() {
  if (capturing_) {  // something was thrown meanwhile
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(stream_, &broken);
    if (broken) cudaGraphDestroy(broken);
    cudaGetLastError();
  }
  cudaStreamDestroy(stream_);
}

void CaptureStream::begin() {
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  capturing_ = true;
}

cudaGraph_t CaptureStream::end() {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_, &graph));
  return graph;
}

void CaptureStream::depend_on(GraphNodes nodes) {
  sort_unique(nodes);
  check(cudaStreamUpdateCaptureDependencies(stream_, nodes.data(),
#if CUDART_VERSION >= 13000
                                            nullptr,
#endif
                                            nodes.size(), cudaStreamSetCaptureDependencies));
}

GraphNodes CaptureStream::frontier() const {
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = look_at_frontier(&nodes);
  return GraphNodes(nodes, nodes + count);
}

cudaGraphNode_t CaptureStream::last_node() const {
  const cudaGraphNode_t* nodes = nullptr;
  look_at_frontier(&nodes);
  return nodes[0];
}

std::size_t CaptureStream::look_at_frontier(const cudaGraphNode_t** nodes) const {
  cudaStreamCaptureStatus status;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, nodes, nullptr, &count));
#else
  check(cudaStreamGetCaptureInfo_v2(stream_, &status, nullptr, nullptr, nodes, &count));
#endif
  return count;
}

CaptureLaunch CopyGroup::launch() const {
  long long total = 0;
  for (const StepPlace& place : places) total += place.nbytes;
  return capture_launch(total);
}

template <class Params> void GivenNode<Params>::give(cudaGraphExec_t exec, const Params& params) {
  if (is_given && std::memcmp(&given, &params, sizeof(Params)) == 0) return;
  void* arguments[] = {const_cast<Params*>(&params)};
  cudaKernelNodeParams node_params{};
  node_params.func = const_cast<void*>(kernel);
  node_params.gridDim = dim3(dims.grid);
  node_params.blockDim = dim3(dims.block);
  node_params.kernelParams = arguments;
  check(cudaGraphExecKernelNodeSetParams(exec, node, &node_params));
  given = params;
  is_given = true;
}

StepRoom room_of(const GraphNodes& nodes) {
  StepRoom largest{0, 0};
  for (cudaGraphNode_t node : nodes) {
    StepRoom room = room_of(node);
    if (room.block > largest.block) largest = room;
  }
  return largest;
}

// --- PartGraph ---

PartGraph::PartGraph(Device device, const std::vector<StepPlace>& inputs,
                     const std::vector<StepPlace>& results, int num_slots, std::size_t num_lanes)
    : device_(device),
      num_slots_(num_slots),
      scalar_block_(allocate(8 * std::max(num_slots, 1), device)),
      semaphores_(allocate(static_cast<std::int64_t>(num_lanes) * kSemaphores * 4, device)),
      input_groups_(groups_of(inputs, device)),
      result_groups_(groups_of(results, device)) {
  context_ = make_context(current_stream_state(device), 0);
  last_stream_ = static_cast<cudaStream_t>(context_.handle);
  check(cudaMemsetAsync(semaphores_->data(), 0, static_cast<std::size_t>(semaphores_->nbytes()),
                        last_stream_));
  capturing_.emplace(device);
  context_.handle = capturing_->get();
  capturing_->begin();
}

// A launch may still be running: its memory goes back through the stream's order, and the driver
// keeps the graph until it is done.
PartGraph::~PartGraph() {
  if (exec_) cudaGraphExecDestroy(exec_);
  if (graph_) cudaGraphDestroy(graph_);
  if (done_) cudaEventDestroy(done_);
}

template <class Params>
GivenNode<Params> PartGraph::queue(const void* kernel, CaptureLaunch dims, Params params) {
  void* arguments[] = {&params};
  launch_address("capture", context_, kernel, dim3(dims.grid), static_cast<int>(dims.block),
                 arguments, 0);
  return {capturing_->last_node(), kernel, dims};
}

void PartGraph::add_copies_in() {
  runtime::set_device(device_);
  CaptureLaunch dims = input_groups_.empty() ? capture_launch(0) : input_groups_[0].launch();
  prologue_node_ = queue(prologue_kernel(), dims, prologue(nullptr));
  for_more_scalars([&](int slot) {
    more_scalars_nodes_.push_back(
        queue(more_scalars_kernel(), kMoreScalarsLaunch, more_scalars(nullptr, slot)));
  });
  GraphNodes before = start();
  for (std::size_t k = 1; k < input_groups_.size(); ++k) {
    capturing_->depend_on(before);
    input_groups_[k].node = queue(copies_kernel(), input_groups_[k].launch(), CopiesParams{});
  }
}

GraphNodes PartGraph::start() const {
  GraphNodes nodes;
  for (std::size_t k = 1; k < input_groups_.size(); ++k) {
    if (input_groups_[k].node.node) nodes.push_back(input_groups_[k].node.node);
  }
  if (nodes.empty()) {
    nodes.push_back(more_scalars_nodes_.empty() ? prologue_node_.node
                                                : more_scalars_nodes_.back().node);
  }
  return nodes;
}

LaunchContext PartGraph::context_of(const StepNode& step, const CaptureStream& capturing) {
  runtime::set_device(device_);
  BindScalars bind(scalar_block_->data());
  step.operation->visit(bind);
  LaunchContext context = context_;
  context.handle = capturing.get();
  context.workspace = step.workspace;
  context.workspace_bytes = step.workspace_bytes;
  context.semaphores = reinterpret_cast<unsigned*>(semaphores_->data()) + step.lane * kSemaphores;
  return context;
}

GraphNodes PartGraph::add(const StepNode& step, GraphNodes before, bool early) {
  LaunchContext context = context_of(step, *capturing_);
  // CUDA lets a kernel come early behind one node alone. A kernel that should not come early
  // follows the first node too, unless it follows nothing else: that is soon done.
  sort_unique(before);
  if (!early && before.size() == 1) before.push_back(prologue_node_.node);
  capturing_->depend_on(std::move(before));
  step.operation->run_cuda(context);
  return capturing_->frontier();
}

StepRoom PartGraph::room_of(const StepNode& step) {
  CaptureStream apart(device_);
  LaunchContext context = context_of(step, apart);
  apart.begin();
  step.operation->run_cuda(context);
  auto destroy = [](cudaGraph_t graph) { cudaGraphDestroy(graph); };
  std::unique_ptr<CUgraph_st, decltype(destroy)> graph(apart.end(), destroy);
  return cuda::room_of(nodes_of(graph.get()));
}

GraphNodes PartGraph::add(const void* crossing_kernel, CrossingParams params, GraphNodes before) {
  runtime::set_device(device_);
  capturing_->depend_on(std::move(before));
  return {queue(crossing_kernel, kCrossingLaunch, params).node};
}

GraphNodes PartGraph::add_copies_out(const std::vector<GraphNodes>& before) {
  runtime::set_device(device_);
  GraphNodes last;
  for (CopyGroup& group : result_groups_) {
    GraphNodes all = start();
    for (std::size_t number : group.numbers) {
      all.insert(all.end(), before[number].begin(), before[number].end());
    }
    capturing_->depend_on(std::move(all));
    group.node = queue(copies_kernel(), group.launch(), CopiesParams{});
    last.push_back(group.node.node);
  }
  return last;
}

void PartGraph::finish(GraphNodes last, const GraphNodes& hurried) {
  runtime::set_device(device_);
  capturing_->depend_on(std::move(last));
  graph_ = capturing_->end();
  capturing_.reset();
  set_priorities(graph_, device_, hurried, runtime::stream_priority(last_stream_));
  check(cudaGraphInstantiate(&exec_, graph_, cudaGraphInstantiateFlagUseNodePriority));
  check(cudaGraphUpload(exec_, last_stream_));
}

void PartGraph::set(StreamState* stream, const std::uint64_t* slots,
                    const std::vector<const void*>& inputs, const std::vector<void*>& results) {
  runtime::set_device(device_);
  scalar_block_->use_on(stream);
  semaphores_->use_on(stream);
  set_front(slots, inputs);
  set_back(results);
}

void PartGraph::launch(StreamState* stream) {
  auto handle = static_cast<cudaStream_t>(make_context(stream, 0).handle);
  follow_last(handle);
  timeline::Span span(timeline::Kind::operation, "recorded step", device_);
  check(cudaGraphLaunch(exec_, handle));
}

/// Launches share the graph's memory: one on another stream waits for the one before.
void PartGraph::follow_last(cudaStream_t handle) {
  if (last_stream_ == handle) return;
  if (!done_) check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  check(cudaEventRecord(done_, last_stream_));
  check(cudaStreamWaitEvent(handle, done_, 0));
  last_stream_ = handle;
}

/// Gives the nodes at the front this launch's numbers and inputs.
void PartGraph::set_front(const std::uint64_t* slots, const std::vector<const void*>& sources) {
  auto add = [&](auto& params, const CopyGroup& group) {
    for (std::size_t i = 0; i < group.places.size(); ++i) {
      params.copies[params.num_copies++] = {sources[group.addresses[i]], group.places[i].data,
                                            group.places[i].nbytes};
    }
  };
  PrologueParams first = prologue(slots);
  if (!input_groups_.empty()) add(first, input_groups_[0]);
  prologue_node_.give(exec_, first);
  auto node = more_scalars_nodes_.begin();
  for_more_scalars([&](int slot) { (node++)->give(exec_, more_scalars(slots, slot)); });
  for (std::size_t k = 1; k < input_groups_.size(); ++k) {
    CopiesParams params{};
    add(params, input_groups_[k]);
    input_groups_[k].node.give(exec_, params);
  }
}

void PartGraph::set_back(const std::vector<void*>& destinations) {
  for (CopyGroup& group : result_groups_) {
    CopiesParams params{};
    for (std::size_t i = 0; i < group.places.size(); ++i) {
      params.copies[params.num_copies++] = {group.places[i].data, destinations[group.addresses[i]],
                                            group.places[i].nbytes};
    }
    group.node.give(exec_, params);
  }
}

PrologueParams PartGraph::prologue(const std::uint64_t* slots) const {
  PrologueParams params{};
  params.num_scalars = std::min(num_slots_, kMaxCaptureScalars);
  if (slots) std::copy_n(slots, params.num_scalars, params.scalars);
  params.scalar_block = scalar_block_->data();
  return params;
}

/// The numbers from slot `first` on, which one kernel has room for.
MoreScalarsParams PartGraph::more_scalars(const std::uint64_t* slots, int first) const {
  MoreScalarsParams params{};
  params.num_scalars = std::min(num_slots_ - first, kMaxMoreCaptureScalars);
  if (slots) std::copy_n(slots + first, params.num_scalars, params.scalars);
  params.scalar_block = scalar_block_->data() + 8 * static_cast<std::ptrdiff_t>(first);
  return params;
}

/// Calls `f(first)` for each kernel of further numbers.
template <class F> void PartGraph::for_more_scalars(F&& f) const {
  for (int first = kMaxCaptureScalars; first < num_slots_; first += kMaxMoreCaptureScalars) {
    f(first);
  }
}

}  // namespace rensa::cuda
