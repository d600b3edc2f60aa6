// Pooling of regions of interest on the CPU: a thread has a channel of a roi, or of an image.
#include <algorithm>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/roi_pooling/roi_pooling.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::RoiBins;
using operations::RoiMode;
using operations::RoiPooling;
using operations::RoiPoolingSpread;

/// A roi's axes.
struct Roi {
  RoiAxis y, x;
  Roi(const RoiBins& bins, const Operand& rois, std::int64_t r, const Shape& image,
      const Shape& out)
      : Roi(bins, rois.view.as<const double>() + r * 4, image, out) {}

 private:
  Roi(const RoiBins& bins, const double* roi, const Shape& image, const Shape& out)
      : y(bins.look, roi[0], roi[2], image[2], static_cast<int>(out[2]), bins.samples[0]),
        x(bins.look, roi[1], roi[3], image[3], static_cast<int>(out[3]), bins.samples[1]) {}
};

void check_images(const RoiPooling& op) {
  std::int64_t n = op.x.view.shape[0];
  for (std::int64_t r = 0; r < op.images.view.shape[0]; ++r) {
    auto image = op.images.view.as<const long long>()[r];
    if (image >= 0 && image < n) continue;
    throw_reported({ReportedError::index, op.name(), image, n}, cpu());
  }
}

template <class T> void pool(const RoiPooling& op) {
  using V = ComputeOf<T>;
  check_images(op);
  const Shape &image = op.x.view.shape, &out = op.y.view.shape;
  std::int64_t channels = image[1], plane = image[2] * image[3], each = out[2] * out[3];
  auto* numbers = op.numbers.present() ? op.numbers.view.as<long long>() : nullptr;
  parallel_for(out[0] * channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t r = i / channels, c = i % channels;
      Roi roi(op.bins, op.rois, r, image, out);
      const T* x = op.x.view.as<const T>() +
                   (op.images.view.as<const long long>()[r] * channels + c) * plane;
      auto load = [&](long long row, long long column) {
        return convert<V>(x[row * image[3] + column]);
      };
      for (std::int64_t k = 0; k < each; ++k) {
        auto row = static_cast<int>(k / out[3]), column = static_cast<int>(k % out[3]);
        V y = V(0);
        if (op.bins.mode == RoiMode::mean) {
          y = mean_of_bin<V>(roi.y, roi.x, row, column, load);
        } else if (op.bins.mode == RoiMode::max) {
          y = greatest_of_bin<V>(roi.y, roi.x, row, column, V(op.bins.of_none), load,
                                 &numbers[i * each + k]);
        } else if (long long at = numbers[i * each + k]; at >= 0) {
          y = value_at_taps<V>(roi.y.tap(row, at / roi.x.grid), roi.x.tap(column, at % roi.x.grid),
                               load);
        }
        op.y.view.as<T>()[i * each + k] = convert<T>(y);
      }
    }
  });
}

/// What a bin's taps at (y, x) give of g to the elements of a channel.
template <class V>
void give(const RoiTap& y, const RoiTap& x, double count, V g, std::int64_t width, V* sums) {
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      double weight = y.weight[a] * x.weight[b];
      if (weight > 0) sums[y.at[a] * width + x.at[b]] += V(weight / count) * g;
    }
  }
}

template <class T> void spread(const RoiPoolingSpread& op) {
  using V = ComputeOf<T>;
  const Shape &image = op.gx.view.shape, &out = op.gy.view.shape;
  std::int64_t channels = image[1], plane = image[2] * image[3], each = out[2] * out[3];
  parallel_for(image[0] * channels, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<V> sums(static_cast<std::size_t>(plane));
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t n = i / channels, c = i % channels;
      std::fill(sums.begin(), sums.end(), V(0));
      for (std::int64_t r = 0; r < out[0]; ++r) {
        if (op.images.view.as<const long long>()[r] != n) continue;
        Roi roi(op.bins, op.rois, r, image, out);
        const T* gy = op.gy.view.as<const T>() + (r * channels + c) * each;
        auto at = [&](int row, int column) { return convert<V>(gy[row * out[3] + column]); };
        for (int row = 0; row < out[2]; ++row) {
          if (op.bins.mode == RoiMode::at) {
            const long long* numbers =
                op.numbers.view.as<const long long>() + (r * channels + c) * each + row * out[3];
            for (int column = 0; column < out[3]; ++column) {
              if (numbers[column] < 0) continue;
              give(roi.y.tap(row, numbers[column] / roi.x.grid),
                   roi.x.tap(column, numbers[column] % roi.x.grid), 1, at(row, column), image[3],
                   sums.data());
            }
            continue;
          }
          RoiRange rows = roi.y.taps(row);
          for (long long k = rows.begin; k < rows.end; ++k) {
            RoiTap y = roi.y.tap(row, k);
            for (int column = 0; column < out[3]; ++column) {
              RoiRange columns = roi.x.taps(column);
              double count = roi.y.count(row) * roi.x.count(column);
              for (long long l = columns.begin; l < columns.end; ++l) {
                give(y, roi.x.tap(column, l), count, at(row, column), image[3], sums.data());
              }
            }
          }
        }
      }
      T* gx = op.gx.view.as<T>() + i * plane;
      for (std::int64_t k = 0; k < plane; ++k)
        gx[k] = convert<T>(sums[static_cast<std::size_t>(k)]);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void RoiPooling::run_cpu() {
  visit_floating(x.view.dtype, [&](auto element) { host::pool<decltype(element)>(*this); });
}

void RoiPoolingSpread::run_cpu() {
  visit_floating(gy.view.dtype, [&](auto element) { host::spread<decltype(element)>(*this); });
}

}  // namespace rensa::operations
