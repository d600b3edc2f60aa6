// Timing by events around CUDA graphs.
#include "rensa/backend/cuda/timing.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "rensa/backend/cuda/check.h"
#include "rensa/device/launcher.h"

namespace rensa::cuda {

namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// A graph of runs, ready to launch.
class RunGraph {
 public:
  /// Of `runs` times what `queue` puts on the stream; where it fails there is no graph.
  RunGraph(const char* operation, cudaStream_t stream, int runs, const RunTimer::Queue& queue) {
    RENSA_CUDA_CHECK(operation, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    bool queued = true;
    for (int i = 0; i < runs; ++i) queued = queued && queue();
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (queued && error == cudaSuccess) error = cudaGraphInstantiate(&graph_, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (error != cudaSuccess) {
      graph_ = nullptr;
      cudaGetLastError();
    }
  }
  ~RunGraph() {
    if (graph_) cudaGraphExecDestroy(graph_);
  }
  RunGraph(const RunGraph&) = delete;
  RunGraph& operator=(const RunGraph&) = delete;
  cudaGraphExec_t get() const { return graph_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // The legacy stream answers with an error while another stream is captured.
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) {
    return status != cudaStreamCaptureStatusNone;
  }
  cudaGetLastError();
  return true;
}

RunTimer::RunTimer(const char* operation, cudaStream_t stream)
    : operation_(operation), stream_(stream) {
  RENSA_CUDA_CHECK(operation, cudaEventCreate(&start_));
  if (cudaError_t error = cudaEventCreate(&stop_); error != cudaSuccess) {
    cudaEventDestroy(start_);
    throw_cuda_error(operation, error);
  }
}

RunTimer::~RunTimer() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

float RunTimer::elapsed() {
  RENSA_CUDA_CHECK(operation_, cudaEventRecord(stop_, stream_));
  count_sync(operation_);
  RENSA_CUDA_CHECK(operation_, cudaEventSynchronize(stop_));
  float milliseconds = 0;
  RENSA_CUDA_CHECK(operation_, cudaEventElapsedTime(&milliseconds, start_, stop_));
  return 1000 * milliseconds;
}

float RunTimer::once(const Queue& queue) {
  RENSA_CUDA_CHECK(operation_, cudaEventRecord(start_, stream_));
  return queue() ? elapsed() : kNever;
}

float RunTimer::median(int rounds, const Queue& queue) {
  float first = once(queue);
  if (first == kNever) return kNever;
  constexpr float kRound = 300;  // microseconds that a round shall take
  int runs = static_cast<int>(std::clamp(kRound / std::max(first, 1.0f), 1.0f, 32.0f));
  RunGraph graph(operation_, stream_, runs, queue);
  if (!graph.get()) return kNever;
  RENSA_CUDA_CHECK(operation_, cudaGraphLaunch(graph.get(), stream_));  // warms the caches
  std::vector<float> times;
  for (int i = 0; i < rounds; ++i) {
    RENSA_CUDA_CHECK(operation_, cudaEventRecord(start_, stream_));
    RENSA_CUDA_CHECK(operation_, cudaGraphLaunch(graph.get(), stream_));
    times.push_back(elapsed() / static_cast<float>(runs));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace rensa::cuda
