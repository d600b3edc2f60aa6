// A build without CUDA has no device whose work could become a CUDA graph.
#include "rensa/core/error.h"
#include "rensa/graph/replay.h"

namespace rensa {

std::unique_ptr<Replay> make_cuda_replay(std::shared_ptr<Recording>, Plan, std::vector<Array>) {
  throw NotImplementedError("capture: this build of Rensa has no CUDA (RENSA_CUDA=OFF)");
}

}  // namespace rensa
