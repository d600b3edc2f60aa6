// A planned recording as one CUDA graph. Its first node copies this run's inputs and host numbers in,
// its last copies the results out; both get their addresses in their kernel arguments, which are
// set anew for each launch, so nothing that a running replay reads is ever overwritten by the host.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "rensa/backend/cuda/capture_kernels.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/graph/replay.h"

namespace rensa {

namespace {

using cuda::CopyOutParams;
using cuda::PrologueParams;

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
  CaptureStream() { RENSA_CUDA_CHECK("capture", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CaptureStream() { cudaStreamDestroy(stream_); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  cudaStream_t get() const { return stream_; }

  /// What is queued next runs after `nodes`.
  void depend_on(std::vector<cudaGraphNode_t>& nodes) {
#if CUDART_VERSION >= 13000
    RENSA_CUDA_CHECK("capture", cudaStreamUpdateCaptureDependencies(stream_, nodes.data(), nullptr, nodes.size(),
                                                         cudaStreamSetCaptureDependencies));
#else
    RENSA_CUDA_CHECK("capture", cudaStreamUpdateCaptureDependencies(stream_, nodes.data(), nodes.size(),
                                                         cudaStreamSetCaptureDependencies));
#endif
  }

  /// The nodes that what is queued next would run after.
  std::vector<cudaGraphNode_t> frontier() {
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t* nodes = nullptr;
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    RENSA_CUDA_CHECK("capture", 
        cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else
    RENSA_CUDA_CHECK("capture", cudaStreamGetCaptureInfo_v2(stream_, &status, nullptr, nullptr, &nodes, &count));
#endif
    return {nodes, nodes + count};
  }

 private:
  cudaStream_t stream_ = nullptr;
};

void add_copy(PrologueParams::Copy* copies, int* count, const Array& from, const Array& to) {
  copies[(*count)++] = {from.data(), to.data(), static_cast<long long>(to.nbytes())};
}

class GraphReplay final : public Replay {
 public:
  GraphReplay(std::shared_ptr<Recording> recording, Plan plan, std::vector<Array> inputs)
      : recording_(std::move(recording)), plan_(std::move(plan)), inputs_(std::move(inputs)) {
    if (inputs_.size() > cuda::kMaxCaptureCopies ||
        recording_->outputs.size() > cuda::kMaxCaptureCopies) {
      throw NotImplementedError("it takes or gives more than " +
                                std::to_string(cuda::kMaxCaptureCopies) + " arrays");
    }
    if (recording_->num_slots > cuda::kMaxCaptureScalars) {
      throw NotImplementedError("the host computes more than " +
                                std::to_string(cuda::kMaxCaptureScalars) + " numbers for it");
    }
    Device device = recording_->device();
    std::int64_t scalar_bytes = 8 * std::max(recording_->num_slots, 1);
    auto n = static_cast<std::int64_t>(recording_->operations.size());
    scalar_block_ = allocate(scalar_bytes, device);
    semaphores_ = allocate(n * cuda::kSemaphores * 4, device);
    capture(device);
  }

  ~GraphReplay() override {
    // A launch may still be running: the memory goes back through the stream's order, the graph
    // itself is kept alive by the driver until it is done.
    if (exec_) cudaGraphExecDestroy(exec_);
    if (graph_) cudaGraphDestroy(graph_);
    if (done_) cudaEventDestroy(done_);
  }

  void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<Array>& results) override {
    cuda::StreamState* stream = cuda::current_stream_state(recording_->device());
    auto handle = static_cast<cudaStream_t>(cuda::make_context(stream, 0).handle);
    PrologueParams prologue{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      add_copy(prologue.copies, &prologue.num_copies, inputs[i], inputs_[i]);
      inputs[i].storage()->use_on(stream);
    }
    set_scalars(prologue, slots);
    set_params(prologue_node_, cuda::prologue_kernel(), prologue_dims_, &prologue);
    if (!results.empty()) {
      CopyOutParams copy_out{};
      for (std::size_t i = 0; i < results.size(); ++i) {
        add_copy(copy_out.copies, &copy_out.num_copies, recording_->outputs[i].array, results[i]);
        results[i].storage()->use_on(stream);
      }
      set_params(copy_out_node_, cuda::copy_out_kernel(), copy_out_dims_, &copy_out);
    }
    follow_last_stream(stream, handle);
    RENSA_CUDA_CHECK("capture", cudaGraphLaunch(exec_, handle));
  }

 private:
  struct Dims { unsigned grid, block; };

  void set_scalars(PrologueParams& prologue, const std::vector<std::uint64_t>& slots) const {
    prologue.num_scalars = static_cast<int>(slots.size());
    std::copy(slots.begin(), slots.end(), prologue.scalars);
    prologue.scalar_block = scalar_block_->data();
  }

  template <class Params>
  void set_params(cudaGraphNode_t node, const void* kernel, Dims dims, Params* params) {
    void* arguments[] = {params};
    cudaKernelNodeParams node_params{};
    node_params.func = const_cast<void*>(kernel);
    node_params.gridDim = dim3(dims.grid);
    node_params.blockDim = dim3(dims.block);
    node_params.kernelParams = arguments;
    RENSA_CUDA_CHECK("capture", cudaGraphExecKernelNodeSetParams(exec_, node, &node_params));
  }

  /// Replays share their memory: one on another stream waits for the one before.
  void follow_last_stream(cuda::StreamState* stream, cudaStream_t handle) {
    if (last_stream_ && last_stream_ != handle) {
      if (!done_) RENSA_CUDA_CHECK("capture", cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
      RENSA_CUDA_CHECK("capture", cudaEventRecord(done_, last_stream_));
      RENSA_CUDA_CHECK("capture", cudaStreamWaitEvent(handle, done_, 0));
    }
    if (last_stream_ != handle) {
      for (auto& [storage, holder] : recording_->storages) storage->use_on(stream);
      for (const StoragePtr& p : {plan_.arena, scalar_block_, semaphores_}) p->use_on(stream);
      for (const Array& input : inputs_) input.storage()->use_on(stream);
    }
    last_stream_ = handle;
  }

  void capture(Device device) {
    cuda::StreamState* stream = cuda::current_stream_state(device);
    cuda::LaunchContext context = cuda::make_context(stream, 0);
    RENSA_CUDA_CHECK("capture", cudaMemsetAsync(semaphores_->data(), 0,
                                     static_cast<std::size_t>(semaphores_->nbytes()),
                                     static_cast<cudaStream_t>(context.handle)));
    CaptureStream capturing;
    RENSA_CUDA_CHECK("capture", cudaStreamBeginCapture(capturing.get(), cudaStreamCaptureModeRelaxed));
    try {
      add_nodes(capturing, context);
    } catch (...) {
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(capturing.get(), &broken);
      if (broken) cudaGraphDestroy(broken);
      cudaGetLastError();
      throw;
    }
    RENSA_CUDA_CHECK("capture", cudaStreamEndCapture(capturing.get(), &graph_));
    RENSA_CUDA_CHECK("capture", cudaGraphInstantiate(&exec_, graph_, 0));
    last_stream_ = static_cast<cudaStream_t>(context.handle);
    RENSA_CUDA_CHECK("capture", cudaGraphUpload(exec_, last_stream_));
  }

  void add_nodes(CaptureStream& capturing, cuda::LaunchContext context) {
    context.handle = capturing.get();
    std::vector<cudaGraphNode_t> root{add_prologue(capturing)};
    prologue_node_ = root[0];
    std::vector<std::vector<cudaGraphNode_t>> nodes;  // of each operation, its last ones
    BindScalars bind(scalar_block_->data());
    for (std::size_t i = 0; i < recording_->operations.size(); ++i) {
      std::vector<cudaGraphNode_t> before;
      for (int j : plan_.dependencies[i]) {
        const auto& last = nodes[static_cast<std::size_t>(j)];
        before.insert(before.end(), last.begin(), last.end());
      }
      if (before.empty()) before = root;
      capturing.depend_on(before);
      Operation& operation = *recording_->operations[i];
      operation.visit(bind);
      context.workspace = plan_.workspaces[i];
      context.workspace_bytes = plan_.workspace_bytes[i];
      context.semaphores =
          reinterpret_cast<unsigned*>(semaphores_->data()) + i * cuda::kSemaphores;
      operation.run_cuda(context);
      nodes.push_back(capturing.frontier());
    }
    add_copy_out(capturing, nodes);
    std::vector<cudaGraphNode_t> all;  // the stream ends after every branch
    for (const auto& last : nodes) all.insert(all.end(), last.begin(), last.end());
    if (copy_out_node_) all.push_back(copy_out_node_);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    capturing.depend_on(all);
  }

  cudaGraphNode_t add_prologue(CaptureStream& capturing) {
    PrologueParams params{};
    long long most = 0;
    for (const Array& input : inputs_) {
      add_copy(params.copies, &params.num_copies, input, input);
      most = std::max<long long>(most, input.nbytes());
    }
    set_scalars(params, std::vector<std::uint64_t>(static_cast<std::size_t>(recording_->num_slots)));
    prologue_dims_ = {cuda::copy_grid(most), cuda::kCopyBlock};
    void* arguments[] = {&params};
    RENSA_CUDA_CHECK("capture", cudaLaunchKernel(cuda::prologue_kernel(), dim3(prologue_dims_.grid),
                                      dim3(prologue_dims_.block), arguments, 0, capturing.get()));
    return capturing.frontier().at(0);
  }

  /// The results leave as soon as they are there, beside what still runs.
  void add_copy_out(CaptureStream& capturing,
                    const std::vector<std::vector<cudaGraphNode_t>>& nodes) {
    if (recording_->outputs.empty()) return;
    CopyOutParams params{};
    long long most = 0;
    std::vector<cudaGraphNode_t> before{prologue_node_};
    for (const RecordedOutput& output : recording_->outputs) {
      add_copy(params.copies, &params.num_copies, output.array, output.array);
      most = std::max<long long>(most, output.array.nbytes());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const Access& access : accesses(*recording_->operations[i])) {
          if (access.write && access.storage == output.array.storage().get()) {
            before.insert(before.end(), nodes[i].begin(), nodes[i].end());
          }
        }
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    capturing.depend_on(before);
    copy_out_dims_ = {cuda::copy_grid(most), cuda::kCopyBlock};
    void* arguments[] = {&params};
    RENSA_CUDA_CHECK("capture", cudaLaunchKernel(cuda::copy_out_kernel(), dim3(copy_out_dims_.grid),
                                      dim3(copy_out_dims_.block), arguments, 0, capturing.get()));
    copy_out_node_ = capturing.frontier().at(0);
  }

  std::shared_ptr<Recording> recording_;
  Plan plan_;
  std::vector<Array> inputs_;
  StoragePtr scalar_block_, semaphores_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaGraphNode_t prologue_node_ = nullptr, copy_out_node_ = nullptr;
  Dims prologue_dims_{}, copy_out_dims_{};
  cudaStream_t last_stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

}  // namespace

std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs) {
  return std::make_unique<GraphReplay>(std::move(recording), std::move(plan), std::move(inputs));
}

}  // namespace rensa
