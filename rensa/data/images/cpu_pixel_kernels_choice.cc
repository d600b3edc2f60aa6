// Which set's kernels are taken.
#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/data/images/cpu_pixel_kernels.h"

namespace rensa::host {

RENSA_EACH_SET(PixelKernels get_pixel_kernels();)

const PixelKernels& pixel_kernels() {
  static const PixelKernels kernels = RENSA_IN_SET(best_instruction_set(), get_pixel_kernels)();
  return kernels;
}

}  // namespace rensa::host
