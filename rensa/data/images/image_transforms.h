// What is done to pictures before a network sees them: parts, sizes, colours. Names and meanings
// are ChainerCV's and torchvision's.
//
// A picture is an array (channels, height, width) of uint8 or float32 in host memory, with values
// from 0 to 255; results have its dtype, but for normalize(). What is random is drawn from the
// stream that a TransformDataset gives its function, so that batches do not depend on the number of
// threads. All throw ShapeError for another number of axes, DtypeError for other dtypes, and
// DeviceError for an array on a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/data/random_stream.h"

namespace rensa::transforms {

/// Height and width.
using Size = std::array<std::int64_t, 2>;

// --- parts ---
// Views: they share the picture's memory.

/// `size` pixels from row `y` and column `x` on. Throws ShapeError where that goes beyond the
/// picture, as the others do for a `size` larger than it.
Array crop(const Array& img, std::int64_t y, std::int64_t x, Size size);
/// The middle, as ChainerCV and torchvision round it: of half a pixel to the even one.
Array center_crop(const Array& img, Size size);
/// A part at a random place.
Array random_crop(const Array& img, Size size, RandomStream& random);

struct RandomSizedCropOptions {
  std::array<double, 2> scale_ratio_range = {0.08, 1};  // of the picture's area
  std::array<double, 2> aspect_ratio_range = {3.0 / 4,
                                              4.0 / 3};  // height to width; or width to height
};
/// A part of random size, proportions and place, as GoogLeNet was trained with. With resize()
/// behind it this is torchvision's RandomResizedCrop. Throws ValueError for ranges that are not
/// positive, or not in order, or a scale above 1.
Array random_sized_crop(const Array& img, RandomStream& random,
                        const RandomSizedCropOptions& options = {});

/// Which way to turn the picture over.
struct FlipOptions {
  bool y_flip = false;  // upside down
  bool x_flip = false;  // left to right
};
Array flip(const Array& img, const FlipOptions& options);  // the picture turned over

/// Which way to turn pictures over at random.
struct RandomFlipOptions {
  bool y_random = false;  // upside down, for each second picture
  bool x_random = false;  // left to right, likewise
};
/// Flip() with a chance of one half for each way.
Array random_flip(const Array& img, RandomStream& random, const RandomFlipOptions& options);

// --- sizes ---

/// The picture in another size: bilinear, and where it becomes smaller an average over all pixels
/// that a new one covers: PIL's BILINEAR with its bits, and torchvision's antialias. (Pillow 13
/// takes the columns first for some sizes: then the last bit may differ.) Throws ValueError for a
/// size without pixels.
Array resize(const Array& img, Size size);
/// In the size whose shorter side is `size`, in the picture's proportions; the longer one is
/// rounded down.
Array scale(const Array& img, std::int64_t size);

// --- colours ---
// As torchvision's functions of these names do with tensors: uint8 is cut off at 0 and 255 and
// rounded down. float32 is neither.

/// Black for a factor of 0, the picture for 1, twice as bright for 2. All throw ValueError for a
/// negative factor.
Array adjust_brightness(const Array& img, double factor);
/// 0 gives the mean of its grey picture.
Array adjust_contrast(const Array& img, double factor);
/// 0 gives its grey picture. One of 1 channel stays as it is; throws ShapeError for 2 or 4.
Array adjust_saturation(const Array& img, double factor);

struct ColorJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;  // strengths, 0 for none
};
/// Those three in a random order, each by a factor of [1 - strength, 1 + strength] (not below 0).
/// Throws ValueError for a negative strength.
Array color_jitter(const Array& img, RandomStream& random, const ColorJitterOptions& options);

/// Adds to each pixel the same random mixture of the principal components that the colours of
/// ImageNet have, as AlexNet was trained with. `sigma` is in units of the values: 25.5 there.
/// uint8 is rounded and cut off. Throws ShapeError unless there are 3 channels.
Array pca_lighting(const Array& img, double sigma, RandomStream& random);

/// (img - mean) / std as float32, with a mean and a std for each channel, or one for all; in the
/// picture's unit, of 0 to 255. Throws ShapeError for another number of them.
Array normalize(const Array& img, const std::vector<float>& mean, const std::vector<float>& std);

}  // namespace rensa::transforms
