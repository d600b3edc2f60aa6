// StepGraph: capturing a list of operations with the order that the caller gives, and its launches.
#include "rensa/device/step_graph.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <span>
#include <utility>

#include "rensa/backend/cuda/capture_kernels.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/stream.h"
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

/// Owns the stream that a graph is captured on.
class CaptureStream {
 public:
  CaptureStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
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
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t* nodes = nullptr;
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    check(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else
    check(cudaStreamGetCaptureInfo_v2(stream_, &status, nullptr, nullptr, &nodes, &count));
#endif
    return std::vector<cudaGraphNode_t>(nodes, nodes + count);
  }

 private:
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

/// Places that one kernel copies to or from.
using Places = std::span<const StepPlace>;

std::vector<Places> parts_of(const std::vector<StepPlace>& all) {
  std::vector<Places> parts;
  for (Places rest(all); !rest.empty(); rest = rest.subspan(parts.back().size())) {
    parts.push_back(rest.first(std::min<std::size_t>(rest.size(), kMaxCaptureCopies)));
  }
  return parts;
}

CaptureLaunch launch_of(Places places) {
  long long total = 0;
  for (const StepPlace& place : places) total += place.nbytes;
  return capture_launch(total);
}

template <class Params>
void queue(const void* kernel, CaptureLaunch dims, Params& params, cudaStream_t stream) {
  void* arguments[] = {&params};
  check(cudaLaunchKernel(kernel, dim3(dims.grid), dim3(dims.block), arguments, 0, stream));
}

}  // namespace

struct StepGraph::Impl {
  Device device;
  std::vector<StepPlace> inputs, results;
  int num_slots;
  StoragePtr scalar_block, semaphores;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t prologue_node = nullptr;
  // Behind the prologue: further numbers, one behind the other, and then further inputs, side by
  // side.
  Nodes more_scalars_nodes, more_inputs_nodes;
  Nodes results_nodes;
  std::vector<Places> input_parts, result_parts;  // the prologue's first
  cudaStream_t last_stream = nullptr;
  cudaEvent_t done = nullptr;

  // A launch may still be running: its memory goes back through the stream's order, and the driver
  // keeps the graph until it is done.
  ~Impl() {
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
    if (done) cudaEventDestroy(done);
  }

  PrologueParams prologue(const std::uint64_t* slots) const {
    PrologueParams params{};
    params.num_scalars = std::min(num_slots, kMaxCaptureScalars);
    if (slots) std::copy_n(slots, params.num_scalars, params.scalars);
    params.scalar_block = scalar_block->data();
    return params;
  }

  /// The numbers from slot `first` on, which one kernel has room for.
  MoreScalarsParams more_scalars(const std::uint64_t* slots, int first) const {
    MoreScalarsParams params{};
    params.num_scalars = std::min(num_slots - first, kMaxMoreCaptureScalars);
    if (slots) std::copy_n(slots + first, params.num_scalars, params.scalars);
    params.scalar_block = scalar_block->data() + 8 * static_cast<std::ptrdiff_t>(first);
    return params;
  }

  /// Calls `f(first)` for each kernel of further numbers.
  template <class F> void for_more_scalars(F&& f) const {
    for (int first = kMaxCaptureScalars; first < num_slots; first += kMaxMoreCaptureScalars) {
      f(first);
    }
  }

  /// What an operation that waits for no other one waits for.
  Nodes start() const {
    if (!more_inputs_nodes.empty()) return more_inputs_nodes;
    return {more_scalars_nodes.empty() ? prologue_node : more_scalars_nodes.back()};
  }

  CaptureLaunch prologue_launch() const {
    return launch_of(input_parts.empty() ? Places() : input_parts[0]);
  }

  /// The prologue and what follows it.
  void add_copies_in(CaptureStream& capturing) {
    input_parts = parts_of(inputs);
    PrologueParams first = prologue(nullptr);
    queue(prologue_kernel(), prologue_launch(), first, capturing.get());
    prologue_node = capturing.frontier().at(0);
    for_more_scalars([&](int slot) {
      MoreScalarsParams more = more_scalars(nullptr, slot);
      queue(more_scalars_kernel(), kMoreScalarsLaunch, more, capturing.get());
      more_scalars_nodes.push_back(capturing.frontier().at(0));
    });
    Nodes before = start();
    for (std::size_t k = 1; k < input_parts.size(); ++k) {
      capturing.depend_on(before);
      CopiesParams params{};
      queue(copies_kernel(), launch_of(input_parts[k]), params, capturing.get());
      more_inputs_nodes.push_back(capturing.frontier().at(0));
    }
  }

  void add_nodes(CaptureStream& capturing, const std::vector<StepNode>& steps,
                 LaunchContext context) {
    context.handle = capturing.get();
    add_copies_in(capturing);
    std::vector<Nodes> last;  // of each operation
    BindScalars bind(scalar_block->data());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Nodes before;
      for (int j : steps[i].dependencies) append(before, last[static_cast<std::size_t>(j)]);
      if (before.empty()) before = start();
      capturing.depend_on(before);
      steps[i].operation->visit(bind);
      context.workspace = steps[i].workspace;
      context.workspace_bytes = steps[i].workspace_bytes;
      context.semaphores =
          reinterpret_cast<unsigned*>(semaphores->data()) + steps[i].lane * kSemaphores;
      steps[i].operation->run_cuda(context);
      last.push_back(capturing.frontier());
    }
    Nodes all;  // the stream ends after every branch
    for (const Nodes& nodes : last) append(all, nodes);
    add_copies_out(capturing, last);
    append(all, results_nodes);
    sort_unique(all);
    capturing.depend_on(all);
  }

  /// The results leave as soon as those of one kernel are there, beside what still runs.
  void add_copies_out(CaptureStream& capturing, const std::vector<Nodes>& last) {
    result_parts = parts_of(results);
    for (Places part : result_parts) {
      Nodes before = start();
      for (const StepPlace& result : part) {
        for (int writer : result.writers) append(before, last[static_cast<std::size_t>(writer)]);
      }
      sort_unique(before);
      capturing.depend_on(before);
      CopiesParams params{};
      queue(copies_kernel(), launch_of(part), params, capturing.get());
      results_nodes.push_back(capturing.frontier().at(0));
    }
  }

  template <class Params>
  void set_params(cudaGraphNode_t node, const void* kernel, CaptureLaunch dims, Params& params) {
    void* arguments[] = {&params};
    cudaKernelNodeParams node_params{};
    node_params.func = const_cast<void*>(kernel);
    node_params.gridDim = dim3(dims.grid);
    node_params.blockDim = dim3(dims.block);
    node_params.kernelParams = arguments;
    check(cudaGraphExecKernelNodeSetParams(exec, node, &node_params));
  }

  /// Gives the nodes at the front this launch's numbers and inputs.
  void set_front(const std::uint64_t* slots, const std::vector<const void*>& sources) {
    auto add = [&](auto& params, std::size_t part) {
      if (part == input_parts.size()) return;
      for (const StepPlace& input : input_parts[part]) {
        const void* source = sources[part * kMaxCaptureCopies + params.num_copies];
        params.copies[params.num_copies++] = {source, input.data, input.nbytes};
      }
    };
    PrologueParams first = prologue(slots);
    add(first, 0);
    set_params(prologue_node, prologue_kernel(), prologue_launch(), first);
    auto node = more_scalars_nodes.begin();
    for_more_scalars([&](int slot) {
      MoreScalarsParams more = more_scalars(slots, slot);
      set_params(*node++, more_scalars_kernel(), kMoreScalarsLaunch, more);
    });
    for (std::size_t k = 0; k < more_inputs_nodes.size(); ++k) {
      CopiesParams params{};
      add(params, k + 1);
      set_params(more_inputs_nodes[k], copies_kernel(), launch_of(input_parts[k + 1]), params);
    }
  }
  void set_back(const std::vector<void*>& destinations) {
    for (std::size_t k = 0; k < result_parts.size(); ++k) {
      CopiesParams params{};
      for (const StepPlace& result : result_parts[k]) {
        void* destination = destinations[k * kMaxCaptureCopies + params.num_copies];
        params.copies[params.num_copies++] = {result.data, destination, result.nbytes};
      }
      set_params(results_nodes[k], copies_kernel(), launch_of(result_parts[k]), params);
    }
  }

  /// Launches share the graph's memory: one on another stream waits for the one before.
  void follow_last(StreamState* stream, cudaStream_t handle) {
    if (last_stream == handle) return;
    if (!done) check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    check(cudaEventRecord(done, last_stream));
    check(cudaStreamWaitEvent(handle, done, 0));
    scalar_block->use_on(stream);
    semaphores->use_on(stream);
    last_stream = handle;
  }
};

StepGraph::StepGraph(Device device, const std::vector<StepNode>& nodes,
                     std::vector<StepPlace> inputs, std::vector<StepPlace> results, int num_slots)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = device;
  impl_->inputs = std::move(inputs);
  impl_->results = std::move(results);
  impl_->num_slots = num_slots;
  impl_->scalar_block = allocate(8 * std::max(num_slots, 1), device);
  std::size_t num_lanes = 0;
  for (const StepNode& node : nodes) num_lanes = std::max(num_lanes, node.lane + 1);
  impl_->semaphores = allocate(static_cast<std::int64_t>(num_lanes) * kSemaphores * 4, device);
  LaunchContext context = make_context(current_stream_state(device), 0);
  impl_->last_stream = static_cast<cudaStream_t>(context.handle);
  check(cudaMemsetAsync(impl_->semaphores->data(), 0,
                        static_cast<std::size_t>(impl_->semaphores->nbytes()), impl_->last_stream));
  CaptureStream capturing;
  check(cudaStreamBeginCapture(capturing.get(), cudaStreamCaptureModeRelaxed));
  try {
    impl_->add_nodes(capturing, nodes, context);
  } catch (...) {
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(capturing.get(), &broken);
    if (broken) cudaGraphDestroy(broken);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(capturing.get(), &impl_->graph));
  check(cudaGraphInstantiate(&impl_->exec, impl_->graph, 0));
  check(cudaGraphUpload(impl_->exec, impl_->last_stream));
}

StepGraph::~StepGraph() = default;

void StepGraph::launch(const std::vector<const void*>& inputs,
                       const std::vector<std::uint64_t>& slots, const std::vector<void*>& results) {
  StreamState* stream = current_stream_state(impl_->device);
  auto handle = static_cast<cudaStream_t>(make_context(stream, 0).handle);
  impl_->set_front(slots.data(), inputs);
  impl_->set_back(results);
  impl_->follow_last(stream, handle);
  timeline::Span span(timeline::Kind::operation, "recorded step", impl_->device);
  check(cudaGraphLaunch(impl_->exec, handle));
}

}  // namespace rensa::cuda
