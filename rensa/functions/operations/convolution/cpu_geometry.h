// Where the elements of a convolution's operands lie: what its ways on the CPU share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

/// Neighbouring pixels of y along its last axis.
struct PixelRun {
  std::int64_t at;               // of the first one in the block that the run belongs to
  std::int64_t count;            // how many
  std::int64_t place[kMaxNdim];  // of the first one in y
};

/// What of a run lies within x: its pixels [begin, end), whose elements of x start at `offset` and
/// lie `step` apart, in units of the strides asked with.
struct Reach {
  std::int64_t begin, end, offset, step;
};

class ConvolutionGeometry {
 public:
  explicit ConvolutionGeometry(const operations::Convolution& op);

  int axes;                                  // spatial
  std::int64_t batch, groups;                //
  std::int64_t channels, filters;            // of a group
  std::int64_t places;                       // of a kernel
  std::int64_t pixels;                       // of an image of y
  std::int64_t positions;                    // of an image of x
  std::int64_t in[kMaxNdim], out[kMaxNdim];  // extents
  bool pointwise;  // one place, no stride and no padding: pixels are positions

  std::vector<PixelRun> runs(std::int64_t begin, std::int64_t end) const;
  /// Of place `k` of the kernel over x of the strides `strides`.
  Reach reach(const PixelRun& run, std::int64_t k, const std::int64_t* strides) const;

 private:
  std::int64_t stride_[kMaxNdim];
  std::vector<std::int64_t> starts_;  // by place and axis: k * dilate - pad
};

/// The spatial axes' strides.
inline const std::int64_t* spatial_strides(const ArrayView& view) {
  return view.strides.data() + 2;
}

/// Channel `channel` of image `n`.
inline char* channel_of(const ArrayView& view, std::int64_t n, std::int64_t channel) {
  return view.data + n * view.strides[0] + channel * view.strides[1];
}

/// Where a run of pixels lies in an image of y.
inline std::int64_t offset_of(const PixelRun& run, const ArrayView& y) {
  std::int64_t offset = 0;
  for (int i = 2; i < y.ndim(); ++i) offset += run.place[i - 2] * y.strides[i];
  return offset;
}

template <class V> std::unique_ptr<V[]> buffer(std::int64_t count) {
  return std::make_unique_for_overwrite<V[]>(static_cast<std::size_t>(count));
}

/// The elements of `view` in C order as values, which are its own memory where it holds such.
template <class V> class ValuesOf {
 public:
  explicit ValuesOf(const ArrayView& view) {
    if (view.dtype == value_dtype(compute_type_of<V>) && view.is_c_contiguous()) {
      values_ = view.as<V>();
      return;
    }
    std::int64_t size = view.size();
    held_ = buffer<V>(size);
    Reader reader(view, compute_type_of<V>);
    Scratch scratch;
    for (std::int64_t i = 0; i < size; i += kChunk) {
      std::int64_t n = std::min(kChunk, size - i);
      std::copy_n(static_cast<const V*>(reader.read(i, n, scratch)), n, held_.get() + i);
    }
    values_ = held_.get();
  }
  const V* data() const { return values_; }

 private:
  std::unique_ptr<V[]> held_;
  const V* values_;
};

/// The bias of a convolution as values.
template <class V> class BiasOf {
 public:
  explicit BiasOf(const operations::Convolution& op) {
    if (op.bias.present()) values_.emplace(op.bias.view);
  }
  /// From that of the channel `first` on; null where there is none.
  const V* from(std::int64_t first) const { return values_ ? values_->data() + first : nullptr; }

 private:
  std::optional<ValuesOf<V>> values_;
};

/// Stores values in C order into `view`.
template <class V> void store_values(const ArrayView& view, const V* values) {
  Writer writer(view, compute_type_of<V>);
  Scratch scratch;
  std::int64_t size = view.size();
  for (std::int64_t i = 0; i < size; i += kChunk) {
    std::int64_t n = std::min(kChunk, size - i);
    auto* target = static_cast<V*>(writer.target(i, n, scratch));
    std::copy_n(values + i, n, target);
    writer.write(i, n, target);
  }
}

/// Adds the second and later ones of `parts` rows of sums to the first, in their order.
template <class V> void add_parts(V* sums, std::int64_t parts, std::int64_t size) {
  if (parts == 1) return;
  parallel_for(size, long_pieces(size, kChunk), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 1; i < parts; ++i) {
      for (std::int64_t j = begin; j < end; ++j) sums[j] += sums[i * size + j];
    }
  });
}

/// Some channels of an image as a view of their own.
ArrayView channels_of(const ArrayView& view, std::int64_t n, std::int64_t first,
                      std::int64_t count);

/// A convolution whose groups have one channel each: loops over lines of pixels.
template <class V> void convolve_depthwise(const operations::Convolution& op);

}  // namespace rensa::host
