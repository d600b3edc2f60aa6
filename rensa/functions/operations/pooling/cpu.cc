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
#include "rensa/functions/operations/pooling/cpu_windows.h"
#include "rensa/functions/operations/pooling/pooling.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::Pooling;
using operations::PoolingSpread;

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
constexpr int kBlock = 256;               // results of a Block, at most
constexpr std::int64_t kLane = 64;        // inner elements that spread() takes at once

/// Results that lie side by side: of `n` windows along the last axis, from o on, or of the inner
/// elements k to k + n of window o.
struct Block {
  std::int64_t outer, first;  // the first result's number
  int o[kMostWindowAxes];
  std::int64_t k;
  int n;
};

/// Calls f(block) for blocks that have all results.
template <class F> void each_block(const PoolingShape& s, const F& f) {
  const WindowAxis& last = last_of(s);
  bool along = of_windows(s);
  std::int64_t row = along ? last.out : s.inner, rows = windows_of(s) * s.inner / row;
  std::int64_t pieces = ceil_div(row, std::int64_t{kBlock});
  std::int64_t grain = std::max<std::int64_t>(1, kGrain * pieces / row);
  parallel_for(s.outer * rows * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t r = i / pieces, start = i % pieces * kBlock, rest = r % rows;
      Block block;
      block.outer = r / rows;
      block.first = r * row + start;
      block.k = along ? 0 : start;
      block.n = static_cast<int>(std::min<std::int64_t>(kBlock, row - start));
      block.o[s.ndim - 1] = static_cast<int>(along ? start : rest % last.out);
      if (!along) rest /= last.out;
      for (int a = s.ndim - 2; a >= 0; --a) {
        block.o[a] = static_cast<int>(rest % s.axis[a].out);
        rest /= s.axis[a].out;
      }
      f(block);
    }
  });
}

/// Calls f(from, step, {begin, end}, position) for the elements of a block's windows, in the
/// windows' order: results begin to end have from[0], from[step], ... at this position.
template <class T, class F>
void each_run(const PoolingShape& s, const std::vector<Range>& reach, const T* x,
              const Block& block, const F& f) {
  const WindowAxis& last = last_of(s);
  int o = block.o[s.ndim - 1];
  x += block.outer * elements_of(s) * s.inner + block.k;
  each_row(s, block.o, [&](long long row, int position) {
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
// tell it that nothing overlaps; inlined they no longer do.
template <class T, class V>
[[gnu::noinline]] void take_greatest(const T* __restrict from, int step, int n, int position,
                                     V* __restrict greatest, int* __restrict positions) {
  each_of_run(from, step, n, [&](int j, T element) {
    V value = convert<V>(element);
    bool better = !(value <= greatest[j]) & (greatest[j] == greatest[j]);
    greatest[j] = better ? value : greatest[j];
    positions[j] = better ? position : positions[j];
  });
}
template <class T, class V>
[[gnu::noinline]] void add_run(const T* __restrict from, int step, int n, V* __restrict sum) {
  each_of_run(from, step, n, [&](int j, T element) { sum[j] += convert<V>(element); });
}

const AllPoolingKernels& pooling_kernels() {
  static const AllPoolingKernels all = RENSA_IN_SET(best_instruction_set(), get_pooling_kernels)();
  return all;
}

/// Calls f(runs, count) for the runs of a block of inner elements, many at a time.
template <class T, class F>
void each_runs(const PoolingShape& s, const T* x, const Block& block, const F& f) {
  constexpr int kRuns = 32;
  PoolingRun<T> runs[kRuns];
  int count = 0;
  each_run(s, {}, x, block, [&](const T* from, int, Range, int position) {
    runs[count++] = {from, position};
    if (count == kRuns) f(runs, std::exchange(count, 0));
  });
  if (count > 0) f(runs, count);
}

template <class V>
[[gnu::noinline]] void add_terms(const V* __restrict terms, int n, int step, V* __restrict sums) {
  if (step == 1) {
    for (int j = 0; j < n; ++j) sums[j] += terms[j];
  } else {
    for (int j = 0; j < n; ++j) sums[std::int64_t{j} * step] += terms[j];
  }
}

/// Whether positions are of a byte, or of four.
bool in_bytes(const Operand& positions) {
  return !positions.present() || positions.view.dtype != int32;
}

template <class T> void pool_greatest(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::vector<Range> reach = reach_of(op.name(), s);
  const PoolingKernels<T>& kernels = pooling_kernels().of<T>();
  each_block(s, [&](const Block& block) {
    V greatest[kBlock];
    int positions[kBlock];
    std::fill_n(greatest, block.n, m::lowest<V>());
    std::fill_n(positions, block.n, 0);
    if (reach.empty()) {
      each_runs(s, op.x.view.as<T>(), block, [&](const PoolingRun<T>* runs, int count) {
        kernels.take_greatest(runs, count, block.n, greatest, positions);
      });
    } else {
      each_run(s, reach, op.x.view.as<T>(), block,
               [&](const T* from, int step, Range to, int position) {
                 take_greatest(from, step, to.end - to.begin, position, greatest + to.begin,
                               positions + to.begin);
               });
    }
    kernels.store(greatest, block.n, op.y.view.as<T>() + block.first);
    if (in_bytes(op.positions)) {
      auto* to = reinterpret_cast<std::uint8_t*>(op.positions.view.data) + block.first;
      kernels.store_bytes(positions, block.n, to);
    } else {
      auto* to = reinterpret_cast<std::int32_t*>(op.positions.view.data) + block.first;
      std::copy_n(positions, block.n, to);
    }
  });
}

/// Calls f(of, count, first, o) for windows o of single elements with few windows along the last
/// axis, of kOuters outer indexes at once, as what one of them takes it takes one after the other:
/// `count` of them count, of[k] is where index k's elements are and `first + k * windows` its
/// result's number.
inline constexpr int kOuters = 16;
template <class T, class F> void each_of_outers(const PoolingShape& s, const T* x, const F& f) {
  std::int64_t elements = elements_of(s), windows = windows_of(s);
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
                     int o[kMostWindowAxes];
                     for (std::int64_t a = s.ndim - 1, rest = w; a >= 0; --a) {
                       o[a] = static_cast<int>(rest % s.axis[a].out);
                       rest /= s.axis[a].out;
                     }
                     f(of, count, outer * windows + w, o);
                   }
                 }
               });
}

template <class T> void pool_greatest_of_outers(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t windows = windows_of(s);
  T* y = op.y.view.as<T>();
  const bool bytes = in_bytes(op.positions);
  each_of_outers(
      s, op.x.view.as<T>(), [&](const T* const* of, int count, std::int64_t first, const int* o) {
        V greatest[kOuters];
        int positions[kOuters] = {};
        std::fill_n(greatest, kOuters, m::lowest<V>());
        each_element(s, o, [&](long long i, int position) {
          for (int k = 0; k < kOuters; ++k) {
            V value = convert<V>(of[k][i]);
            bool better = !(value <= greatest[k]) & (greatest[k] == greatest[k]);
            greatest[k] = better ? value : greatest[k];
            positions[k] = better ? position : positions[k];
          }
        });
        void* found = op.positions.view.data;
        for (int k = 0; k < count; ++k) {
          std::int64_t at = first + k * windows;
          y[at] = convert<T>(greatest[k]);
          if (bytes)
            static_cast<std::uint8_t*>(found)[at] = static_cast<std::uint8_t>(positions[k]);
          else static_cast<std::int32_t*>(found)[at] = positions[k];
        }
      });
}

/// Divides the sum of window o as the weight says.
template <class V> V weighted(const PoolingShape& s, const int* o, V sum) {
  switch (s.weight) {
    case PoolingWeight::window: return sum / V(places_of(s));
    case PoolingWeight::covered: return sum / V(covered_by(s, o, s.ndim));
    default: return sum;
  }
}

template <class T> void pool_sums_of_outers(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::int64_t windows = windows_of(s);
  T* y = op.y.view.as<T>();
  each_of_outers(s, op.x.view.as<T>(),
                 [&](const T* const* of, int count, std::int64_t first, const int* o) {
                   V sum[kOuters] = {};
                   each_element(s, o, [&](long long i, int) {
                     for (int k = 0; k < kOuters; ++k) sum[k] += convert<V>(of[k][i]);
                   });
                   for (int k = 0; k < count; ++k) {
                     y[first + k * windows] = convert<T>(weighted(s, o, sum[k]));
                   }
                 });
}

template <class T> void pool_sums(const Pooling& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  std::vector<Range> reach = reach_of(op.name(), s);
  bool along = of_windows(s);
  each_block(s, [&](const Block& block) {
    V sum[kBlock];
    std::fill_n(sum, block.n, V(0));
    each_run(s, reach, op.x.view.as<T>(), block, [&](const T* from, int step, Range to, int) {
      add_run(from, step, to.end - to.begin, sum + to.begin);
    });
    if (s.weight == PoolingWeight::window) {
      V count = V(places_of(s));
      for (int j = 0; j < block.n; ++j) sum[j] = sum[j] / count;
    } else if (s.weight == PoolingWeight::covered) {
      const WindowAxis& last = last_of(s);
      int o = block.o[s.ndim - 1], rows = covered_by(s, block.o, s.ndim - 1);
      for (int j = 0; j < block.n; ++j) {
        int of = along ? o + j : o;
        sum[j] = sum[j] / V(rows * (last.end(of) - last.begin(of)));
      }
    }
    pooling_kernels().of<T>().store(sum, block.n, op.y.view.as<T>() + block.first);
  });
}

template <class T, class P> void pool_at(const Pooling& op) {
  const PoolingShape& s = op.shape;
  Places places(op.name(), s);
  bool along = of_windows(s);
  each_block(s, [&](const Block& block) {
    int o[kMostWindowAxes];
    std::copy_n(block.o, s.ndim, o);
    const T* x = op.x.view.as<T>() + block.outer * elements_of(s) * s.inner + block.k;
    const P* positions = reinterpret_cast<const P*>(op.positions.view.data) + block.first;
    T* y = op.y.view.as<T>() + block.first;
    Range whole = places.whole_of_row(o);
    int& w = o[s.ndim - 1];
    w = 0;
    std::int64_t first = places.first(o);
    for (int j = 0; j < block.n; ++j) {
      w = block.o[s.ndim - 1] + (along ? j : 0);
      auto p = static_cast<unsigned>(positions[j]);
      std::int64_t element =
          w >= whole.begin && w < whole.end && p < static_cast<unsigned>(places.count())
              ? first + std::int64_t{w} * last_of(s).stride + places.offsets()[p]
              : places.element(o, positions[j]);
      y[j] = element < 0 ? convert<T>(0.0f) : x[element * s.inner + (along ? 0 : j)];
    }
  });
}

/// What stands for the positions' type where there are none.
using NoPositions = void;

/// What spread() does with one outer index and `n` inner elements from k on (Width, unless that is
/// 0): gx's element i has them at to[i * step], zero at first. Windows are taken in their order, so
/// that each element's terms are added in it.
template <class T, class P, int Width> class SpreadLane {
 public:
  using V = ComputeOf<T>;
  SpreadLane(const PoolingSpread& op, const Places& places) : shape_(op.shape), places_(places) {
    gy_ = op.gy.view.as<T>();
    if (op.positions.present()) positions_ = reinterpret_cast<const P*>(op.positions.view.data);
    for (int a = 0; a < shape_.ndim && places.offsets(); ++a) whole_[a] = places.whole(a);
    if (Width != 1 || op.shape.mode == PoolingMode::at || !of_windows(op.shape)) return;
    reach_ = reach_of(op.name(), op.shape);
    terms_ = host_vector<V>(op.name(), last_of(op.shape).out);
  }
  void run(std::int64_t outer, std::int64_t k, std::int64_t n, V* to, std::int64_t step) {
    n_ = n, to_ = to, step_ = step;
    const WindowAxis& last = last_of(shape_);
    std::int64_t windows = windows_of(shape_);
    for (std::int64_t row = 0; row < windows; row += last.out) {
      int o[kMostWindowAxes];
      std::int64_t rest = row / last.out, from = (outer * windows + row) * shape_.inner + k;
      bool whole = true;
      for (int a = shape_.ndim - 2; a >= 0; --a) {
        o[a] = static_cast<int>(rest % shape_.axis[a].out);
        rest /= shape_.axis[a].out;
        whole = whole && o[a] >= whole_[a].begin && o[a] < whole_[a].end;
      }
      if constexpr (std::is_same_v<P, NoPositions>) {
        if (reach_.empty()) add_sums(o, from);
        else add_row_of_sums(o, from);
      } else {
        Range inside = whole ? whole_[shape_.ndim - 1] : Range();
        add_at(o, {0, inside.begin}, from);
        add_inside(o, inside, from);
        add_at(o, {inside.end, last.out}, from);
      }
    }
  }

 private:
  std::int64_t n() const { return Width ? Width : n_; }
  std::int64_t step() const { return Width == 1 ? 1 : step_; }

  // Of windows o, o + 1, ... along the last axis, `from` being where the first of their row is.
  void add_inside(int* o, Range windows, std::int64_t from) const {
    if (windows.begin >= windows.end) return;
    const std::int64_t* offsets = places_.offsets();
    auto count = static_cast<unsigned>(places_.count());
    o[shape_.ndim - 1] = windows.begin;
    V* first = to_ + places_.first(o) * step_;
    const std::int64_t inner = shape_.inner, step = step_, stride = last_of(shape_).stride * step;
    const P* positions = positions_ + (from + windows.begin * inner);
    const T* gy = gy_ + (from + windows.begin * inner);
    for (int w = windows.begin; w < windows.end; ++w) {
      for (std::int64_t j = 0; j < n(); ++j) {
        auto p = static_cast<unsigned>(positions[j]);
        if (p < count) first[offsets[p] * step + j] += convert<V>(gy[j]);
      }
      first += stride, positions += inner, gy += inner;
    }
  }
  void add_at(int* o, Range windows, std::int64_t from) const {
    for (int w = windows.begin; w < windows.end; ++w) {
      o[shape_.ndim - 1] = w;
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
  void add_sums(int* o, std::int64_t from) const {
    const WindowAxis& last = last_of(shape_);
    int rows = covered_by(shape_, o, shape_.ndim - 1);
    each_row(shape_, o, [&](long long row, int) {
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
  void add_row_of_sums(int* o, std::int64_t from) {
    const WindowAxis& last = last_of(shape_);
    int rows = covered_by(shape_, o, shape_.ndim - 1);
    for (int w = 0; w < last.out; ++w) {
      V by = divisor(rows * (last.end(w) - last.begin(w)));
      terms_[static_cast<std::size_t>(w)] = convert<V>(gy_[from + w]) / by;
    }
    each_row(shape_, o, [&](long long row, int) {
      for (int place = last.size - 1; place >= 0; --place) {
        Range windows = reach_[static_cast<std::size_t>(place)];
        if (windows.begin >= windows.end) continue;
        V* sums = to_ + (row * last.in + last.first(windows.begin) + place);
        add_terms(terms_.data() + windows.begin, windows.end - windows.begin, last.stride, sums);
      }
    });
  }

  const PoolingShape& shape_;
  const Places& places_;
  const T* gy_;
  const P* positions_ = nullptr;
  Range whole_[kMostWindowAxes] = {};  // windows of which all places are elements
  std::vector<Range> reach_;
  std::vector<V> terms_;  // of a row of windows
  std::int64_t n_ = 0, step_ = 0;
  V* to_ = nullptr;
};

template <class T, class P, int Width> void spread(const PoolingSpread& op) {
  using V = ComputeOf<T>;
  const PoolingShape& s = op.shape;
  Places places(op.name(), s);
  std::int64_t elements = elements_of(s), lanes = ceil_div(s.inner, kLane);
  std::int64_t each = std::max(elements, windows_of(s)) * std::min(s.inner, kLane);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, each));
  parallel_for(s.outer * lanes, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<V> sums;  // of elements that are narrower
    if constexpr (!std::is_same_v<T, V>) {
      sums = host_vector<V>(op.name(), elements * std::min(s.inner, kLane));
    }
    SpreadLane<T, P, Width> lane(op, places);
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

template <class T, class P> void spread(const PoolingSpread& op) {
  if (op.shape.inner == 1) spread<T, P, 1>(op);
  else spread<T, P, 0>(op);
}

/// f(the positions' type).
template <class F> void visit_positions(const Operand& positions, const F& f) {
  if (in_bytes(positions)) f(std::uint8_t());
  else f(std::int32_t());
}

/// f(T{}).
template <class F> void visit(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float16: return f(half_t());
    case Dtype::bfloat16: return f(bfloat16_t());
    case Dtype::float32: return f(float());
    default: f(double());
  }
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Pooling::run_cpu() {
  host::visit(x.view.dtype, [&](auto element) {
    using T = decltype(element);
    bool by_outers = shape.inner == 1 && !host::of_windows(shape);
    switch (shape.mode) {
      case PoolingMode::sum:
        return by_outers ? host::pool_sums_of_outers<T>(*this) : host::pool_sums<T>(*this);
      case PoolingMode::max:
        return by_outers ? host::pool_greatest_of_outers<T>(*this) : host::pool_greatest<T>(*this);
      case PoolingMode::at: break;
    }
    host::visit_positions(positions,
                          [&](auto position) { host::pool_at<T, decltype(position)>(*this); });
  });
}

void PoolingSpread::run_cpu() {
  host::visit(gy.view.dtype, [&](auto element) {
    using T = decltype(element);
    if (shape.mode != PoolingMode::at) return host::spread<T, host::NoPositions>(*this);
    host::visit_positions(positions,
                          [&](auto position) { host::spread<T, decltype(position)>(*this); });
  });
}

}  // namespace rensa::operations
