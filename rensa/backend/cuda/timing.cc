// Timing by events around CUDA graphs.
#include "rensa/backend/cuda/timing.h"

#include <algorithm>
#include <limits>
#include <optional>
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
  RunGraph(const char* operation, cudaStream_t stream, int runs, const RunTimer::Queue& queue)
      : runs_(runs) {
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
  int runs() const { return runs_; }

 private:
  int runs_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Runs that fill a round, of `time` microseconds each.
int runs_of_round(float time) {
  constexpr float kRound = 300;  // microseconds that a round shall take
  return static_cast<int>(std::clamp(kRound / std::max(time, 1.0f), 1.0f, 32.0f));
}

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
  auto per_run = [this](const RunGraph& graph) {
    RENSA_CUDA_CHECK(operation_, cudaEventRecord(start_, stream_));
    RENSA_CUDA_CHECK(operation_, cudaGraphLaunch(graph.get(), stream_));
    return elapsed() / static_cast<float>(graph.runs());
  };
  int runs = runs_of_round(first);
  std::optional<RunGraph> graph(std::in_place, operation_, stream_, runs, queue);
  if (!graph->get()) return kNever;
  float time = per_run(*graph);  // warms the caches
  // The host may have needed longer to queue a run than the GPU for it. Of work that takes the same
  // there have to be as many runs in a round, as the start of a graph is part of each.
  if (int more = runs_of_round(time); more > runs) {
    graph.emplace(operation_, stream_, more, queue);
    if (!graph->get()) return kNever;
    per_run(*graph);
  }
  std::vector<float> times;
  for (int i = 0; i < rounds; ++i) times.push_back(per_run(*graph));
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace rensa::cuda
