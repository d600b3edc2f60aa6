// Convolutions of groups of one channel on the CPU.
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_geometry.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

/// Of values of type V. A channel is copied with its padding around it, so that no place of the
/// kernel asks whether it lies within. Its filters are those of its group.
template <class V> class Depthwise {
 public:
  explicit Depthwise(const Convolution& op)
      : op_(op),
        g_(op),
        lines_(g_.runs(0, g_.pixels)),
        line_(g_.out[g_.axes - 1]),
        step_(op.stride[g_.axes - 1]),
        load_(kernels().load_of(op.x.view.dtype, kType)),
        store_(kernels().store_of(op.x.view.dtype, kType)) {
    for (int i = g_.axes; i-- > 0; padded_ *= g_.in[i] + 2 * op.pad[i]) strides_[i] = padded_;
    for (std::int64_t k = 0; k < g_.places; ++k) {
      std::int64_t rest = k, offset = 0;
      for (int i = g_.axes; i-- > 0; rest /= op.w.view.shape[2 + i]) {
        offset += rest % op.w.view.shape[2 + i] * op.dilate[i] * strides_[i];
      }
      places_.push_back(offset);
    }
  }

  void forward() const {
    ValuesOf<V> weights(op_.w.view);
    BiasOf<V> bias(op_);
    const ArrayView& y = op_.y.view;
    for_channels([&](std::int64_t n, std::int64_t group, V* channel, V* line) {
      load_channel(n, group, channel);
      for (std::int64_t f = group * g_.filters; f < (group + 1) * g_.filters; ++f) {
        const V* w = weights.data() + f * g_.places;
        const V* b = bias.from(f);
        for (const PixelRun& run : lines_) {
          const V* window = channel + offset_in_padded(run);
          std::fill_n(line, line_, V(0));
          for (std::size_t k = 0; k < places_.size(); ++k) add(w[k], window + places_[k], line);
          for (std::int64_t i = 0; b && i < line_; ++i) line[i] += *b;
          store_(line_, line, channel_of(y, n, f) + offset_of(run, y), y.strides[y.ndim() - 1]);
        }
      }
    });
  }

  void input_gradient() const {
    ValuesOf<V> weights(op_.w.view);
    BiasOf<V> bias(op_);
    for_channels([&](std::int64_t n, std::int64_t group, V* channel, V* line) {
      std::fill_n(channel, padded_, V(0));
      for (std::int64_t f = group * g_.filters; f < (group + 1) * g_.filters; ++f) {
        const V* w = weights.data() + f * g_.places;
        for (const PixelRun& run : lines_) {
          V* window = channel + offset_in_padded(run);
          load_line(n, f, run, line);
          for (std::size_t k = 0; k < places_.size(); ++k) spread(w[k], line, window + places_[k]);
        }
      }
      const ArrayView& x = op_.x.view;
      const V* b = bias.from(group);
      for_rows(channel_of(x, n, group), channel, [&](char* row, V* values) {
        for (std::int64_t i = 0; b && i < g_.in[g_.axes - 1]; ++i) values[i] += *b;
        store_(g_.in[g_.axes - 1], values, row, x.strides[x.ndim() - 1]);
      });
    });
  }

  void weight_gradient() const {
    std::int64_t filters = g_.groups * g_.filters;
    std::unique_ptr<V[]> sums = buffer<V>(filters * g_.places);
    parallel_for(g_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      std::unique_ptr<V[]> channel = buffer<V>(padded_), line = buffer<V>(line_);
      std::fill_n(channel.get(), padded_, V(0));
      for (std::int64_t group = begin; group < end; ++group) {
        V* sum = sums.get() + group * g_.filters * g_.places;
        std::fill_n(sum, g_.filters * g_.places, V(0));
        for (std::int64_t n = 0; n < g_.batch; ++n) {
          load_channel(n, group, channel.get());
          for (std::int64_t f = 0; f < g_.filters; ++f) {
            for (const PixelRun& run : lines_) {
              const V* window = channel.get() + offset_in_padded(run);
              load_line(n, group * g_.filters + f, run, line.get());
              for (std::size_t k = 0; k < places_.size(); ++k) {
                sum[f * g_.places + static_cast<std::int64_t>(k)] +=
                    dot(line.get(), window + places_[k]);
              }
            }
          }
        }
      }
    });
    store_values(op_.w.view, sums.get());
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;

  /// f(image, group, memory of a channel whose border is 0, memory of a line of pixels).
  template <class F> void for_channels(F&& f) const {
    parallel_for(g_.batch * g_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      std::unique_ptr<V[]> channel = buffer<V>(padded_), line = buffer<V>(line_);
      std::fill_n(channel.get(), padded_, V(0));
      for (std::int64_t i = begin; i < end; ++i) {
        f(i / g_.groups, i % g_.groups, channel.get(), line.get());
      }
    });
  }

  /// f(row in x, row in the padded channel) for each line of positions.
  template <class F> void for_rows(char* x, V* channel, F&& f) const {
    int last = g_.axes - 1;
    std::int64_t rows = g_.positions / g_.in[last];
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t rest = row, from = 0, to = op_.pad[last];
      for (int i = last; i-- > 0; rest /= g_.in[i]) {
        from += rest % g_.in[i] * op_.x.view.strides[2 + i];
        to += (rest % g_.in[i] + op_.pad[i]) * strides_[i];
      }
      f(x + from, channel + to);
    }
  }

  void load_channel(std::int64_t n, std::int64_t group, V* channel) const {
    const ArrayView& x = op_.x.view;
    for_rows(channel_of(x, n, group), channel, [&](const char* row, V* values) {
      load_(g_.in[g_.axes - 1], row, x.strides[x.ndim() - 1], values);
    });
  }

  void load_line(std::int64_t n, std::int64_t filter, const PixelRun& run, V* line) const {
    const ArrayView& y = op_.y.view;
    load_(line_, channel_of(y, n, filter) + offset_of(run, y), y.strides[y.ndim() - 1], line);
  }

  /// Of the first element that a line of pixels looks at.
  std::int64_t offset_in_padded(const PixelRun& run) const {
    std::int64_t offset = 0;
    for (int i = 0; i < g_.axes; ++i) offset += run.place[i] * op_.stride[i] * strides_[i];
    return offset;
  }

  void add(V w, const V* window, V* line) const {
    if (step_ == 1) {
      for (std::int64_t i = 0; i < line_; ++i) line[i] += w * window[i];
    } else {
      for (std::int64_t i = 0; i < line_; ++i) line[i] += w * window[i * step_];
    }
  }

  void spread(V w, const V* line, V* window) const {
    if (step_ == 1) {
      for (std::int64_t i = 0; i < line_; ++i) window[i] += w * line[i];
    } else {
      for (std::int64_t i = 0; i < line_; ++i) window[i * step_] += w * line[i];
    }
  }

  V dot(const V* line, const V* window) const {
    constexpr int kLanes = 8;
    V lanes[kLanes] = {}, sum = 0;
    std::int64_t i = 0;
    for (; i + kLanes <= line_; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += line[i + j] * window[(i + j) * step_];
    }
    for (V lane : lanes) sum += lane;
    for (; i < line_; ++i) sum += line[i] * window[i * step_];
    return sum;
  }

  const Convolution& op_;
  ConvolutionGeometry g_;
  std::vector<PixelRun> lines_;       // of an image of y
  std::int64_t line_, step_;          // pixels of a line, and their distance in x
  std::int64_t padded_ = 1;           // elements of a channel with its padding
  std::int64_t strides_[kMaxNdim];    // of those
  std::vector<std::int64_t> places_;  // offsets of the kernel's places
  LoadKernel load_;
  StoreKernel store_;
};

}  // namespace

template <class V> void convolve_depthwise(const Convolution& op) {
  Depthwise<V> depthwise(op);
  switch (op.direction) {
    case ConvolutionDirection::forward: return depthwise.forward();
    case ConvolutionDirection::input_gradient: return depthwise.input_gradient();
    case ConvolutionDirection::weight_gradient: return depthwise.weight_gradient();
  }
}

template void convolve_depthwise<float>(const Convolution& op);
template void convolve_depthwise<double>(const Convolution& op);

}  // namespace rensa::host
