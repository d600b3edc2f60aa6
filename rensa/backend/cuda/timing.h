// How long work takes on a GPU: for choosing among ways to compute the same.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace rensa::cuda {

/// Whether the stream is being captured: nothing can be timed or waited for then.
bool is_capturing(cudaStream_t stream);

/// A clock of the work on a stream. `operation` stands in errors and in the account of waits, and
/// has to outlive it. `queue`, which the functions take, puts the work on the stream and returns
/// whether it could.
class RunTimer {
 public:
  using Queue = std::function<bool()>;

  RunTimer(const char* operation, cudaStream_t stream);
  ~RunTimer();
  RunTimer(const RunTimer&) = delete;
  RunTimer& operator=(const RunTimer&) = delete;

  /// Microseconds of one run, with what the host needs to queue it. Infinity where it cannot be
  /// queued. Waits.
  float once(const Queue& queue);
  /// Microseconds of one run: the median of `rounds`, each of them a CUDA graph of several runs, so
  /// that the GPU's time is seen and not the host's. Infinity where the work cannot be queued or
  /// captured. Waits.
  float median(int rounds, const Queue& queue);

 private:
  float elapsed();

  const char* operation_;
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace rensa::cuda
