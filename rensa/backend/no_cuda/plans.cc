// Library plans of a build without CUDA.
#include "rensa/device/plans.h"

#include "rensa/core/error.h"

namespace rensa::cuda {

void save_plans(const std::string&) {
  throw DeviceError("save_plans: this build of Rensa has no CUDA and so no plans");
}

void load_plans(const std::string&) {
  throw DeviceError("load_plans: this build of Rensa has no CUDA and so no plans");
}

}  // namespace rensa::cuda
