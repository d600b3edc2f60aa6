// The windows of pooling on the CPU. How many axes there are is asked as the program runs, by the
// loops around the innermost ones: compiled for each number, cpu.cc would take longer than any
// other file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rensa/core/host_memory.h"
#include "rensa/functions/operations/pooling/pooling.h"

namespace rensa::host {

using operations::kMostWindowAxes;
using operations::PoolingShape;

inline constexpr std::int64_t kMostPlaces = 4 << 10;  // of a window, to have a table of them

inline std::int64_t elements_of(const PoolingShape& s) {
  std::int64_t n = 1;
  for (int a = 0; a < s.ndim; ++a) n *= s.axis[a].in;
  return n;
}
inline std::int64_t windows_of(const PoolingShape& s) {
  std::int64_t n = 1;
  for (int a = 0; a < s.ndim; ++a) n *= s.axis[a].out;
  return n;
}
/// The places of any window.
inline int places_of(const PoolingShape& s) {
  int places = 1;
  for (int a = 0; a < s.ndim; ++a) places *= s.axis[a].size;
  return places;
}
/// The elements that window o has along the first `axes` axes.
inline int covered_by(const PoolingShape& s, const int* o, int axes) {
  int covered = 1;
  for (int a = 0; a < axes; ++a) covered *= s.axis[a].end(o[a]) - s.axis[a].begin(o[a]);
  return covered;
}
inline const WindowAxis& last_of(const PoolingShape& s) { return s.axis[s.ndim - 1]; }

/// Calls f(row, position) for the rows along the last axis that window o has elements in, in their
/// order: the row's place among all, and in the window.
template <class F> RENSA_FN void each_row(const PoolingShape& s, const int* o, const F& f) {
  const int inner = s.ndim - 2;  // the last of the axes that rows are counted by
  int begin[kMostWindowAxes], end[kMostWindowAxes], i[kMostWindowAxes];
  for (int a = 0; a <= inner; ++a) {
    begin[a] = i[a] = s.axis[a].begin(o[a]), end[a] = s.axis[a].end(o[a]);
    if (begin[a] >= end[a]) return;
  }
  int first = s.axis[inner].first(o[inner]);
  for (int a = inner; a >= 0;) {
    long long row = 0;
    int position = 0;
    for (a = 0; a < inner; ++a) {
      row = row * s.axis[a].in + i[a];
      position = position * s.axis[a].size + (i[a] - s.axis[a].first(o[a]));
    }
    row *= s.axis[inner].in, position *= s.axis[inner].size;
    for (int j = begin[inner]; j < end[inner]; ++j) f(row + j, position + (j - first));
    for (a = inner - 1; a >= 0 && ++i[a] == end[a]; --a) i[a] = begin[a];
  }
}
/// Calls f(element, position) for the elements of window o, in their order.
template <class F> RENSA_FN void each_element(const PoolingShape& s, const int* o, const F& f) {
  const WindowAxis& last = last_of(s);
  int at = o[s.ndim - 1], first = last.first(at), begin = last.begin(at), end = last.end(at);
  each_row(s, o, [&](long long row, int position) {
    for (int i = begin; i < end; ++i) f(row * last.in + i, position * last.size + (i - first));
  });
}

/// Whether blocks are of windows: where there are no inner elements, and windows have a stride and
/// are several.
inline bool of_windows(const PoolingShape& s) {
  return s.inner == 1 && last_of(s).stride > 0 && last_of(s).out >= 4;
}

/// From where to where along the last axis.
struct Range {
  int begin = 0, end = 0;
};

/// Of each place along the last axis of windows with a stride: the windows that have an element
/// there.
inline std::vector<Range> reach_of(const char* name, const PoolingShape& s) {
  if (!of_windows(s)) return {};
  const WindowAxis& a = last_of(s);
  auto reach = host_list<Range>(name, a.size);
  for (int place = 0; place < a.size; ++place) {
    int short_of = a.pad - place, last = a.in - 1 + a.pad - place;
    reach.push_back({short_of > 0 ? (short_of + a.stride - 1) / a.stride : 0,
                     last < 0 ? 0 : std::min(a.out, last / a.stride + 1)});
  }
  return reach;
}

/// Where positions of windows are among the elements.
class Places {
 public:
  Places(const char* name, const PoolingShape& s) : axes_(s.axis), ndim_(s.ndim) {
    std::int64_t step = 1;
    for (int a = ndim_ - 1; a >= 0; --a) {
      steps_[a] = step;
      step *= axes_[a].in;
    }
    count_ = places_of(s);
    if (count_ > kMostPlaces || s.mode != PoolingMode::at) return;
    offsets_ = host_list<std::int64_t>(name, count_);
    for (int p = 0; p < count_; ++p) {
      std::int64_t offset = 0;
      for (int a = ndim_ - 1, rest = p; a >= 0; --a) {
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
  std::int64_t first(const int* o) const {
    std::int64_t element = 0;
    for (int a = 0; a < ndim_; ++a) element += axes_[a].first(o[a]) * steps_[a];
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
  std::int64_t element(const int* o, int p) const {
    if (p < 0 || p >= count_) return -1;
    return ndim_ == 2 ? element(o, p, 2) : element(o, p, ndim_);
  }
  /// Of the row of windows that o is in, those along the last axis of which all places are
  /// elements; none where there are no offsets.
  Range whole_of_row(const int* o) const {
    if (!offsets()) return {};
    for (int a = 0; a < ndim_ - 1; ++a) {
      Range inside = whole(a);
      if (o[a] < inside.begin || o[a] >= inside.end) return {};
    }
    return whole(ndim_ - 1);
  }

 private:
  RENSA_FN std::int64_t element(const int* o, int p, int ndim) const {
    std::int64_t element = 0;
    for (int a = ndim - 1; a >= 0; --a) {
      int i = axes_[a].first(o[a]) + p % axes_[a].size;
      if (i < axes_[a].begin(o[a]) || i >= axes_[a].end(o[a])) return -1;
      element += i * steps_[a];
      p /= axes_[a].size;
    }
    return element;
  }
  const WindowAxis* axes_;
  int ndim_, count_;
  std::int64_t steps_[kMostWindowAxes];
  std::vector<std::int64_t> offsets_;
};

}  // namespace rensa::host
