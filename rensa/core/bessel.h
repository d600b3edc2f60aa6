// The modified Bessel function of the first kind and order 0, I0, by Clenshaw's sums of Chebyshev
// polynomials (the coefficients are those of the Cephes library). Read like functors.h, which
// includes it.
#pragma once

#include "rensa/core/real_functors.h"

namespace rensa::m {

template <class V, int n> RENSA_FN V chebyshev_sum(V x, const double (&coefficients)[n]) {
  V last = 0, before = 0, result = V(coefficients[0]);
  for (int i = 1; i < n; ++i) {
    before = last, last = result;
    result = x * last - before + V(coefficients[i]);
  }
  return (result - before) / V(2);
}

/// e^-|a| I0(a), which stays finite.
template <class V> RENSA_FN V scaled_bessel_i0(V a) {
  constexpr double kSmall[] = {
      // of e^-x I0(x), x up to 8
      -4.4153416464793395e-18, 3.3307945188222384e-17,  -2.431279846547955e-16,
      1.715391285555133e-15,   -1.1685332877993451e-14, 7.676185498604936e-14,
      -4.856446783111929e-13,  2.95505266312964e-12,    -1.726826291441556e-11,
      9.675809035373237e-11,   -5.189795601635263e-10,  2.6598237246823866e-09,
      -1.300025009986248e-08,  6.046995022541919e-08,   -2.670793853940612e-07,
      1.1173875391201037e-06,  -4.4167383584587505e-06, 1.6448448070728896e-05,
      -5.754195010082104e-05,  0.00018850288509584165,  -0.0005763755745385824,
      0.0016394756169413357,   -0.004324309995050576,   0.010546460394594998,
      -0.02373741480589947,    0.04930528423967071,     -0.09490109704804764,
      0.17162090152220877,     -0.3046826723431984,     0.6767952744094761};
  constexpr double kLarge[] = {
      // of e^-x sqrt(x) I0(x) beyond
      -7.233180487874754e-18,  -4.830504485944182e-18,  4.46562142029676e-17,
      3.461222867697461e-17,   -2.8276239805165836e-16, -3.425485619677219e-16,
      1.7725601330565263e-15,  3.8116806693526224e-15,  -9.554846698828307e-15,
      -4.150569347287222e-14,  1.54008621752141e-14,    3.8527783827421426e-13,
      7.180124451383666e-13,   -1.7941785315068062e-12, -1.3215811840447713e-11,
      -3.1499165279632416e-11, 1.1889147107846439e-11,  4.94060238822497e-10,
      3.3962320257083865e-09,  2.266668990498178e-08,   2.0489185894690638e-07,
      2.8913705208347567e-06,  6.889758346916825e-05,   0.0033691164782556943,
      0.8044904110141088};
  V x = abs(a);
  if (x <= V(8)) return chebyshev_sum(x / V(2) - V(2), kSmall);
  return chebyshev_sum(V(32) / x - V(2), kLarge) / sqrt(x);
}

template <class V> RENSA_FN V bessel_i0(V a) { return exp(abs(a)) * scaled_bessel_i0(a); }

}  // namespace rensa::m
