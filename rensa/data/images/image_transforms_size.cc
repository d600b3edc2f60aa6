// Pictures in other sizes: PIL's two passes, rows first, with weights of 22 bits for uint8.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/images/cpu_pixel_kernels.h"
#include "rensa/data/images/image_checks.h"
#include "rensa/data/images/image_transforms.h"

namespace rensa::transforms {

namespace {

/// ResizeWeights with what it points to.
template <class Weight> struct Resampling {
  std::vector<std::int64_t> begin, count;
  std::vector<Weight> weights;
  std::int64_t stride;
  host::ResizeWeights<Weight> view() const {
    return {begin.data(), count.data(), weights.data(), stride};
  }
};

void store(double weight, std::int32_t& out) {
  out = static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << 22));
}
void store(double weight, double& out) { out = weight; }

/// The weights of a tent as wide as the pixels are apart where they are farther apart: of the
/// input's, or of the output's.
template <class Weight> Resampling<Weight> resampling(std::int64_t in, std::int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = std::max(scale, 1.0);
  Resampling<Weight> made;
  made.stride = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  if (made.stride > most_host_memory() / (8 * out)) throw_out_of_host_memory("resize");
  made.begin = host_vector<std::int64_t>("resize", out);
  made.count = made.begin;
  made.weights = host_vector<Weight>("resize", out * made.stride);
  auto row = host_vector<double>("resize", made.stride);
  for (std::int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const auto end = std::min(in, static_cast<std::int64_t>(center + support + 0.5));
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      double distance = std::abs((static_cast<double>(k) - center + 0.5) * (1 / support));
      double weight = distance < 1 ? 1 - distance : 0;
      row[static_cast<std::size_t>(k - begin)] = weight;
      sum += weight;
    }
    for (std::int64_t k = 0; k < end - begin; ++k) {
      double weight = row[static_cast<std::size_t>(k)];
      if (sum != 0) weight /= sum;
      store(weight, made.weights[static_cast<std::size_t>(i * made.stride + k)]);
    }
    made.begin[static_cast<std::size_t>(i)] = begin;
    made.count[static_cast<std::size_t>(i)] = end - begin;
  }
  return made;
}

template <class T, class Weight, class RowKernel, class ColumnKernel>
void resize_planes(const Planes& in, Array& out, RowKernel row_kernel, ColumnKernel column_kernel) {
  const std::int64_t height = out.shape(1), width = out.shape(2);
  const auto* from = static_cast<const T*>(in.array.data());
  auto* to = static_cast<T*>(out.data());
  auto across = resampling<Weight>(in.width, width), down = resampling<Weight>(in.height, height);
  const bool rows = width != in.width, columns = height != in.height;
  auto scratch = host_vector<T>("resize", rows ? 32 * (in.width + width) : 0);
  auto middle = host_vector<T>("resize", rows && columns ? in.height * width : 0);
  for (std::int64_t c = 0; c < in.channels; ++c) {
    const T* plane = from + c * in.plane;
    T* result = to + c * height * width;
    std::int64_t stride = in.row;
    if (rows) {
      T* made = columns ? middle.data() : result;
      row_kernel({plane, stride, in.height, made, width, width}, in.width, across.view(),
                 scratch.data());
      plane = made;
      stride = width;
    }
    if (columns) column_kernel({plane, stride, height, result, width, width}, down.view());
  }
}

}  // namespace

Array resize(const Array& img, Size size) {
  check_image("resize", img);
  auto [height, width] = size;
  if (height < 1 || width < 1 || img.size() == 0) {
    throw ValueError(
        fmt::format("resize: {} to {} x {} pixels", img.view().describe(), height, width));
  }
  if (height == img.shape(1) && width == img.shape(2)) return img;
  Planes planes = planes_of(img);
  Array out = xp::empty({planes.channels, height, width}, img.dtype(), cpu());
  const host::PixelKernels& kernels = host::pixel_kernels();
  if (img.dtype() == Dtype::uint8) {
    resize_planes<std::uint8_t, std::int32_t>(planes, out, kernels.rows_uint8,
                                              kernels.columns_uint8);
  } else {
    resize_planes<float, double>(planes, out, kernels.rows_float, kernels.columns_float);
  }
  return out;
}

Array scale(const Array& img, std::int64_t size) {
  check_image("scale", img);
  const std::int64_t height = img.shape(1), width = img.shape(2), side = std::min(height, width);
  if (side < 1 || size < 1) {
    throw ValueError(fmt::format("scale: {} to {} pixels", img.view().describe(), size));
  }
  auto longer = [&](std::int64_t extent) {
    return static_cast<std::int64_t>(static_cast<double>(size) * static_cast<double>(extent) /
                                     static_cast<double>(side));
  };
  return resize(img, height < width ? Size{size, longer(width)} : Size{longer(height), size});
}

}  // namespace rensa::transforms
