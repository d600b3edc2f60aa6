// Views with strides of the caller's choice, windows, and the question whether arrays overlap.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::new_view;

// --- memory ---
namespace {

// One unknown of the equation below: 0 <= x < count, worth `step` bytes each.
struct Term {
  std::int64_t step, count;
};

// Whether sum(step_i * x_i) can be `target`. The terms are sorted by falling step; `reach[i]` is
// the greatest sum that terms i and later give, `divisor[i]` what divides each such sum.
bool solvable(std::span<const Term> terms, std::span<const std::int64_t> reach,
              std::span<const std::int64_t> divisor, std::int64_t target) {
  if (target == 0) return true;
  if (terms.empty() || target < 0 || target > reach[0] || target % divisor[0] != 0) return false;
  const Term& term = terms[0];
  std::int64_t most = std::min(term.count - 1, target / term.step);
  std::int64_t rest = target - reach[1];  // what the later terms cannot give
  std::int64_t least = rest <= 0 ? 0 : (rest + term.step - 1) / term.step;
  for (std::int64_t x = most; x >= least; --x) {
    if (solvable(terms.subspan(1), reach.subspan(1), divisor.subspan(1), target - x * term.step)) {
      return true;
    }
  }
  return false;
}

// Adds the axes of `a` to the terms; returns the offset of its lowest byte.
std::int64_t add_terms(const ArrayView& a, std::vector<Term>* terms) {
  std::int64_t lowest = 0;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.shape[i] > 1 && a.strides[i] != 0) terms->push_back({std::abs(a.strides[i]), a.shape[i]});
    lowest += std::min<std::int64_t>(0, a.strides[i]) * (a.shape[i] - 1);
  }
  terms->push_back({1, itemsize(a.dtype)});
  return lowest;
}

}  // namespace

std::pair<const char*, const char*> byte_bounds(const Array& a) {
  check_defined("byte_bounds", a);
  std::int64_t begin = 0, end = 0;
  if (a.size() != 0) a.view().byte_range(&begin, &end);
  return {a.view().data + begin, a.view().data + end};
}

bool may_share_memory(const Array& a, const Array& b) {
  check_defined("may_share_memory", a);
  check_defined("may_share_memory", b);
  if (a.device() != b.device() || a.size() == 0 || b.size() == 0) return false;
  auto [a_begin, a_end] = byte_bounds(a);
  auto [b_begin, b_end] = byte_bounds(b);
  return a_begin < b_end && b_begin < a_end;
}

bool shares_memory(const Array& a, const Array& b) {
  if (!may_share_memory(a, b)) return false;
  // Byte x of a and byte y of b at one address: (a's lowest + x) = (b's lowest + y). With y counted
  // down from b's highest byte every step is positive.
  std::vector<Term> terms;
  const char* a_low = a.view().data + add_terms(a.view(), &terms);
  add_terms(b.view(), &terms);
  std::int64_t target = byte_bounds(b).second - 1 - a_low;
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return x.step > y.step; });
  std::vector<std::int64_t> reach(terms.size() + 1, 0), divisor(terms.size() + 1, 0);
  for (std::size_t i = terms.size(); i-- > 0;) {
    reach[i] = reach[i + 1] + terms[i].step * (terms[i].count - 1);
    divisor[i] = std::gcd(divisor[i + 1], terms[i].step);
  }
  return solvable(terms, reach, divisor, target);
}

// --- views ---
namespace lib::stride_tricks {

Array as_strided(const Array& a, const Shape& shape, const Shape& strides) {
  check_defined("as_strided", a);
  if (shape.ndim() != strides.ndim()) {
    throw ShapeError(fmt::format("as_strided: shape {} and strides {} differ in length",
                                 shape.str(), strides.str()));
  }
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("as_strided: shape {} has a negative extent", shape.str()));
    }
  }
  Array view = new_view(a, 0, shape, strides);
  if (view.size() == 0) return view;
  std::int64_t begin = 0, end = 0, before = a.view().data - a.storage()->data();
  view.view().byte_range(&begin, &end, "as_strided");
  if (begin < -before || end > a.storage()->nbytes() - before) {
    throw ShapeError(fmt::format(
        "as_strided: shape {} with strides {} leaves the memory of {}, which has {} bytes, {} of "
        "them in front of the first element",
        shape.str(), strides.str(), a.view().describe(), a.storage()->nbytes(), before));
  }
  return view;
}

Array sliding_window_view(const Array& a, const Shape& window) {
  check_defined("sliding_window_view", a);
  if (window.size() != a.ndim()) {
    throw ShapeError(
        fmt::format("sliding_window_view: the window {} does not have the {} axes of "
                    "{}; say which axes it is for",
                    window.str(), a.ndim(), a.view().describe()));
  }
  Shape axes;
  for (int i = 0; i < a.ndim(); ++i) axes.push_back(i);
  return sliding_window_view(a, window, axes);
}

Array sliding_window_view(const Array& a, const Shape& window, const Shape& axes) {
  check_defined("sliding_window_view", a);
  if (window.size() != axes.size()) {
    throw ShapeError(fmt::format("sliding_window_view: the window {} is not one of axes {}",
                                 window.str(), axes.str()));
  }
  Shape shape = a.shape(), strides = a.strides();
  for (int i = 0; i < axes.size(); ++i) {
    int axis = normalize_axis("sliding_window_view", axes[i], a.ndim());
    if (window[i] < 0 || window[i] > shape[axis]) {
      throw ShapeError(fmt::format("sliding_window_view: the window {} does not fit into {}",
                                   window.str(), a.view().describe()));
    }
    shape[axis] = checked_add("sliding_window_view", shape[axis] - window[i], 1);
    shape.push_back(window[i]);
    strides.push_back(a.strides()[axis]);
  }
  return new_view(a, 0, shape, strides);
}

Array sliding_window_view(const Array& a, std::int64_t window, int axis) {
  return sliding_window_view(a, Shape{window}, Shape{axis});
}

}  // namespace lib::stride_tricks

}  // namespace rensa::xp
