// Pooling on the CPU.
#include <algorithm>

#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/pooling/pooling.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::Pooling;
using operations::PoolingShape;
using operations::PoolingSpread;

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
constexpr int kSide = 16;                 // inner elements that are taken at once

/// Positions of either dtype.
class Positions {
 public:
  Positions() = default;
  explicit Positions(const Operand& operand)
      : wide_(operand.view.dtype == int32), data_(operand.view.data) {}
  int get(std::int64_t i) const {
    return wide_ ? reinterpret_cast<const std::int32_t*>(data_)[i]
                 : reinterpret_cast<const std::uint8_t*>(data_)[i];
  }
  void set(std::int64_t i, int position) const {
    if (wide_) reinterpret_cast<std::int32_t*>(data_)[i] = position;
    else reinterpret_cast<std::uint8_t*>(data_)[i] = static_cast<std::uint8_t>(position);
  }

 private:
  bool wide_ = false;
  char* data_ = nullptr;
};

/// Calls f(from, to, inner index, place) with a std::integral_constant of how many neighbours, for
/// each place of outer * extents; from and to are the first elements of the outer index.
template <int N, class Extent, class F>
void each_place(const PoolingShape& s, const Extent& extent, const F& f) {
  std::int64_t places = 1;
  for (int a = 0; a < N; ++a) places *= extent(s.axis[a]);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, s.inner));
  parallel_for(s.outer * places, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      int place[N];
      std::int64_t rest = i % places;
      for (int a = N - 1; a >= 0; --a) {
        place[a] = static_cast<int>(rest % extent(s.axis[a]));
        rest /= extent(s.axis[a]);
      }
      std::int64_t k = 0;
      for (; k + kSide <= s.inner; k += kSide) {
        f(std::integral_constant<int, kSide>(), i / places, i, k, place);
      }
      for (; k < s.inner; ++k) f(std::integral_constant<int, 1>(), i / places, i, k, place);
    }
  });
}

template <int N> std::int64_t elements_of(const PoolingShape& s) {
  std::int64_t n = s.inner;
  for (int a = 0; a < N; ++a) n *= s.axis[a].in;
  return n;
}
template <int N> std::int64_t windows_of(const PoolingShape& s) {
  std::int64_t n = s.inner;
  for (int a = 0; a < N; ++a) n *= s.axis[a].out;
  return n;
}
/// The axes that there are.
template <int N> using AxesOf = const WindowAxis (&)[N];
template <int N> AxesOf<N> axes_of(const PoolingShape& s) {
  return reinterpret_cast<AxesOf<N>>(s.axis);
}

template <class T, int N> void pool(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t inner = s.inner, each = elements_of<N>(s);
  Positions positions;
  if (op.positions.present()) positions = Positions(op.positions);
  auto out = [](const WindowAxis& a) { return a.out; };
  each_place<N>(
      s, out,
      [&](auto width, std::int64_t outer, std::int64_t i, std::int64_t k, const int(&o)[N]) {
        constexpr int W = decltype(width)::value;
        const T* x = op.x.view.as<T>() + outer * each + k;
        std::int64_t to = i * inner + k;
        auto load = [&](long long offset, int j) { return convert<V>(x[offset * inner + j]); };
        V result[W];
        int found[W];
        if (s.mode == PoolingMode::max) {
          greatest_of_window<W>(axes_of<N>(s), o, load, result, found);
          for (int j = 0; j < W; ++j) positions.set(to + j, found[j]);
        } else if (s.mode == PoolingMode::at) {
          for (int j = 0; j < W; ++j) found[j] = positions.get(to + j);
          at_of_window<W>(axes_of<N>(s), o, load, found, result);
        } else {
          sum_of_window<W>(axes_of<N>(s), s.weight, o, load, result);
        }
        for (int j = 0; j < W; ++j) op.y.view.as<T>()[to + j] = convert<T>(result[j]);
      });
}

template <class T, int N> void spread(const PoolingSpread& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t inner = s.inner, each = windows_of<N>(s);
  bool at = s.mode == PoolingMode::at;
  Positions positions;
  if (at) positions = Positions(op.positions);
  auto in = [](const WindowAxis& a) { return a.in; };
  each_place<N>(
      s, in,
      [&](auto width, std::int64_t outer, std::int64_t i, std::int64_t k, const int(&place)[N]) {
        constexpr int W = decltype(width)::value;
        std::int64_t from = outer * each + k;
        const T* gy = op.gy.view.as<T>() + from;
        V sum[W];
        sum_of_windows<W>(
            axes_of<N>(s), s.weight, at, place,
            [&](long long offset, int j) { return convert<V>(gy[offset * inner + j]); },
            [&](long long offset, int j) { return positions.get(from + offset * inner + j); }, sum);
        for (int j = 0; j < W; ++j) op.gx.view.as<T>()[i * inner + k + j] = convert<T>(sum[j]);
      });
}

// f(T{}, the number of axes).
template <class F> void visit(Dtype dtype, int ndim, const F& f) {
  auto with_axes = [&](auto element) {
    if (ndim == 2) f(element, std::integral_constant<int, 2>());
    else if (ndim == 3) f(element, std::integral_constant<int, 3>());
    else f(element, std::integral_constant<int, operations::kMostWindowAxes>());
  };
  switch (dtype) {
    case Dtype::float16: return with_axes(half_t());
    case Dtype::bfloat16: return with_axes(bfloat16_t());
    case Dtype::float32: return with_axes(float());
    default: with_axes(double());
  }
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Pooling::run_cpu() {
  host::visit(x.view.dtype, shape.ndim, [&](auto element, auto axes) {
    host::pool<decltype(element), decltype(axes)::value>(*this);
  });
}

void PoolingSpread::run_cpu() {
  host::visit(gy.view.dtype, shape.ndim, [&](auto element, auto axes) {
    host::spread<decltype(element), decltype(axes)::value>(*this);
  });
}

}  // namespace rensa::operations
