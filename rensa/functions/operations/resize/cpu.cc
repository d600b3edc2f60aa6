// Images resized on the CPU: a thread has rows of images.
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/resize/resize.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::Resize;
using operations::ResizeSpread;

/// A ResizeAxis that has looked up its pixels, and its elements, once.
template <class V> struct ListedAxis {
  std::vector<ResizeTap<V>> taps;
  std::vector<ResizeRange> ranges;

  explicit ListedAxis(const ResizeAxis& axis, bool of_elements) {
    for (int o = 0; o < axis.out; ++o) taps.push_back(axis.tap<V>(o));
    if (!of_elements) return;
    for (int i = 0; i < axis.in; ++i) ranges.push_back(axis.pixels_of(i));
  }
  const ResizeTap<V>& at(int o) const { return taps[static_cast<std::size_t>(o)]; }
  template <class> V weight(int o, int i) const { return at(o).weight_of(i); }
  ResizeRange pixels_of(int i) const { return ranges[static_cast<std::size_t>(i)]; }
};

template <class T> void resize(const Resize& op) {
  using V = ComputeOf<T>;
  const ResizeAxis &rows = op.shape.rows, &columns = op.shape.columns;
  std::int64_t inner = op.shape.inner, width = columns.in * inner;
  ListedAxis<V> y_axis(rows, false), x_axis(columns, false);
  parallel_for(op.shape.outer * rows.out, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const ResizeTap<V>& y = y_axis.at(static_cast<int>(r % rows.out));
      const T* from = op.x.view.as<const T>() + r / rows.out * rows.in * width;
      const T *above = from + y.at[0] * width, *below = from + y.at[1] * width;
      T* to = op.y.view.as<T>() + r * columns.out * inner;
      for (int o = 0; o < columns.out; ++o, to += inner) {
        const ResizeTap<V>& x = x_axis.at(o);
        std::int64_t left = x.at[0] * inner, right = x.at[1] * inner;
        for (std::int64_t k = 0; k < inner; ++k) {
          if (columns.linear) {
            to[k] = convert<T>(
                resized_between(y, x,
                                {convert<V>(above[left + k]), convert<V>(above[right + k]),
                                 convert<V>(below[left + k]), convert<V>(below[right + k])}));
          } else {
            to[k] = above[left + k];
          }
        }
      }
    }
  });
}

template <class T> void spread(const ResizeSpread& op) {
  using V = ComputeOf<T>;
  const ResizeAxis &rows = op.shape.rows, &columns = op.shape.columns;
  std::int64_t inner = op.shape.inner;
  ListedAxis<V> y_axis(rows, true), x_axis(columns, true);
  parallel_for(op.shape.outer * rows.in, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* gy = op.gy.view.as<const T>() + r / rows.in * rows.out * columns.out * inner;
      T* to = op.gx.view.as<T>() + r * columns.in * inner;
      for (int j = 0; j < columns.in; ++j) {
        for (std::int64_t k = 0; k < inner; ++k) {
          auto load = [&](int row, int column, bool there, V(&value)[1]) {
            std::int64_t at = (static_cast<std::int64_t>(row) * columns.out + column) * inner + k;
            value[0] = there ? convert<V>(gy[at]) : V(0);
          };
          V sum[1];
          resize_gradient(y_axis, x_axis, static_cast<int>(r % rows.in), j, load, sum);
          *to++ = convert<T>(sum[0]);
        }
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Resize::run_cpu() {
  visit_floating(y.view.dtype, [&](auto element) { host::resize<decltype(element)>(*this); });
}

void ResizeSpread::run_cpu() {
  visit_floating(gx.view.dtype, [&](auto element) { host::spread<decltype(element)>(*this); });
}

}  // namespace rensa::operations
