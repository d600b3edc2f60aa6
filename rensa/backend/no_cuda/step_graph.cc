// A build without CUDA has no device whose work could become a CUDA graph.
#include "rensa/device/step_graph.h"

#include "rensa/core/error.h"

namespace rensa::cuda {

struct StepGraph::Impl {};

// NOLINTBEGIN(performance-unnecessary-value-param): the CUDA build's moves its parameters
StepGraph::StepGraph(Device, const std::vector<StepNode>&, std::vector<StepPlace>,
                     std::vector<StepPlace>, int) {
  throw NotImplementedError("capture: this build of Rensa has no CUDA (RENSA_CUDA=OFF)");
}
// NOLINTEND(performance-unnecessary-value-param)
StepGraph::~StepGraph() = default;
void StepGraph::launch(const std::vector<const void*>&, const std::vector<std::uint64_t>&,
                       const std::vector<void*>&) {}

}  // namespace rensa::cuda
