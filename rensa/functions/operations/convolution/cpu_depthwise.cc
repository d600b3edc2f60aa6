// Convolutions of groups of one channel on the CPU.
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_geometry.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

/// Of values of type V. A channel's filters are those of its group.
template <class V> class Depthwise {
 public:
  explicit Depthwise(const Convolution& op)
      : op_(op),
        g_(op),
        lines_(g_.runs(0, g_.pixels)),
        line_(g_.out[g_.axes - 1]),
        load_(kernels().load_of(op.x.view.dtype, kType)),
        store_(kernels().store_of(op.x.view.dtype, kType)) {}

  void forward() const {
    ValuesOf<V> weights(op_.w.view);
    const ArrayView &x = op_.x.view, &y = op_.y.view;
    std::int64_t all = g_.groups * g_.filters;
    parallel_for(g_.batch * all, 1, [&](std::int64_t begin, std::int64_t end) {
      std::unique_ptr<V[]> sums = buffer<V>(line_), values = buffer<V>(line_);
      for (std::int64_t item = begin; item < end; ++item) {
        std::int64_t n = item / all, filter = item % all;
        const char* channel = channel_of(x, n, filter / g_.filters);
        const V* w = weights.data() + filter * g_.places;
        for (const PixelRun& line : lines_) {
          std::fill_n(sums.get(), line_, V(0));
          for (std::int64_t k = 0; k < g_.places; ++k) {
            Reach reach = g_.reach(line, k, spatial_strides(x));
            std::int64_t count = reach.end - reach.begin;
            if (count == 0) continue;
            load_(count, channel + reach.offset, reach.step, values.get());
            V* sum = sums.get() + reach.begin;
            for (std::int64_t i = 0; i < count; ++i)
              sum[i] += w[k] * values[static_cast<std::size_t>(i)];
          }
          store_(line_, sums.get(), channel_of(y, n, filter) + offset_of(line, y),
                 y.strides[y.ndim() - 1]);
        }
      }
    });
  }

  void input_gradient() const {
    ValuesOf<V> weights(op_.w.view);
    const ArrayView &x = op_.x.view, &y = op_.y.view;
    std::int64_t strides[kMaxNdim], step = 1;
    for (int i = g_.axes; i-- > 0; step *= g_.in[i]) strides[i] = step;
    parallel_for(g_.batch * g_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      std::unique_ptr<V[]> image = buffer<V>(g_.positions), values = buffer<V>(line_);
      for (std::int64_t item = begin; item < end; ++item) {
        std::int64_t n = item / g_.groups, group = item % g_.groups;
        std::fill_n(image.get(), g_.positions, V(0));
        for (std::int64_t f = 0; f < g_.filters; ++f) {
          std::int64_t filter = group * g_.filters + f;
          const V* w = weights.data() + filter * g_.places;
          for (const PixelRun& line : lines_) {
            load_line(y, n, filter, line, values.get());
            for (std::int64_t k = 0; k < g_.places; ++k) {
              Reach reach = g_.reach(line, k, strides);
              V* target = image.get() + reach.offset;
              for (std::int64_t i = reach.begin; i < reach.end; ++i, target += reach.step) {
                *target += w[k] * values[static_cast<std::size_t>(i)];
              }
            }
          }
        }
        store_values(channels_of(x, n, group, 1), image.get());
      }
    });
  }

  void weight_gradient() const {
    const ArrayView &x = op_.x.view, &y = op_.y.view;
    std::int64_t all = g_.groups * g_.filters;
    std::unique_ptr<V[]> gradients = buffer<V>(all * g_.places);
    parallel_for(all, 1, [&](std::int64_t begin, std::int64_t end) {
      std::unique_ptr<V[]> pixels = buffer<V>(line_), values = buffer<V>(line_);
      for (std::int64_t filter = begin; filter < end; ++filter) {
        V* sums = gradients.get() + filter * g_.places;
        std::fill_n(sums, g_.places, V(0));
        for (std::int64_t n = 0; n < g_.batch; ++n) {
          const char* channel = channel_of(x, n, filter / g_.filters);
          for (const PixelRun& line : lines_) {
            load_line(y, n, filter, line, pixels.get());
            for (std::int64_t k = 0; k < g_.places; ++k) {
              Reach reach = g_.reach(line, k, spatial_strides(x));
              std::int64_t count = reach.end - reach.begin;
              if (count == 0) continue;
              load_(count, channel + reach.offset, reach.step, values.get());
              sums[k] += dot(count, values.get(), pixels.get() + reach.begin);
            }
          }
        }
      }
    });
    store_values(op_.w.view, gradients.get());
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;

  void load_line(const ArrayView& y, std::int64_t n, std::int64_t filter, const PixelRun& line,
                 V* values) const {
    load_(line_, channel_of(y, n, filter) + offset_of(line, y), y.strides[y.ndim() - 1], values);
  }

  static V dot(std::int64_t count, const V* a, const V* b) {
    constexpr int kLanes = 8;
    V lanes[kLanes] = {}, sum = 0;
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
    }
    for (V lane : lanes) sum += lane;
    for (; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }

  const Convolution& op_;
  ConvolutionGeometry g_;
  std::vector<PixelRun> lines_;
  std::int64_t line_;  // pixels of a line
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
