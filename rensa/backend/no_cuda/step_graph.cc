// A build without CUDA has no device whose work could become a CUDA graph.
#include "rensa/device/step_graph.h"

#include "rensa/core/error.h"

namespace rensa::cuda {

struct StepGraph::Impl {};

StepGraph::StepGraph(const std::vector<Device>&, const std::vector<StepNode>&,
                     const std::vector<StepPlace>&, const std::vector<StepPlace>&, int) {
  throw NotImplementedError("capture: this build of Rensa has no CUDA (RENSA_CUDA=OFF)");
}
StepGraph::~StepGraph() = default;
void StepGraph::launch(const std::vector<const void*>&, const std::vector<std::uint64_t>&,
                       const std::vector<void*>&) {}

}  // namespace rensa::cuda
