// Convolutions on the CPU: columns of the elements that a block of pixels is made of, times the
// weights.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_geometry.h"
#include "rensa/operations/matmul/cpu_blas.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr std::int64_t kBlock = 128 << 10;        // values of a block of columns
constexpr std::int64_t kFewestPixels = 64;        // of a block, where an image has them
constexpr std::int64_t kImageValues = 1 << 20;    // of channels whose gradient is summed at a time
constexpr std::int64_t kPartialValues = 8 << 20;  // of all partial sums of weights' gradients
constexpr std::int64_t kMostParts = 32;           // of those sums

/// A convolution as products of matrices, of values of type V.
template <class V> class Products {
 public:
  explicit Products(const Convolution& op)
      : op_(op),
        g_(op),
        depth_(g_.channels * g_.places),
        block_(std::min(g_.pixels, std::max(kFewestPixels, kBlock / depth_))),
        blocks_((g_.pixels + block_ - 1) / block_) {
    for (const Operand* operand : {&op.x, &op.y}) {
      const ArrayView& view = operand->view;
      loads_[operand == &op.y] = kernels().load_of(view.dtype, kType);
      pixel_strides_[operand == &op.y] = pixel_stride(view);
    }
  }

  void forward() const {
    ValuesOf<V> weights(op_.w.view);
    for_items(g_.batch * g_.groups * blocks_, [&](std::int64_t item, Buffers& buffers) {
      std::int64_t block = item % blocks_, group = item / blocks_ % g_.groups;
      std::int64_t n = item / blocks_ / g_.groups;
      Block at = block_at(block);
      Matrix columns = columns_of(at, n, group * g_.channels, g_.channels, buffers.columns);
      Matrix w = weights_of(weights.data(), group, 0);
      write_pixels(
          op_.y.view, at, n, group * g_.filters, g_.filters, buffers.pixels,
          [&](const Matrix& y) { multiply(kDtype, g_.filters, at.size, depth_, w, columns, y); });
    });
  }

  void input_gradient() const {
    ValuesOf<V> weights(op_.w.view);
    std::int64_t part = channels_at_a_time(), parts = (g_.channels + part - 1) / part;
    for_items(g_.batch * g_.groups * parts, [&](std::int64_t item, Buffers& buffers) {
      std::int64_t first = item % parts * part, group = item / parts % g_.groups;
      std::int64_t n = item / parts / g_.groups, count = std::min(part, g_.channels - first);
      std::int64_t channel = group * g_.channels + first;
      Matrix w = transposed(weights_of(weights.data(), group, first));
      V* image = g_.pointwise ? nullptr : buffers.image.get(count * g_.positions);
      if (image) std::fill_n(image, count * g_.positions, V(0));
      for (std::int64_t block = 0; block < blocks_; ++block) {
        Block at = block_at(block);
        Matrix y = pixels_of(op_.y.view, at, n, group * g_.filters, g_.filters, buffers.pixels);
        auto product = [&](const Matrix& columns) {
          multiply(kDtype, count * g_.places, at.size, g_.filters, w, y, columns);
        };
        if (g_.pointwise) {
          write_pixels(op_.x.view, at, n, channel, count, buffers.columns, product);
          continue;
        }
        V* columns = buffers.columns.get(count * g_.places * at.size);
        product(dense(columns, at.size));
        add_columns(at, count, columns, image);
      }
      if (image) store_values(channels_of(op_.x.view, n, channel, count), image);
    });
  }

  void weight_gradient() const {
    std::int64_t group_size = g_.filters * depth_, size = g_.groups * group_size;
    std::int64_t items = g_.batch * blocks_;
    std::int64_t parts = std::clamp(kPartialValues / size, std::int64_t(1), kMostParts);
    std::int64_t part = (items + parts - 1) / parts;
    parts = (items + part - 1) / part;
    std::unique_ptr<V[]> sums = buffer<V>(parts * size);
    for_items(parts * g_.groups, [&](std::int64_t task, Buffers& buffers) {
      std::int64_t group = task % g_.groups, begin = task / g_.groups * part;
      V* sum = sums.get() + task / g_.groups * size + group * group_size;
      for (std::int64_t i = begin; i < std::min(items, begin + part); ++i) {
        Block at = block_at(i % blocks_);
        std::int64_t n = i / blocks_;
        Matrix columns = columns_of(at, n, group * g_.channels, g_.channels, buffers.columns);
        Matrix y = pixels_of(op_.y.view, at, n, group * g_.filters, g_.filters, buffers.pixels);
        V* target = i == begin ? sum : buffers.image.get(group_size);
        multiply(kDtype, g_.filters, depth_, at.size, y, transposed(columns),
                 dense(target, depth_));
        if (target == sum) continue;
        for (std::int64_t j = 0; j < group_size; ++j) sum[j] += target[j];
      }
    });
    parallel_for(size, long_pieces(size, kChunk), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 1; i < parts; ++i) {
        for (std::int64_t j = begin; j < end; ++j)
          sums[static_cast<std::size_t>(j)] += sums[static_cast<std::size_t>(i * size + j)];
      }
    });
    store_values(op_.w.view, sums.get());
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;
  static constexpr Dtype kDtype = sizeof(V) == sizeof(float) ? float32 : float64;

  /// Memory that grows to what was asked for.
  struct Memory {
    V* get(std::int64_t count) {
      if (count > size) values = buffer<V>(size = count);
      return values.get();
    }
    std::unique_ptr<V[]> values;
    std::int64_t size = 0;
  };
  struct Buffers {
    Memory columns, pixels, image;
  };

  struct Block {
    std::int64_t begin, size;
    std::vector<PixelRun> runs;
  };

  Block block_at(std::int64_t i) const {
    std::int64_t begin = i * block_, end = std::min(begin + block_, g_.pixels);
    return {begin, end - begin, g_.runs(begin, end)};
  }

  /// f(item, buffers) for each, in parallel.
  template <class F> void for_items(std::int64_t count, F&& f) const {
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      Buffers buffers;
      for (std::int64_t i = begin; i < end; ++i) f(i, buffers);
    });
  }

  std::int64_t channels_at_a_time() const {
    if (g_.pointwise) return g_.channels;
    std::int64_t most = std::min(kBlock / (g_.places * block_), kImageValues / g_.positions);
    return std::clamp<std::int64_t>(most, 1, g_.channels);
  }

  /// Rows of `columns` values, one behind the other.
  static Matrix dense(const V* values, std::int64_t columns) {
    return {const_cast<char*>(reinterpret_cast<const char*>(values)),
            columns * static_cast<std::int64_t>(sizeof(V)), sizeof(V)};
  }
  static Matrix transposed(const Matrix& m) { return {m.data, m.column_stride, m.row_stride}; }

  /// The weights of a group, from `channel` on: a filter is a row.
  Matrix weights_of(const V* weights, std::int64_t group, std::int64_t channel) const {
    return dense(weights + group * g_.filters * depth_ + channel * g_.places, depth_);
  }

  /// The distance of neighbouring pixels where they all lie equally far apart and are values
  /// already, else 0.
  static std::int64_t pixel_stride(const ArrayView& view) {
    if (view.dtype != kDtype) return 0;
    std::int64_t stride = 0, reached = 0;
    for (int i = view.ndim(); i-- > 2;) {
      if (view.shape[i] == 1) continue;
      if (stride == 0) stride = view.strides[i], reached = stride;
      else if (view.strides[i] != reached) return 0;
      reached *= view.shape[i];
    }
    return stride == 0 ? static_cast<std::int64_t>(sizeof(V)) : stride;
  }

  bool is_y(const ArrayView& view) const { return &view == &op_.y.view; }

  Matrix in_place(const ArrayView& view, const Block& at, std::int64_t n,
                  std::int64_t channel) const {
    std::int64_t stride = pixel_strides_[is_y(view)];
    return {channel_of(view, n, channel) + at.begin * stride, view.strides[1], stride};
  }

  /// Pixels of some channels as a matrix, a channel a row.
  Matrix pixels_of(const ArrayView& view, const Block& at, std::int64_t n, std::int64_t first,
                   std::int64_t channels, Memory& memory) const {
    if (pixel_strides_[is_y(view)] != 0) return in_place(view, at, n, first);
    V* values = memory.get(channels * at.size);
    std::int64_t step = view.strides[view.ndim() - 1];
    for (std::int64_t c = 0; c < channels; ++c) {
      const char* channel = channel_of(view, n, first + c);
      for (const PixelRun& run : at.runs) {
        loads_[is_y(view)](run.count, channel + offset_of(run, view), step,
                           values + c * at.size + run.at);
      }
    }
    return dense(values, at.size);
  }

  /// The other way: write(matrix) makes them.
  template <class F>
  void write_pixels(const ArrayView& view, const Block& at, std::int64_t n, std::int64_t first,
                    std::int64_t channels, Memory& memory, F&& write) const {
    if (pixel_strides_[is_y(view)] != 0) return write(in_place(view, at, n, first));
    V* values = memory.get(channels * at.size);
    write(dense(values, at.size));
    StoreKernel store = kernels().store_of(view.dtype, kType);
    std::int64_t step = view.strides[view.ndim() - 1];
    for (std::int64_t c = 0; c < channels; ++c) {
      char* channel = channel_of(view, n, first + c);
      for (const PixelRun& run : at.runs) {
        store(run.count, values + c * at.size + run.at, channel + offset_of(run, view), step);
      }
    }
  }

  /// A row for each channel and place of the kernel: what the pixels multiply its weight with.
  Matrix columns_of(const Block& at, std::int64_t n, std::int64_t first, std::int64_t channels,
                    Memory& memory) const {
    const ArrayView& x = op_.x.view;
    if (g_.pointwise) return pixels_of(x, at, n, first, channels, memory);
    V* row = memory.get(channels * g_.places * at.size);
    Matrix columns = dense(row, at.size);
    for (std::int64_t c = 0; c < channels; ++c) {
      const char* channel = channel_of(x, n, first + c);
      for (std::int64_t k = 0; k < g_.places; ++k, row += at.size) {
        for (const PixelRun& run : at.runs) {
          Reach reach = g_.reach(run, k, spatial_strides(x));
          V* values = row + run.at;
          std::fill(values, values + reach.begin, V(0));
          if (reach.end > reach.begin) {
            loads_[0](reach.end - reach.begin, channel + reach.offset, reach.step,
                      values + reach.begin);
          }
          std::fill(values + reach.end, values + run.count, V(0));
        }
      }
    }
    return columns;
  }

  /// Adds columns to the positions of x that they belong to, in `image`, channel by channel.
  void add_columns(const Block& at, std::int64_t channels, const V* row, V* image) const {
    std::int64_t strides[kMaxNdim], step = 1;
    for (int i = g_.axes; i-- > 0; step *= g_.in[i]) strides[i] = step;
    for (std::int64_t c = 0; c < channels; ++c) {
      V* channel = image + c * g_.positions;
      for (std::int64_t k = 0; k < g_.places; ++k, row += at.size) {
        for (const PixelRun& run : at.runs) {
          Reach reach = g_.reach(run, k, strides);
          const V* values = row + run.at;
          V* target = channel + reach.offset;
          for (std::int64_t i = reach.begin; i < reach.end; ++i, target += reach.step) {
            *target += values[i];
          }
        }
      }
    }
  }

  const Convolution& op_;
  ConvolutionGeometry g_;
  std::int64_t depth_;  // products of a sum
  std::int64_t block_, blocks_;
  LoadKernel loads_[2];            // of x and y
  std::int64_t pixel_strides_[2];  //
};

/// Few filters of one channel each: there is no product of matrices in them.
bool is_depthwise(const Convolution& op) {
  return op.w.view.shape[1] == 1 && op.groups > 1 && op.w.view.shape[0] / op.groups <= 4;
}

template <class V> void convolve(const Convolution& op) {
  if (is_depthwise(op)) return convolve_depthwise<V>(op);
  Products<V> products(op);
  switch (op.direction) {
    case ConvolutionDirection::forward: return products.forward();
    case ConvolutionDirection::input_gradient: return products.input_gradient();
    case ConvolutionDirection::weight_gradient: return products.weight_gradient();
  }
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Convolution::run_cpu() {
  x.view.dtype == float64 ? host::convolve<double>(*this) : host::convolve<float>(*this);
}

}  // namespace rensa::operations
