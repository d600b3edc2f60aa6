// One sample of connectionist temporal classification: what happens at a step and a place. Read by
// the host's compiler and by nvcc.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {

/// The logarithm of the sum of what a, b and c are the logarithms of. The greatest is not made a
/// power of, so that a sum close to it keeps its digits.
template <class V> RENSA_FN V log_sum(V a, V b, V c) {
  // The three change places and none is left out: NaN stays among them.
  bool less = a < b;
  V most = less ? b : a, least = less ? a : b;
  less = most < c;
  V middle = less ? most : c;
  most = less ? c : most;
  V base = most == -m::infinity<V>() ? V(0) : most;
  return most + m::log1p(m::exp(middle - base) + m::exp(least - base));
}

/// The places of a path are the sample's labels with a blank before, between and behind them.
template <class V> struct CtcSample {
  const V* y;           // the first step's logarithms of classes
  const long long* t;   // the labels
  V* alpha;             // (steps, places of the longest)
  long long next_step;  // elements of y from one step to the next
  long long stride;     // places of the longest: elements of alpha from one step to the next
  long long steps, labels;
  long long blank, classes;

  RENSA_FN long long places() const { return 2 * labels + 1; }
  RENSA_FN long long class_at(long long place) const {
    return place % 2 == 0 ? blank : t[place / 2];
  }
  RENSA_FN V y_at(long long step, long long place) const {
    return y[step * next_step + class_at(place)];
  }
  /// Whether a path may come to the place from two places before: not over a blank between equals.
  RENSA_FN bool skips_to(long long place) const {
    return place >= 2 && class_at(place) != class_at(place - 2);
  }
  /// Whether one may go from the place two places on.
  RENSA_FN bool skips_from(long long place) const {
    return place + 2 < places() && skips_to(place + 2);
  }
  /// alpha of a place at a step, of those of the step before.
  RENSA_FN V forward(long long step, long long place) const {
    if (step == 0) return place < 2 ? y_at(0, place) : -m::infinity<V>();
    const V* before = alpha + (step - 1) * stride;
    V one_less = place >= 1 ? before[place - 1] : -m::infinity<V>();
    V two_less = skips_to(place) ? before[place - 2] : -m::infinity<V>();
    return log_sum(before[place], one_less, two_less) + y_at(step, place);
  }
  /// The logarithm of all ends of paths that are at the place at the step, that step left out.
  /// `behind` has those of the step behind, each with y there added.
  RENSA_FN V backward(long long step, long long place, const V* behind) const {
    long long end = places();
    if (step == steps - 1) return place >= end - 2 ? V(0) : -m::infinity<V>();
    V one_more = place + 1 < end ? behind[place + 1] : -m::infinity<V>();
    V two_more = skips_from(place) ? behind[place + 2] : -m::infinity<V>();
    return log_sum(behind[place], one_more, two_more);
  }
  /// -log of the probability of the labels.
  RENSA_FN V loss() const {
    if (steps == 0) return labels == 0 ? V(0) : m::infinity<V>();
    const V* last = alpha + (steps - 1) * stride;
    long long end = places();
    return -(end == 1 ? last[0] : m::logaddexp(last[end - 1], last[end - 2]));
  }
};

}  // namespace rensa
