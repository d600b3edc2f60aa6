// Pooling on the CPU.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "rensa/core/host_memory.h"
#include "rensa/core/integers.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/pooling/cpu_kernels.h"
#include "rensa/functions/operations/pooling/pooling.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::Pooling;
using operations::PoolingShape;
using operations::PoolingSpread;

constexpr std::int64_t kGrain = 8 << 10;       // elements that are worth waking a thread for
constexpr int kBlock = 256;                    // results of a Block, at most
constexpr std::int64_t kLane = 64;             // inner elements that spread() takes at once
constexpr std::int64_t kMostPlaces = 4 << 10;  // of a window, to have a table of them

template <int N> std::int64_t elements_of(const PoolingShape& s) {
  std::int64_t n = 1;
  for (int a = 0; a < N; ++a) n *= s.axis[a].in;
  return n;
}
template <int N> std::int64_t windows_of(const PoolingShape& s) {
  std::int64_t n = 1;
  for (int a = 0; a < N; ++a) n *= s.axis[a].out;
  return n;
}
/// The first N of the axes, and of places along them.
template <int N> using AxesOf = const WindowAxis (&)[N];
template <int N> AxesOf<N> axes_of(const PoolingShape& s) {
  return reinterpret_cast<AxesOf<N>>(s.axis);
}
template <int N> using PlaceOf = const int (&)[N];
template <int N> PlaceOf<N - 1> leading(const int (&o)[N]) {
  return reinterpret_cast<PlaceOf<N - 1>>(o);
}

/// From where to where along the last axis.
struct Range {
  int begin = 0, end = 0;
};

/// Results that lie side by side: of `n` windows along the last axis, from o on, or of the inner
/// elements k to k + n of window o.
template <int N> struct Block {
  std::int64_t outer, first;  // the first result's number
  int o[N];
  std::int64_t k;
  int n;
};

/// Whether blocks are of windows: where there are no inner elements, and windows have a stride and
/// are several.
template <int N> bool of_windows(const PoolingShape& s) {
  return s.inner == 1 && s.axis[N - 1].stride > 0 && s.axis[N - 1].out >= 4;
}

/// Calls f(block) for blocks that have all results.
template <int N, class F> void each_block(const PoolingShape& s, const F& f) {
  const WindowAxis& last = s.axis[N - 1];
  bool along = of_windows<N>(s);
  std::int64_t row = along ? last.out : s.inner, rows = windows_of<N>(s) * s.inner / row;
  std::int64_t pieces = ceil_div(row, std::int64_t{kBlock});
  std::int64_t grain = std::max<std::int64_t>(1, kGrain * pieces / row);
  parallel_for(s.outer * rows * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t r = i / pieces, start = i % pieces * kBlock, rest = r % rows;
      Block<N> block;
      block.outer = r / rows;
      block.first = r * row + start;
      block.k = along ? 0 : start;
      block.n = static_cast<int>(std::min<std::int64_t>(kBlock, row - start));
      block.o[N - 1] = static_cast<int>(along ? start : rest % last.out);
      if (!along) rest /= last.out;
      for (int a = N - 2; a >= 0; --a) {
        block.o[a] = static_cast<int>(rest % s.axis[a].out);
        rest /= s.axis[a].out;
      }
      f(block);
    }
  });
}

/// Of each place along the last axis of windows with a stride: the windows that have an element
/// there.
template <int N> std::vector<Range> reach_of(const char* name, const PoolingShape& s) {
  if (!of_windows<N>(s)) return {};
  const WindowAxis& a = s.axis[N - 1];
  auto reach = host_list<Range>(name, a.size);
  for (int place = 0; place < a.size; ++place) {
    int short_of = a.pad - place, last = a.in - 1 + a.pad - place;
    reach.push_back({short_of > 0 ? (short_of + a.stride - 1) / a.stride : 0,
                     last < 0 ? 0 : std::min(a.out, last / a.stride + 1)});
  }
  return reach;
}

/// Calls f(from, step, {begin, end}, position) for the elements of a block's windows, in the
/// windows' order: results begin to end have from[0], from[step], ... at this position.
template <int N, class T, class F>
void each_run(const PoolingShape& s, const std::vector<Range>& reach, const T* x,
              const Block<N>& block, const F& f) {
  const WindowAxis& last = s.axis[N - 1];
  int o = block.o[N - 1];
  x += block.outer * elements_of<N>(s) * s.inner + block.k;
  each_of_window(axes_of<N - 1>(s), leading(block.o), 0, 0, [&](long long row, int position) {
    const T* from = x + row * last.in * s.inner;
    position *= last.size;
    for (int place = 0; place < static_cast<int>(reach.size()); ++place) {
      int begin = std::max(o, reach[static_cast<std::size_t>(place)].begin);
      int end = std::min(o + block.n, reach[static_cast<std::size_t>(place)].end);
      if (begin >= end) continue;
      f(from + (std::int64_t{begin} * last.stride - last.pad + place), last.stride,
        Range{begin - o, end - o}, position + place);
    }
    if (!reach.empty()) return;
    int first = last.first(o), end = last.end(o);
    for (int i = last.begin(o); i < end; ++i) {
      f(from + i * s.inner, 1, Range{0, block.n}, position + (i - first));
    }
  });
}

/// Calls f(0, from[0]), f(1, from[step]), ... in loops of their own for the common steps.
template <class T, class F> RENSA_FN void each_of_run(const T* from, int step, int n, const F& f) {
  if (step == 1) {
    for (int j = 0; j < n; ++j) f(j, from[j]);
  } else if (step == 2) {
    for (int j = 0; j < n; ++j) f(j, from[2 * j]);
  } else {
    for (int j = 0; j < n; ++j) f(j, from[std::int64_t{j} * step]);
  }
}
// Functions of their own, since the compiler makes vectors of these loops only where the arguments
// tell it that nothing overlaps.
template <class T, class V>
void take_greatest(const T* __restrict from, int step, int n, int position, V* __restrict greatest,
                   int* __restrict positions) {
  each_of_run(from, step, n, [&](int j, T element) {
    V value = convert<V>(element);
    bool better = !(value <= greatest[j]) & (greatest[j] == greatest[j]);
    greatest[j] = better ? value : greatest[j];
    positions[j] = better ? position : positions[j];
  });
}
template <class T, class V>
void add_run(const T* __restrict from, int step, int n, V* __restrict sum) {
  each_of_run(from, step, n, [&](int j, T element) { sum[j] += convert<V>(element); });
}

const AllPoolingKernels& pooling_kernels() {
  static const AllPoolingKernels all = RENSA_IN_SET(best_instruction_set(), get_pooling_kernels)();
  return all;
}

/// Calls f(runs, count) for the runs of a block of inner elements, many at a time.
template <int N, class T, class F>
void each_runs(const PoolingShape& s, const T* x, const Block<N>& block, const F& f) {
  constexpr int kRuns = 32;
  PoolingRun<T> runs[kRuns];
  int count = 0;
  each_run<N>(s, {}, x, block, [&](const T* from, int, Range, int position) {
    runs[count++] = {from, position};
    if (count == kRuns) f(runs, std::exchange(count, 0));
  });
  if (count > 0) f(runs, count);
}

template <class V> void add_terms(const V* __restrict terms, int n, int step, V* __restrict sums) {
  if (step == 1) {
    for (int j = 0; j < n; ++j) sums[j] += terms[j];
  } else {
    for (int j = 0; j < n; ++j) sums[std::int64_t{j} * step] += terms[j];
  }
}

template <class T, int N, class P> void pool_greatest(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::vector<Range> reach = reach_of<N>(op.name(), s);
  const PoolingKernels<T>& kernels = pooling_kernels().of<T>();
  each_block<N>(s, [&](const Block<N>& block) {
    V greatest[kBlock];
    int positions[kBlock];
    std::fill_n(greatest, block.n, m::lowest<V>());
    std::fill_n(positions, block.n, 0);
    if (reach.empty()) {
      each_runs<N>(s, op.x.view.as<T>(), block, [&](const PoolingRun<T>* runs, int count) {
        kernels.take_greatest(runs, count, block.n, greatest, positions);
      });
    } else {
      each_run<N>(s, reach, op.x.view.as<T>(), block,
                  [&](const T* from, int step, Range to, int position) {
                    take_greatest(from, step, to.end - to.begin, position, greatest + to.begin,
                                  positions + to.begin);
                  });
    }
    kernels.store(greatest, block.n, op.y.view.as<T>() + block.first);
    P* to = reinterpret_cast<P*>(op.positions.view.data) + block.first;
    if constexpr (sizeof(P) == 1) kernels.store_bytes(positions, block.n, to);
    else std::copy_n(positions, block.n, to);
  });
}

/// Calls f(of, count, first, o) for windows o of single elements with few windows along the last
/// axis, of kOuters outer indexes at once, as what one of them takes it takes one after the other:
/// `count` of them count, of[k] is where index k's elements are and `first + k * windows` its
/// result's number.
inline constexpr int kOuters = 16;
template <int N, class T, class F>
void each_of_outers(const PoolingShape& s, const T* x, const F& f) {
  std::int64_t elements = elements_of<N>(s), windows = windows_of<N>(s);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / (kOuters * std::max(elements, windows)));
  parallel_for(ceil_div(s.outer, std::int64_t{kOuters}), grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t outer = begin * kOuters;
                      outer < std::min(s.outer, end * kOuters); outer += kOuters) {
                   auto count = static_cast<int>(std::min<std::int64_t>(kOuters, s.outer - outer));
                   const T* of[kOuters];
                   for (int k = 0; k < kOuters; ++k) {
                     of[k] = x + (outer + std::min(k, count - 1)) * elements;
                   }
                   for (std::int64_t w = 0; w < windows; ++w) {
                     int o[N];
                     for (std::int64_t a = N - 1, rest = w; a >= 0; --a) {
                       o[a] = static_cast<int>(rest % s.axis[a].out);
                       rest /= s.axis[a].out;
                     }
                     f(of, count, outer * windows + w, o);
                   }
                 }
               });
}

template <class T, int N, class P> void pool_greatest_of_outers(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t windows = windows_of<N>(s);
  T* y = op.y.view.as<T>();
  P* found = reinterpret_cast<P*>(op.positions.view.data);
  each_of_outers<N>(
      s, op.x.view.as<T>(), [&](const T* const* of, int count, std::int64_t first, PlaceOf<N> o) {
        V greatest[kOuters];
        int positions[kOuters];
        greatest_of_window(
            axes_of<N>(s), o, [&](long long i, int k) { return convert<V>(of[k][i]); }, greatest,
            positions);
        for (int k = 0; k < count; ++k) {
          y[first + k * windows] = convert<T>(greatest[k]);
          found[first + k * windows] = static_cast<P>(positions[k]);
        }
      });
}

/// Divides the sum of window o as the weight says.
template <int N, class V> V weighted(const PoolingShape& s, PlaceOf<N> o, V sum) {
  switch (s.weight) {
    case PoolingWeight::window: return sum / V(places_of(axes_of<N>(s)));
    case PoolingWeight::covered: return sum / V(covered_by(axes_of<N>(s), o));
    default: return sum;
  }
}

template <class T, int N> void pool_sums_of_outers(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t windows = windows_of<N>(s);
  T* y = op.y.view.as<T>();
  each_of_outers<N>(s, op.x.view.as<T>(),
                    [&](const T* const* of, int count, std::int64_t first, PlaceOf<N> o) {
                      V sum[kOuters] = {};
                      each_of_window(axes_of<N>(s), o, 0, 0, [&](long long i, int) {
                        for (int k = 0; k < kOuters; ++k) sum[k] += convert<V>(of[k][i]);
                      });
                      for (int k = 0; k < count; ++k) {
                        y[first + k * windows] = convert<T>(weighted<N>(s, o, sum[k]));
                      }
                    });
}

template <class T, int N> void pool_sums(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::vector<Range> reach = reach_of<N>(op.name(), s);
  bool along = of_windows<N>(s);
  each_block<N>(s, [&](const Block<N>& block) {
    V sum[kBlock];
    std::fill_n(sum, block.n, V(0));
    each_run<N>(s, reach, op.x.view.as<T>(), block, [&](const T* from, int step, Range to, int) {
      add_run(from, step, to.end - to.begin, sum + to.begin);
    });
    if (s.weight == PoolingWeight::window) {
      V count = V(places_of(axes_of<N>(s)));
      for (int j = 0; j < block.n; ++j) sum[j] = sum[j] / count;
    } else if (s.weight == PoolingWeight::covered) {
      const WindowAxis& last = s.axis[N - 1];
      int o = block.o[N - 1], rows = covered_by(axes_of<N - 1>(s), leading(block.o));
      for (int j = 0; j < block.n; ++j) {
        int of = along ? o + j : o;
        sum[j] = sum[j] / V(rows * (last.end(of) - last.begin(of)));
      }
    }
    pooling_kernels().of<T>().store(sum, block.n, op.y.view.as<T>() + block.first);
  });
}

/// Where positions of windows are among the elements.
template <int N> class Places {
 public:
  Places(const char* name, const PoolingShape& s) : axes_(axes_of<N>(s)) {
    std::int64_t step = 1;
    for (int a = N - 1; a >= 0; --a) {
      steps_[a] = step;
      step *= axes_[a].in;
    }
    count_ = places_of(axes_);
    if (count_ > kMostPlaces || s.mode != PoolingMode::at) return;
    offsets_ = host_list<std::int64_t>(name, count_);
    for (int p = 0; p < count_; ++p) {
      std::int64_t offset = 0;
      for (int a = N - 1, rest = p; a >= 0; --a) {
        offset += rest % axes_[a].size * steps_[a];
        rest /= axes_[a].size;
      }
      offsets_.push_back(offset);
    }
  }
  int count() const { return count_; }
  /// How far each position's element is from a window's first one; null where windows have too many
  /// places.
  const std::int64_t* offsets() const { return offsets_.empty() ? nullptr : offsets_.data(); }
  /// A window's first element, which may be in the padding.
  std::int64_t first(const int (&o)[N]) const {
    std::int64_t element = 0;
    for (int a = 0; a < N; ++a) element += axes_[a].first(o[a]) * steps_[a];
    return element;
  }
  /// The windows along axis a of which all places are elements.
  Range whole(int a) const {
    const WindowAxis& axis = axes_[a];
    if (axis.stride == 0 || axis.in + axis.pad < axis.size) return {};
    int begin = std::min(axis.out, (axis.pad + axis.stride - 1) / axis.stride);
    int end = std::min(axis.out, (axis.in + axis.pad - axis.size) / axis.stride + 1);
    return {begin, std::max(begin, end)};
  }
  /// The element at window o's position p; negative where there is none.
  std::int64_t element(const int (&o)[N], int p) const {
    if (p < 0 || p >= count_) return -1;
    std::int64_t element = 0;
    for (int a = N - 1; a >= 0; --a) {
      int i = axes_[a].first(o[a]) + p % axes_[a].size;
      if (i < axes_[a].begin(o[a]) || i >= axes_[a].end(o[a])) return -1;
      element += i * steps_[a];
      p /= axes_[a].size;
    }
    return element;
  }

 private:
  AxesOf<N> axes_;
  int count_;
  std::int64_t steps_[N];
  std::vector<std::int64_t> offsets_;
};

template <class T, int N, class P> void pool_at(const Pooling& op) {
  const PoolingShape& s = op.shape;
  Places<N> places(op.name(), s);
  bool along = of_windows<N>(s);
  each_block<N>(s, [&](const Block<N>& block) {
    int o[N];
    std::copy_n(block.o, N, o);
    const T* x = op.x.view.as<T>() + block.outer * elements_of<N>(s) * s.inner + block.k;
    const P* positions = reinterpret_cast<const P*>(op.positions.view.data) + block.first;
    T* y = op.y.view.as<T>() + block.first;
    for (int j = 0; j < block.n; ++j) {
      if (along) o[N - 1] = block.o[N - 1] + j;
      std::int64_t element = places.element(o, positions[j]);
      y[j] = element < 0 ? convert<T>(0.0f) : x[element * s.inner + (along ? 0 : j)];
    }
  });
}

/// What spread() does with one outer index and `n` inner elements from k on (Width, unless that is
/// 0): gx's element i has them at to[i * step], zero at first. Windows are taken in their order, so
/// that each element's terms are added in it.
template <class T, int N, class P, int Width> class SpreadLane {
 public:
  using V = ComputeOf<T>;
  SpreadLane(const PoolingSpread& op, const Places<N>& places) : shape_(op.shape), places_(places) {
    gy_ = op.gy.view.as<T>();
    if (op.positions.present()) positions_ = reinterpret_cast<const P*>(op.positions.view.data);
    for (int a = 0; a < N && places.offsets(); ++a) whole_[a] = places.whole(a);
    if (Width != 1 || op.shape.mode == PoolingMode::at || !of_windows<N>(op.shape)) return;
    reach_ = reach_of<N>(op.name(), op.shape);
    terms_ = host_vector<V>(op.name(), op.shape.axis[N - 1].out);
  }
  void run(std::int64_t outer, std::int64_t k, std::int64_t n, V* to, std::int64_t step) {
    n_ = n, to_ = to, step_ = step;
    const WindowAxis& last = shape_.axis[N - 1];
    std::int64_t windows = windows_of<N>(shape_);
    for (std::int64_t row = 0; row < windows; row += last.out) {
      int o[N];
      std::int64_t rest = row / last.out, from = (outer * windows + row) * shape_.inner + k;
      bool whole = true;
      for (int a = N - 2; a >= 0; --a) {
        o[a] = static_cast<int>(rest % shape_.axis[a].out);
        rest /= shape_.axis[a].out;
        whole = whole && o[a] >= whole_[a].begin && o[a] < whole_[a].end;
      }
      if (shape_.mode != PoolingMode::at) {
        if (reach_.empty()) add_sums(o, from);
        else add_row_of_sums(o, from);
        continue;
      }
      Range inside = whole ? whole_[N - 1] : Range();
      add_at(o, {0, inside.begin}, from);
      add_inside(o, inside, from);
      add_at(o, {inside.end, last.out}, from);
    }
  }

 private:
  std::int64_t n() const { return Width ? Width : n_; }
  std::int64_t step() const { return Width == 1 ? 1 : step_; }

  // Of windows o, o + 1, ... along the last axis, `from` being where the first of their row is.
  void add_inside(int (&o)[N], Range windows, std::int64_t from) const {
    if (windows.begin >= windows.end) return;
    const std::int64_t* offsets = places_.offsets();
    auto count = static_cast<unsigned>(places_.count());
    o[N - 1] = windows.begin;
    V* first = to_ + places_.first(o) * step_;
    for (int w = windows.begin; w < windows.end; ++w) {
      const P* positions = positions_ + (from + w * shape_.inner);
      const T* gy = gy_ + (from + w * shape_.inner);
      for (std::int64_t j = 0; j < n(); ++j) {
        auto p = static_cast<unsigned>(positions[j]);
        if (p < count) first[offsets[p] * step_ + j] += convert<V>(gy[j]);
      }
      first += shape_.axis[N - 1].stride * step_;
    }
  }
  void add_at(int (&o)[N], Range windows, std::int64_t from) const {
    for (int w = windows.begin; w < windows.end; ++w) {
      o[N - 1] = w;
      std::int64_t start = from + w * shape_.inner;
      for (std::int64_t j = 0; j < n(); ++j) {
        std::int64_t element = places_.element(o, positions_[start + j]);
        if (element >= 0) to_[element * step_ + j] += convert<V>(gy_[start + j]);
      }
    }
  }
  V divisor(int covered) const {
    return V(shape_.weight == PoolingWeight::window    ? places_.count()
             : shape_.weight == PoolingWeight::covered ? covered
                                                       : 1);
  }
  void add_sums(int (&o)[N], std::int64_t from) const {
    const WindowAxis& last = shape_.axis[N - 1];
    int rows = covered_by(axes_of<N - 1>(shape_), leading(o));
    each_of_window(axes_of<N - 1>(shape_), leading(o), 0, 0, [&](long long row, int) {
      V* sums = to_ + row * last.in * step();
      for (int w = 0; w < last.out; ++w) {
        int begin = last.begin(w), end = last.end(w);
        const T* gy = gy_ + (from + w * shape_.inner);
        V terms[Width ? Width : kLane], by = divisor(rows * (end - begin));
        for (std::int64_t j = 0; j < n(); ++j) terms[j] = convert<V>(gy[j]) / by;
        for (int i = begin; i < end; ++i) {
          for (std::int64_t j = 0; j < n(); ++j) sums[i * step() + j] += terms[j];
        }
      }
    });
  }
  // The windows that have an element at a later place come first.
  void add_row_of_sums(int (&o)[N], std::int64_t from) {
    const WindowAxis& last = shape_.axis[N - 1];
    int rows = covered_by(axes_of<N - 1>(shape_), leading(o));
    for (int w = 0; w < last.out; ++w) {
      V by = divisor(rows * (last.end(w) - last.begin(w)));
      terms_[static_cast<std::size_t>(w)] = convert<V>(gy_[from + w]) / by;
    }
    each_of_window(axes_of<N - 1>(shape_), leading(o), 0, 0, [&](long long row, int) {
      for (int place = last.size - 1; place >= 0; --place) {
        Range windows = reach_[static_cast<std::size_t>(place)];
        if (windows.begin >= windows.end) continue;
        V* sums = to_ + (row * last.in + last.first(windows.begin) + place);
        add_terms(terms_.data() + windows.begin, windows.end - windows.begin, last.stride, sums);
      }
    });
  }

  const PoolingShape& shape_;
  const Places<N>& places_;
  const T* gy_;
  const P* positions_ = nullptr;
  Range whole_[N] = {};  // windows of which all places are elements
  std::vector<Range> reach_;
  std::vector<V> terms_;  // of a row of windows
  std::int64_t n_ = 0, step_ = 0;
  V* to_ = nullptr;
};

template <class T, int N, class P, int Width> void spread(const PoolingSpread& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  Places<N> places(op.name(), s);
  std::int64_t elements = elements_of<N>(s), lanes = ceil_div(s.inner, kLane);
  std::int64_t each = std::max(elements, windows_of<N>(s)) * std::min(s.inner, kLane);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, each));
  parallel_for(s.outer * lanes, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<V> sums;  // of elements that are narrower
    if constexpr (!std::is_same_v<T, V>) {
      sums = host_vector<V>(op.name(), elements * std::min(s.inner, kLane));
    }
    SpreadLane<T, N, P, Width> lane(op, places);
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t outer = i / lanes, k = i % lanes * kLane, n = std::min(kLane, s.inner - k);
      T* gx = op.gx.view.as<T>() + outer * elements * s.inner + k;
      V* to = sums.data();
      std::int64_t step = n;
      if constexpr (std::is_same_v<T, V>) to = gx, step = s.inner;
      if (step == n) std::fill_n(to, elements * n, V(0));
      for (std::int64_t e = 0; step > n && e < elements; ++e) std::fill_n(to + e * step, n, V(0));
      lane.run(outer, k, n, to, step);
      if constexpr (std::is_same_v<T, V>) continue;
      for (std::int64_t e = 0; e < elements; ++e) {
        for (std::int64_t j = 0; j < n; ++j) gx[e * s.inner + j] = convert<T>(to[e * n + j]);
      }
    }
  });
}

/// f(the positions' type).
template <class F> void visit_positions(const Operand& positions, const F& f) {
  if (positions.present() && positions.view.dtype == int32) f(std::int32_t());
  else f(std::uint8_t());
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
    using T = decltype(element);
    constexpr int N = decltype(axes)::value;
    bool by_outers = shape.inner == 1 && !host::of_windows<N>(shape);
    if (shape.mode == PoolingMode::sum) {
      return by_outers ? host::pool_sums_of_outers<T, N>(*this) : host::pool_sums<T, N>(*this);
    }
    host::visit_positions(positions, [&](auto position) {
      using P = decltype(position);
      if (shape.mode == PoolingMode::at) host::pool_at<T, N, P>(*this);
      else if (by_outers) host::pool_greatest_of_outers<T, N, P>(*this);
      else host::pool_greatest<T, N, P>(*this);
    });
  });
}

void PoolingSpread::run_cpu() {
  host::visit(gy.view.dtype, shape.ndim, [&](auto element, auto axes) {
    host::visit_positions(positions, [&](auto position) {
      using T = decltype(element);
      using P = decltype(position);
      constexpr int N = decltype(axes)::value;
      if (shape.inner == 1) host::spread<T, N, P, 1>(*this);
      else host::spread<T, N, P, 0>(*this);
    });
  });
}

}  // namespace rensa::operations
