// Division by what is constant during a launch, and from an index to a position on axes. Read by
// the host compiler, nvcc and NVRTC: it includes only headers like itself.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

/// A divisor of numerators below 2^31 (Granlund and Montgomery). One that is larger divides them as
/// 2^31 does: the extent of an outermost axis, which nothing is divided by, may be any.
struct FastDiv {
  unsigned divisor = 1, magic = 0, shift = 0;
  FastDiv() = default;
  RENSA_FN explicit FastDiv(long long d)
      : divisor(d < (1ll << 31) ? static_cast<unsigned>(d) : 1u << 31) {
    while ((1ull << shift) < divisor) ++shift;
    magic = static_cast<unsigned>(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
  }
  RENSA_FN unsigned divide(unsigned n) const {
#if defined(__CUDA_ARCH__)
    return (__umulhi(n, magic) + n) >> shift;
#else
    return (static_cast<unsigned>(static_cast<unsigned long long>(n) * magic >> 32) + n) >> shift;
#endif
  }
};

/// A divisor of any numerators.
struct PlainDiv {
  long long divisor = 1;
  PlainDiv() = default;
  RENSA_FN explicit PlainDiv(long long d) : divisor(d) {}
  RENSA_FN long long divide(long long n) const { return n / divisor; }
};

/// The position on axes of those extents of an index in C order.
template <class I, class Div, int N>
RENSA_FN void split_index(I index, const Div (&extents)[N], I (&position)[N]) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int axis = N - 1; axis > 0; --axis) {
    I quotient = static_cast<I>(extents[axis].divide(index));
    position[axis] = index - quotient * static_cast<I>(extents[axis].divisor);
    index = quotient;
  }
  position[0] = index;
}

}  // namespace rensa
