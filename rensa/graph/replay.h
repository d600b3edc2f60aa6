// Replay: a planned recording, ready to run again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/graph/plan.h"
#include "rensa/graph/recording.h"

namespace rensa {

class Replay {
 public:
  virtual ~Replay() = default;
  /// Queues one run on the device's current stream: `inputs` stand for the recorded inputs, `slots`
  /// are the host's numbers of this run (the bits of doubles and integers), and `results`, which
  /// nobody else works with yet, receive the recorded outputs. Arrays are dense and lie as those of
  /// the recording do. The step works on copies of them, or where they lie themselves.
  virtual void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
                      const std::vector<Array>& results) = 0;
};

/// `inputs` are the arrays that the step was recorded with. Throws CudaError where the operations
/// cannot be made into CUDA graphs.
std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs);
/// Runs the list operation by operation, on any device: what the tests hold the graph against.
std::unique_ptr<Replay> make_list_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs);

}  // namespace rensa
