// Images looked at in places between their elements, and the gradients.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/spatial_sampling/sample_axis.h"

namespace rensa::operations {

enum class SampleMode : unsigned char {
  values,          // out = x in the places
  keys,            // out = the places' keys (SampleOrder), int64; images without a place have none
  grid_gradient,   // out = the gradient of grid
  image_gradient,  // out = the gradient of x, added in the order of keys
};

/// x (n, channels, height, width), grid (n, 2, rows, columns), whose coordinates are x and y, and
/// the values' gradient gy (n, channels, rows, columns): C-contiguous and of one floating dtype. Of
/// float16 and bfloat16 places, shares and sums are float32. `order` and `starts`, int64, are what
/// SampleOrder's keys are sorted by, and where among them keys 0 to count() begin.
struct SpatialSampling final : KindOf<SpatialSampling> {
  SpatialSampling(const char* name, SampleMode m) : KindOf(name), mode(m) {}
  SampleMode mode;
  std::int64_t images = 0, channels = 0, places = 0;  // places of an image
  int rows = 0, columns = 0;                          // of an image
  Operand x, grid, gy, order, starts, out;

  template <class V> void fields(V& v) {
    v.read(x, grid, gy, order, starts), v.write(out);
    v.number(mode, images, channels, places, rows, columns);
  }
  SampleOrder sample_order() const { return {images, rows, columns}; }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
