// Convolutions on the CPU: columns of the elements that a block of pixels is made of, times the
// weights.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_geometry.h"
#include "rensa/functions/operations/convolution/cpu_onednn.h"
#include "rensa/operations/matmul/cpu_blas.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr std::int64_t kBlock = 128 << 10;        // values of a block of columns
constexpr std::int64_t kFewestPixels = 256;       // of a block, where there are so many
constexpr std::int64_t kSmallImage = 64;          // pixels; of smaller ones a block has several
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
        images_(g_.pixels < kSmallImage ? std::min(g_.batch, kFewestPixels / g_.pixels) : 1),
        piles_((g_.batch + images_ - 1) / images_),
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
    BiasOf<V> bias(op_);
    for_items(piles_ * g_.groups * blocks_, [&](std::int64_t item, Buffers& buffers) {
      std::int64_t group = item / blocks_ % g_.groups;
      Block at = block_at(item / blocks_ / g_.groups, item % blocks_);
      Matrix columns = columns_of(at, group * g_.channels, g_.channels, buffers.columns);
      Matrix w = weights_of(weights.data(), group, 0);
      write_pixels(op_.y.view, at, group * g_.filters, g_.filters, buffers.pixels,
                   [&](const Matrix& y) {
                     multiply(kDtype, g_.filters, at.all, depth_, w, columns, y);
                     add_to_rows(y, g_.filters, at.all, bias.from(group * g_.filters));
                   });
    });
  }

  void input_gradient() const {
    ValuesOf<V> weights(op_.w.view);
    BiasOf<V> bias(op_);
    std::int64_t part = channels_at_a_time(), parts = (g_.channels + part - 1) / part;
    for_items(piles_ * g_.groups * parts, [&](std::int64_t item, Buffers& buffers) {
      std::int64_t first = item % parts * part, group = item / parts % g_.groups;
      std::int64_t pile = item / parts / g_.groups, count = std::min(part, g_.channels - first);
      std::int64_t channel = group * g_.channels + first, values = count * g_.positions;
      Matrix w = transposed(weights_of(weights.data(), group, first));
      V* images = g_.pointwise ? nullptr : buffers.images.get(images_ * values);
      if (images) std::fill_n(images, images_ * values, V(0));
      for (std::int64_t block = 0; block < blocks_; ++block) {
        Block at = block_at(pile, block);
        Matrix y = pixels_of(op_.y.view, at, group * g_.filters, g_.filters, buffers.pixels);
        auto product = [&](const Matrix& columns) {
          multiply(kDtype, count * g_.places, at.all, g_.filters, w, y, columns);
        };
        if (g_.pointwise) {
          write_pixels(op_.x.view, at, channel, count, buffers.columns, [&](const Matrix& x) {
            product(x);
            add_to_rows(x, count, at.all, bias.from(channel));
          });
          continue;
        }
        V* columns = buffers.columns.get(count * g_.places * at.all);
        product(dense(columns, at.all));
        add_columns(at, count, columns, images);
      }
      if (!images) return;
      std::int64_t n = pile * images_, end = std::min(n + images_, g_.batch);
      for (V* image = images; n < end; ++n, image += values) {
        add_to_rows(dense(image, g_.positions), count, g_.positions, bias.from(channel));
        store_values(channels_of(op_.x.view, n, channel, count), image);
      }
    });
  }

  void weight_gradient() const {
    std::int64_t group_size = g_.filters * depth_, size = g_.groups * group_size;
    std::int64_t items = piles_ * blocks_;
    std::int64_t parts = std::clamp(kPartialValues / size, std::int64_t(1), kMostParts);
    std::int64_t part = (items + parts - 1) / parts;
    parts = (items + part - 1) / part;
    std::unique_ptr<V[]> sums = buffer<V>(parts * size);
    for_items(parts * g_.groups, [&](std::int64_t task, Buffers& buffers) {
      std::int64_t group = task % g_.groups, begin = task / g_.groups * part;
      V* sum = sums.get() + task / g_.groups * size + group * group_size;
      for (std::int64_t i = begin; i < std::min(items, begin + part); ++i) {
        Block at = block_at(i / blocks_, i % blocks_);
        Matrix columns = columns_of(at, group * g_.channels, g_.channels, buffers.columns);
        Matrix y = pixels_of(op_.y.view, at, group * g_.filters, g_.filters, buffers.pixels);
        V* target = i == begin ? sum : buffers.images.get(group_size);
        multiply(kDtype, g_.filters, depth_, at.all, y, transposed(columns), dense(target, depth_));
        if (target == sum) continue;
        for (std::int64_t j = 0; j < group_size; ++j) sum[j] += target[j];
      }
    });
    add_parts(sums.get(), parts, size);
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
    Memory columns, pixels, images;
  };

  /// The same pixels of some neighbouring images.
  struct Block {
    std::int64_t first, images;
    std::int64_t begin, size;  // of an image
    std::int64_t all;          // pixels
    std::vector<PixelRun> runs;
  };

  Block block_at(std::int64_t pile, std::int64_t block) const {
    std::int64_t first = pile * images_, images = std::min(images_, g_.batch - first);
    std::int64_t begin = block * block_, end = std::min(begin + block_, g_.pixels);
    return {first, images, begin, end - begin, images * (end - begin), g_.runs(begin, end)};
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
    std::int64_t most =
        std::min(kBlock / (g_.places * block_ * images_), kImageValues / (images_ * g_.positions));
    return std::clamp<std::int64_t>(most, 1, g_.channels);
  }

  /// Rows of `columns` values, one behind the other.
  static Matrix dense(const V* values, std::int64_t columns) {
    return {const_cast<char*>(reinterpret_cast<const char*>(values)),
            columns * static_cast<std::int64_t>(sizeof(V)), sizeof(V)};
  }
  static Matrix transposed(const Matrix& m) { return {m.data, m.column_stride, m.row_stride}; }

  /// Adds a number to each row of a matrix, whose rows or columns are packed mostly. Null: none.
  static void add_to_rows(const Matrix& m, std::int64_t rows, std::int64_t columns, const V* bias) {
    if (!bias) return;
    if (m.row_stride == sizeof(V)) {
      for (std::int64_t j = 0; j < columns; ++j) {
        V* column = reinterpret_cast<V*>(m.data + j * m.column_stride);
        for (std::int64_t i = 0; i < rows; ++i) column[i] += bias[i];
      }
      return;
    }
    auto step = m.column_stride / static_cast<std::int64_t>(sizeof(V));
    for (std::int64_t i = 0; i < rows; ++i) {
      V* row = reinterpret_cast<V*>(m.data + i * m.row_stride);
      if (step == 1) {
        for (std::int64_t j = 0; j < columns; ++j) row[j] += bias[i];
      } else {
        for (std::int64_t j = 0; j < columns; ++j) row[j * step] += bias[i];
      }
    }
  }

  /// The weights of a group, from `channel` on: a filter is a row.
  Matrix weights_of(const V* weights, std::int64_t group, std::int64_t channel) const {
    return dense(weights + group * g_.filters * depth_ + channel * g_.places, depth_);
  }

  /// The distance of neighbouring pixels where they all lie equally far apart and are values
  /// already, else 0; 0 too where they are one and the same element.
  static std::int64_t pixel_stride(const ArrayView& view) {
    if (view.dtype != kDtype) return 0;
    std::optional<std::int64_t> stride;  // none: there is one pixel
    std::int64_t reached = 0;
    for (int i = view.ndim(); i-- > 2;) {
      if (view.shape[i] == 1) continue;
      if (!stride) stride = reached = view.strides[i];
      else if (view.strides[i] != reached) return 0;
      reached *= view.shape[i];
    }
    return stride.value_or(sizeof(V));
  }

  bool is_y(const ArrayView& view) const { return &view == &op_.y.view; }

  /// Whether the block's pixels of a channel lie in one row of values.
  bool lies_flat(const ArrayView& view, const Block& at) const {
    return at.images == 1 && pixel_strides_[is_y(view)] != 0;
  }

  Matrix in_place(const ArrayView& view, const Block& at, std::int64_t channel) const {
    std::int64_t stride = pixel_strides_[is_y(view)];
    return {channel_of(view, at.first, channel) + at.begin * stride, view.strides[1], stride};
  }

  /// f(values, n, c, run) for each channel c, image and run of a block, in the order of a matrix
  /// with a channel a row.
  template <class F>
  static void for_runs(const Block& at, std::int64_t channels, V* values, F&& f) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < at.images; ++i, values += at.size) {
        for (const PixelRun& run : at.runs) f(values + run.at, at.first + i, c, run);
      }
    }
  }

  /// Pixels of some channels as a matrix, a channel a row.
  Matrix pixels_of(const ArrayView& view, const Block& at, std::int64_t first,
                   std::int64_t channels, Memory& memory) const {
    if (lies_flat(view, at)) return in_place(view, at, first);
    V* values = memory.get(channels * at.all);
    std::int64_t step = view.strides[view.ndim() - 1];
    LoadKernel load = loads_[is_y(view)];
    for_runs(at, channels, values,
             [&](V* row, std::int64_t n, std::int64_t c, const PixelRun& run) {
               load(run.count, channel_of(view, n, first + c) + offset_of(run, view), step, row);
             });
    return dense(values, at.all);
  }

  /// The other way: write(matrix) makes them.
  template <class F>
  void write_pixels(const ArrayView& view, const Block& at, std::int64_t first,
                    std::int64_t channels, Memory& memory, F&& write) const {
    if (lies_flat(view, at)) return write(in_place(view, at, first));
    V* values = memory.get(channels * at.all);
    write(dense(values, at.all));
    StoreKernel store = kernels().store_of(view.dtype, kType);
    std::int64_t step = view.strides[view.ndim() - 1];
    for_runs(at, channels, values,
             [&](const V* row, std::int64_t n, std::int64_t c, const PixelRun& run) {
               store(run.count, row, channel_of(view, n, first + c) + offset_of(run, view), step);
             });
  }

  /// A row for each channel and place of the kernel: what the pixels multiply its weight with.
  Matrix columns_of(const Block& at, std::int64_t first, std::int64_t channels,
                    Memory& memory) const {
    const ArrayView& x = op_.x.view;
    if (g_.pointwise) return pixels_of(x, at, first, channels, memory);
    V* values = memory.get(channels * g_.places * at.all);
    for_places(at, channels, values, [&](V* row, std::int64_t c, std::int64_t k) {
      for_runs(at, 1, row, [&](V* pixels, std::int64_t n, std::int64_t, const PixelRun& run) {
        Reach reach = g_.reach(run, k, spatial_strides(x));
        std::fill(pixels, pixels + reach.begin, V(0));
        if (reach.end > reach.begin) {
          loads_[0](reach.end - reach.begin, channel_of(x, n, first + c) + reach.offset, reach.step,
                    pixels + reach.begin);
        }
        std::fill(pixels + reach.end, pixels + run.count, V(0));
      });
    });
    return dense(values, at.all);
  }

  /// Adds columns to the positions of x that they belong to, in `images`, channel by channel.
  void add_columns(const Block& at, std::int64_t channels, V* columns, V* images) const {
    std::int64_t strides[kMaxNdim], step = 1;
    for (int i = g_.axes; i-- > 0; step *= g_.in[i]) strides[i] = step;
    for_places(at, channels, columns, [&](V* row, std::int64_t c, std::int64_t k) {
      for_runs(at, 1, row, [&](const V* pixels, std::int64_t n, std::int64_t, const PixelRun& run) {
        Reach reach = g_.reach(run, k, strides);
        V* target = images + ((n - at.first) * channels + c) * g_.positions + reach.offset;
        for (std::int64_t j = reach.begin; j < reach.end; ++j, target += reach.step) {
          *target += pixels[j];
        }
      });
    });
  }

  /// f(row, c, k) for each row of columns: a channel and a place of the kernel.
  template <class F> void for_places(const Block& at, std::int64_t channels, V* row, F&& f) const {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t k = 0; k < g_.places; ++k, row += at.all) f(row, c, k);
    }
  }

  const Convolution& op_;
  ConvolutionGeometry g_;
  std::int64_t depth_;           // products of a sum
  std::int64_t images_, piles_;  // images of a block, and how many times as many there are
  std::int64_t block_, blocks_;  // pixels of an image's block, and blocks of an image
  LoadKernel loads_[2];          // of x and y
  std::int64_t pixel_strides_[2];
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
#if RENSA_ONEDNN
  if (host::convolve_by_onednn(*this)) return;
#endif
  x.view.dtype == float64 ? host::convolve<double>(*this) : host::convolve<float>(*this);
}

}  // namespace rensa::operations
