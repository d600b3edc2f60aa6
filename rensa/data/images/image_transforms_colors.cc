// Colours of pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/images/cpu_pixel_kernels.h"
#include "rensa/data/images/image_checks.h"
#include "rensa/data/images/image_transforms.h"

namespace rensa::transforms {

namespace {

void check_factor(const char* operation, double factor) {
  if (factor >= 0) return;
  throw ValueError(fmt::format("{}: a factor of {}; give 0 or more", operation, factor));
}

template <class T> const host::ColorKernels<T>& kernels() { return host::pixel_kernels().of<T>(); }

/// Calls f(row of `in`, row of the result, plane, y) for all rows; returns the result.
template <class T, class F> Array map_rows(const Planes& in, F f) {
  Array out = xp::empty({in.channels, in.height, in.width}, in.array.dtype(), cpu());
  const auto* from = static_cast<const T*>(in.array.data());
  auto* to = static_cast<T*>(out.data());
  for (std::int64_t c = 0; c < in.channels; ++c) {
    for (std::int64_t y = 0; y < in.height; ++y) {
      f(from + c * in.plane + y * in.row, to + (c * in.height + y) * in.width, c, y);
    }
  }
  return out;
}

/// f<uint8 or float>() for the picture's dtype.
template <class F> Array of_dtype(const Array& img, F f) {
  return img.dtype() == Dtype::uint8 ? f.template operator()<std::uint8_t>()
                                     : f.template operator()<float>();
}

/// Row `y` of the grey picture; of one channel, that one.
template <class T> void gray_row(const Planes& in, std::int64_t y, T* out) {
  const T* r = static_cast<const T*>(in.array.data()) + y * in.row;
  if (in.channels != 3) {
    std::copy_n(r, in.width, out);
    return;
  }
  const T *g = r + in.plane, *b = g + in.plane;
  kernels<T>().gray(in.width, r, g, b, out);
}

/// The mean of all pixels of the grey picture.
template <class T> float gray_mean(const Planes& in) {
  auto row = host_vector<T>("adjust_contrast", in.width);
  double sum = 0;
  for (std::int64_t y = 0; y < in.height; ++y) {
    gray_row(in, y, row.data());
    std::conditional_t<sizeof(T) == 1, std::int64_t, double> row_sum = 0;
    for (T value : row) row_sum += value;
    sum += static_cast<double>(row_sum);
  }
  return static_cast<float>(sum / static_cast<double>(in.height * in.width));
}

void check_gray(const char* operation, const Array& img) {
  check_image(operation, img);
  if (img.shape(0) == 1 || img.shape(0) == 3) return;
  throw ShapeError(
      fmt::format("{}: a picture has 1 or 3 channels, not {}", operation, img.view().describe()));
}

}  // namespace

Array adjust_brightness(const Array& img, double factor) {
  check_image("adjust_brightness", img);
  check_factor("adjust_brightness", factor);
  const auto f = static_cast<float>(factor);
  Planes in = planes_of(img);
  return of_dtype(img, [&]<class T>() {
    return map_rows<T>(in, [&](const T* from, T* to, std::int64_t, std::int64_t) {
      kernels<T>().shade(in.width, from, f, 0, to);
    });
  });
}

Array adjust_contrast(const Array& img, double factor) {
  check_gray("adjust_contrast", img);
  check_factor("adjust_contrast", factor);
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  Planes in = planes_of(img);
  return of_dtype(img, [&]<class T>() {
    const float mean = rest * gray_mean<T>(in);
    return map_rows<T>(in, [&](const T* from, T* to, std::int64_t, std::int64_t) {
      kernels<T>().shade(in.width, from, f, mean, to);
    });
  });
}

Array adjust_saturation(const Array& img, double factor) {
  check_gray("adjust_saturation", img);
  check_factor("adjust_saturation", factor);
  if (img.shape(0) == 1) return img;
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  Planes in = planes_of(img);
  return of_dtype(img, [&]<class T>() {
    auto gray = host_vector<T>("adjust_saturation", in.height * in.width);
    for (std::int64_t y = 0; y < in.height; ++y) gray_row(in, y, gray.data() + y * in.width);
    return map_rows<T>(in, [&](const T* from, T* to, std::int64_t, std::int64_t y) {
      kernels<T>().mix(in.width, from, f, gray.data() + y * in.width, rest, to);
    });
  });
}

Array color_jitter(const Array& img, RandomStream& random, const ColorJitterOptions& options) {
  check_image("color_jitter", img);
  struct Step {
    Array (*adjust)(const Array&, double);
    double strength;
  };
  std::array<Step, 3> steps = {{{adjust_brightness, options.brightness},
                                {adjust_contrast, options.contrast},
                                {adjust_saturation, options.saturation}}};
  for (const Step& step : steps) {
    if (!(step.strength >= 0)) {
      throw ValueError(
          fmt::format("color_jitter: a strength of {}; give 0 or more", step.strength));
    }
  }
  for (std::size_t i = steps.size(); i > 1; --i) {
    auto other = static_cast<std::size_t>(random.integers(static_cast<std::int64_t>(i)));
    std::swap(steps[i - 1], steps[other]);
  }
  Array result = img;
  for (const auto& [adjust, strength] : steps) {
    double factor = random.uniform(std::max(0.0, 1 - strength), 1 + strength);
    if (strength > 0) result = adjust(result, factor);
  }
  return result;
}

Array pca_lighting(const Array& img, double sigma, RandomStream& random) {
  check_image("pca_lighting", img);
  if (img.shape(0) != 3) {
    throw ShapeError(
        fmt::format("pca_lighting: a picture has 3 channels, not {}", img.view().describe()));
  }
  if (sigma <= 0) return img;
  // Of the colours of ImageNet, from fb.resnet.torch: a row for each channel.
  constexpr double kValues[3] = {0.2175, 0.0188, 0.0045};
  constexpr double kVectors[3][3] = {
      {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
  double light[3] = {};
  for (int k = 0; k < 3; ++k) {
    double strength = kValues[k] * random.normal(0, sigma);
    for (int c = 0; c < 3; ++c) light[c] += kVectors[c][k] * strength;
  }
  Planes in = planes_of(img);
  return of_dtype(img, [&]<class T>() {
    constexpr float kHalf = sizeof(T) == 1 ? 0.5f : 0.f;  // rounds
    return map_rows<T>(in, [&](const T* from, T* to, std::int64_t c, std::int64_t) {
      const float more = static_cast<float>(light[c]) + kHalf;
      kernels<T>().shade(in.width, from, 1, more, to);
    });
  });
}

Array normalize(const Array& img, const std::vector<float>& mean, const std::vector<float>& std) {
  check_image("normalize", img);
  const auto channels = static_cast<std::size_t>(img.shape(0));
  auto fits = [&](const std::vector<float>& list) {
    return list.size() == 1 || list.size() == channels;
  };
  if (!fits(mean) || !fits(std)) {
    throw ShapeError(fmt::format("normalize: {} means and {} stds for {}", mean.size(), std.size(),
                                 img.view().describe()));
  }
  Planes in = planes_of(img);
  Array out = xp::empty(img.shape(), float32, cpu());
  of_dtype(img, [&]<class T>() {
    for (std::int64_t c = 0; c < in.channels; ++c) {
      const float m = mean[mean.size() == 1 ? 0 : static_cast<std::size_t>(c)];
      const float s = std[std.size() == 1 ? 0 : static_cast<std::size_t>(c)];
      for (std::int64_t y = 0; y < in.height; ++y) {
        kernels<T>().normalize(
            in.width, static_cast<const T*>(in.array.data()) + c * in.plane + y * in.row, m, s,
            static_cast<float*>(out.data()) + (c * in.height + y) * in.width);
      }
    }
    return out;
  });
  return out;
}

}  // namespace rensa::transforms
