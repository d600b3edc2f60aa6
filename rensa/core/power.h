// a to the power b over float, of additions, multiplications, fused multiply-adds and selections
// alone, so that vector code and GPUs come to the same bits: e^(b ln a), the logarithm as a sum of
// two floats. Over 10^9 pairs of all kinds, normal results were off by 0.89 of the last place's
// unit at the most, those between 2^-64 and 2^64 by 0.78: beside the bases sqrt(2/3) and sqrt(3/2),
// where the logarithm's series is longest; elsewhere by 0.69. Read like functors.h, which includes
// it.
//
// Everything is done on half of the logarithm, artanh((a - 1) / (a + 1)), and e^(2x) of its product
// with b: no step then multiplies by two. The constants of the polynomials are minimax fits (by
// Lawson's iteration), rounded to float one by one from the lowest on, those above fitted anew.
#pragma once

#include "rensa/core/half.h"

// Without instructions for it, a fused multiply-add is a slow function: such machines keep libm's.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDA_ARCH__)
#define RENSA_HAS_FMA 1
#endif

namespace rensa::m::power {

/// a * b, not fused with what it is taken from, in kernels compiled without -fmad=false too.
RENSA_FN float rounded_product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// Half of ln a: the sum of both, to 33 bits and more.
struct HalfLog {
  float head, tail;
};

/// Half of ln(1 + 2g), which is artanh(g / (1 + g)), plus `head` and `tail`: |g| < 0.113, and the
/// head is 0 or outweighs what is added to it, so that Dekker's sum is exact.
RENSA_FN HalfLog half_log_near_one(float g, float head, float tail) {
  // 1 / (1 + g) to 22 bits at the ends of g's range, where more of the error below remains.
  float reciprocal = ::fmaf(g, 0x1.e824acp-1f, -0x1.03dd4ap+0f);
  reciprocal = ::fmaf(g, reciprocal, 0x1.002aap+0f);
  reciprocal = ::fmaf(g, reciprocal, -0x1.fff89cp-1f);
  reciprocal = ::fmaf(g, reciprocal, 0x1.ffffc8p-1f);
  float s = rounded_product(g, reciprocal), square = s * s;
  // What s lacks of the quotient; artanh grows with it by 1 / (1 - s^2).
  float rest = ::fmaf(-s, g, g - s);
  tail = ::fmaf(rest, ::fmaf(reciprocal, square, reciprocal), tail);
  // artanh s = s + s^3 / 3 + s^5 / 5 + ...: three times all behind s is summed, so that what is
  // most of it, s^3, needs no rounded factor.
  constexpr float kThird = 0x1.555556p-2f;
  float fifths = square * ::fmaf(square, 0x1.28a1a4p-3f, 0x1.999484p-3f);
  tail = ::fmaf(s, square * fifths, tail);
  float thirds = ::fmaf(3.0f, tail, s * ::fmaf(s, s, -square));
  thirds = ::fmaf(s, square, thirds);
  float sum = head + ::fmaf(thirds, kThird, s);
  return {sum, ::fmaf(thirds, kThird, (head - sum) + s)};
}

/// Of a 2^(-lift / 2^23), a positive and normal.
RENSA_FN HalfLog half_log(float a, float lift) {
  // a = 2^k m, m from sqrt(2/3) to twice that; from sqrt(3/2) on it is taken times 3/4.
  constexpr unsigned kLowest = 0x3f5105ec;
  constexpr float kSplit = 0x1.3988e2p+0f;
  unsigned bits = detail::bit_cast<unsigned>(a);
  unsigned exponent = (bits - kLowest) & 0xff800000u;
  float m = detail::bit_cast<float>(bits - exponent);
  float k = float(int(exponent)) - lift;  // times 2^23
  bool upper = kSplit <= m;
  // ln(2) / 2 and -ln(3/4) / 2 in two parts, the first ones multiples of 2^-18: with them, sums of
  // k's at most 8 bits are exact.
  constexpr double kHalfLn2 = 0.34657359027997265471, kHalfLn43 = 0.14384103622589046372;
  constexpr float kLn2Head = float(int(kHalfLn2 * 0x1p18)) * 0x1p-18f;
  constexpr float kLn43Head = float(int(kHalfLn43 * 0x1p18)) * 0x1p-18f;
  constexpr float kLn2Tail = float(kHalfLn2 - kLn2Head), kLn43Tail = float(kHalfLn43 - kLn43Head);
  float head = ::fmaf(k, kLn2Head * 0x1p-23f, upper ? kLn43Head : 0.0f);
  float tail = ::fmaf(k, kLn2Tail * 0x1p-23f, upper ? kLn43Tail : 0.0f);
  return half_log_near_one(::fmaf(m, upper ? 0.375f : 0.5f, -0.5f), head, tail);
}

/// fraction * 2^n, of `argument` x: e^(2x).
struct Exponential {
  float fraction, shifted, argument;  // shifted: n + 1.5 * 2^23, so that its last bits are n
};

/// e^(2 b log); what lies far out of float's range is told by the argument alone.
RENSA_FN Exponential exponential(float b, HalfLog log) {
  constexpr float kShift = 0x1.8p23f, kTwoLog2E = 2.88539008177792681472f;
  // Cody and Waite's reduction. x is rounded to a multiple of 2^-24 at least, by way of 1.5, and so
  // is ln(2) / 2: then so is what n leaves of x, and 1 + 2 head is exact.
  constexpr double kHalfLn2 = 0.34657359027997265471;
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): a constant, rounded when this is compiled
  constexpr float kLn2Head = float(int(kHalfLn2 * 0x1p24 + 0.5)) * 0x1p-24f;
  constexpr float kLn2Tail = float(kHalfLn2 - kLn2Head);
  float x = ::fmaf(b, log.head, 1.5f) - 1.5f;
  float x_tail = ::fmaf(b, log.tail, ::fmaf(b, log.head, -x));
  float shifted = ::fmaf(x, kTwoLog2E, kShift), n = shifted - kShift;
  float head = ::fmaf(-n, kLn2Head, x), tail = ::fmaf(-n, kLn2Tail, x_tail);
  // e^(2h) = 1 + 2 (h + h^2 q(h)), |h| <= ln(2) / 4, to 28 bits
  float h = head + tail;
  float q = ::fmaf(h, 0x1.6a511ap-5f, 0x1.12397cp-3f);
  q = ::fmaf(h, q, 0x1.5558acp-2f);
  q = ::fmaf(h, q, 0x1.555492p-1f);
  q = ::fmaf(h, q, 0x1.fffffcp-1f);
  float beyond = ::fmaf(h * h, q, tail);
  return {::fmaf(2.0f, beyond, ::fmaf(2.0f, head, 1.0f)), shifted, x};
}

// Arguments up to which, either way, e^(2x) is normal and scaled() may add exponents; and up to
// which it is neither infinite nor zero.
inline constexpr float kNormalArgument = 43.25f;
inline constexpr float kFiniteArgument = 52.5f;

RENSA_FN float scaled_normal(Exponential e) {
  unsigned n = detail::bit_cast<unsigned>(e.shifted) << 23;
  return detail::bit_cast<float>(detail::bit_cast<unsigned>(e.fraction) + n);
}
/// By halves of n, so that subnormal results are rounded once.
RENSA_FN float scaled(Exponential e) {
  unsigned n = detail::bit_cast<unsigned>(e.shifted), half = n >> 1;
  unsigned fraction = detail::bit_cast<unsigned>(e.fraction);
  float part = detail::bit_cast<float>(fraction + ((n - half) << 23));
  float size = part * detail::bit_cast<float>((half << 23) + 0x3f800000u);
  float beyond = 0.0f < e.argument ? __builtin_huge_valf() : 0.0f;
  return kFiniteArgument < ::fabsf(e.argument) ? beyond : size;
}

/// C's rules for pow (C17, F.10.4.4), of `size`: |a|^b where that has none.
RENSA_FN float with_rules(float size, float a, float b) {
  const float infinity = __builtin_huge_valf();
  float magnitude = ::fabsf(a);
  bool zero = magnitude == 0.0f, infinite = magnitude == infinity;
  float edge = zero != (b < 0.0f) ? 0.0f : infinity;
  size = (zero | infinite) ? edge : size;
  size = magnitude == 1.0f ? 1.0f : size;
  bool whole = ::truncf(b) == b, odd = whole & (::truncf(b * 0.5f) != b * 0.5f);
  unsigned sign = odd ? detail::bit_cast<unsigned>(a) & 0x80000000u : 0u;
  float result = detail::bit_cast<float>(detail::bit_cast<unsigned>(size) | sign);
  result = ((a < 0.0f) & !infinite & !whole) ? __builtin_nanf("") : result;
  result = (!(a == a) | !(b == b)) ? a + b : result;
  return ((a == 1.0f) | (b == 0.0f)) ? 1.0f : result;
}

/// Whether a is positive and normal: bits below 2^31 of which only few are left out at both ends.
inline constexpr unsigned kSmallestNormal = 0x00800000u, kNormals = 0x7f000000u;
RENSA_FN unsigned above_smallest(float a) {
  return detail::bit_cast<unsigned>(a) - kSmallestNormal;
}

RENSA_FN float pow(float a, float b) {
  float magnitude = ::fabsf(a);
  bool subnormal = magnitude < 0x1p-126f;
  float normal = subnormal ? magnitude * 0x1p24f : magnitude;
  Exponential e = exponential(b, half_log(normal, subnormal ? 24 * 0x1p23f : 0.0f));
#if defined(__CUDA_ARCH__)  // elsewhere a branch would keep loops from becoming vector code
  if (above_smallest(a) < kNormals && ::fabsf(e.argument) < kNormalArgument) {
    return scaled_normal(e);
  }
#endif
  return with_rules(scaled(e), a, b);
}

}  // namespace rensa::m::power
