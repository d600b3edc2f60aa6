// Parts of pictures.
#include "rensa/data/images/image_transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/indexing.h"
#include "rensa/core/error.h"
#include "rensa/data/images/image_checks.h"

namespace rensa::transforms {

namespace {

Array part(const char* operation, const Array& img, std::int64_t y, std::int64_t x, Size size) {
  auto [height, width] = size;
  if (height < 1 || width < 1 || y < 0 || x < 0 || height > img.shape(1) - y ||
      width > img.shape(2) - x) {
    throw ShapeError(fmt::format("{}: {} x {} pixels from ({}, {}) on of a picture of {} x {}",
                                 operation, height, width, y, x, img.shape(1), img.shape(2)));
  }
  return img[{Slice(), Slice(y, y + height), Slice(x, x + width)}];
}

void check_range(const char* what, const std::array<double, 2>& range, double most) {
  if (range[0] > 0 && range[0] <= range[1] && range[1] <= most) return;
  throw ValueError(fmt::format("random_sized_crop: {} from {} to {}", what, range[0], range[1]));
}

/// A random part's area, as a fraction of the picture's, and its height over its width. As
/// ChainerCV: of ten proportions the first in which the area fits.
std::array<double, 2> random_ratios(double height, double width, RandomStream& random,
                                    const RandomSizedCropOptions& options) {
  auto [least, most] = options.scale_ratio_range;
  double aspect = 1, largest = 1;
  for (int attempt = 0; attempt < 10; ++attempt) {
    aspect = random.uniform(options.aspect_ratio_range[0], options.aspect_ratio_range[1]);
    if (random.uniform() < 0.5) aspect = 1 / aspect;
    largest = std::min({most, height / (width * aspect), aspect * width / height});
    double scale = random.uniform(least, most);
    if (scale <= largest) return {scale, aspect};
  }
  return {random.uniform(std::min(least, largest), largest), aspect};
}

}  // namespace

Array crop(const Array& img, std::int64_t y, std::int64_t x, Size size) {
  check_image("crop", img);
  return part("crop", img, y, x, size);
}

Array center_crop(const Array& img, Size size) {
  check_image("center_crop", img);
  auto begin = [&](int axis) {
    auto rest = static_cast<double>(img.shape(axis + 1) - size[static_cast<std::size_t>(axis)]);
    return static_cast<std::int64_t>(std::nearbyint(rest / 2));
  };
  return part("center_crop", img, begin(0), begin(1), size);
}

Array random_crop(const Array& img, Size size, RandomStream& random) {
  check_image("random_crop", img);
  auto begin = [&](int axis) {
    std::int64_t rest = img.shape(axis + 1) - size[static_cast<std::size_t>(axis)];
    return rest < 0 ? 0 : random.integers(rest + 1);
  };
  std::int64_t y = begin(0), x = begin(1);
  return part("random_crop", img, y, x, size);
}

Array random_sized_crop(const Array& img, RandomStream& random,
                        const RandomSizedCropOptions& options) {
  check_image("random_sized_crop", img);
  check_range("a scale", options.scale_ratio_range, 1);
  check_range("proportions", options.aspect_ratio_range, HUGE_VAL);
  const std::int64_t height = img.shape(1), width = img.shape(2);
  auto rows = static_cast<double>(height), columns = static_cast<double>(width);
  auto [scale, aspect] = random_ratios(rows, columns, random, options);
  auto extent = [](double area, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::sqrt(area)), 1, most);
  };
  Size size = {extent(scale * rows * columns * aspect, height),
               extent(scale * rows * columns / aspect, width)};
  std::int64_t y = random.integers(height - size[0] + 1);
  std::int64_t x = random.integers(width - size[1] + 1);
  return part("random_sized_crop", img, y, x, size);
}

Array flip(const Array& img, const FlipOptions& options) {
  check_image("flip", img);
  Slice backwards(none, none, -1);
  return img[{Slice(), options.y_flip ? backwards : Slice(), options.x_flip ? backwards : Slice()}];
}

Array random_flip(const Array& img, RandomStream& random, const RandomFlipOptions& options) {
  check_image("random_flip", img);
  bool y = options.y_random && random.uniform() < 0.5;
  bool x = options.x_random && random.uniform() < 0.5;
  return y || x ? flip(img, {y, x}) : img;
}

}  // namespace rensa::transforms
