// The links of a build without CUDA: there are none.
#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/operations/exchange/gpu_links.h"

namespace rensa::cuda {

namespace {
constexpr char kAbsent[] = "this build of Rensa has no CUDA and so no GPUs to connect";
}  // namespace

struct GpuLinks::Impl {};

GpuLinks::Greeting GpuLinks::greeting(Device, bool) {
  Greeting result;
  static_assert(sizeof(kAbsent) <= sizeof(result.refusal));
  std::ranges::copy(kAbsent, result.refusal);
  return result;
}
GpuLinks::GpuLinks(std::shared_ptr<communication::Transport>, Device, const Greeting&) {
  throw DeviceError(kAbsent);
}
GpuLinks::~GpuLinks() = default;
void GpuLinks::note(const communication::Label&, std::span<const communication::Outgoing>,
                    std::span<const communication::Incoming>) {
  throw DeviceError(kAbsent);
}
void GpuLinks::exchange(std::span<const communication::Outgoing>,
                        std::span<const communication::Incoming>, const LaunchContext&) {
  throw DeviceError(kAbsent);
}

}  // namespace rensa::cuda
