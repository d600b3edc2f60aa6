// Random numbers of one formula.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Fills `out` (C-contiguous) from Philox counter `offset`; see core/philox.h.
///   uniform: low + (high - low) * u, u in [0, 1); two words per element for float64
///   normal: loc + scale * z by Box-Muller, two elements from two words (four for float64)
///   exponential to cauchy: loc + scale * the inverse distribution function of a uniform in (0, 1)
///   integers: low + floor(word * span / 2^bits), the word made of one, two or four; of two a span
///   of 0 stands for 2^64
///   order: a permutation of [0, size) by core/random_integers.h's PseudoOrder, int64
struct Random final : KindOf<Random> {
  enum class Kind : unsigned char {
    uniform,
    normal,
    exponential,
    gumbel,
    laplace,
    logistic,
    cauchy,
    integers,
    order
  };
  Random(const char* name, Kind k) : KindOf(name), kind(k) {}
  Kind kind;
  double a = 0, b = 1;  // low, high or loc, scale
  long long low = 0;    // of integers
  unsigned long long span = 1;
  int words = 1;
  HostScalar seed, offset;  // integers
  Operand out;

  template <class V> void fields(V& v) {
    v.write(out), v.scalar(seed, offset);
    v.number(kind, a, b, low, span, words);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
