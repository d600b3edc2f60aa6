// Pooling of regions of interest, and the reverse.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/roi_pooling/roi_bins.h"

namespace rensa::operations {

/// mean: of a bin's taps; max: the greatest of them; at: the one of a given number.
enum class RoiMode : unsigned char { mean, max, at };

/// What the two kinds have in common: images (n, channels, height, width), of which roi r looks at
/// number images[r], and bins (rois, channels, out_height, out_width); both C-contiguous and of one
/// floating dtype. rois (r, 4), float64, C-contiguous: where each begins and ends, y and x of both.
/// images (r,) int64. Numbers are those of greatest_of_bin: int64, of the bins' shape.
struct RoiBins {
  RoiMode mode = RoiMode::mean;
  RoiLook look;
  int samples[2] = {0, 0};  // of a bin along height and width; 0: as many as it has elements
  double of_none = 0;       // the greatest of no taps

  template <class V> void number(V& v) const {
    v.number(mode, look.scale, look.aligned, look.inclusive, samples[0], samples[1], of_none);
  }
};

/// y = what `mode` says of each bin. Of `max` the numbers are written, of `at` they are read. A
/// number among `images` that x has not throws IndexError (on the GPU at the next wait).
struct RoiPooling final : KindOf<RoiPooling> {
  explicit RoiPooling(const char* name) : KindOf(name) {}
  RoiBins bins;
  Operand x, rois, images, numbers, y;

  template <class V> void fields(V& v) {
    v.read(x, rois, images);
    if (bins.mode == RoiMode::at) v.read(numbers), v.write(y);
    else v.write(y, numbers);
    bins.number(v);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// gx = for each element the sum of what bins give it of gy: of the mean each tap its part
/// (`mean`), or the tap of the bin's number all (`at`). In the order of rois and bins.
struct RoiPoolingSpread final : KindOf<RoiPoolingSpread> {
  explicit RoiPoolingSpread(const char* name) : KindOf(name) {}
  RoiBins bins;
  Operand gy, rois, images, numbers, gx;

  template <class V> void fields(V& v) {
    v.read(gy, rois, images, numbers), v.write(gx), bins.number(v);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
