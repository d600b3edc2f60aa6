// Samplers that take as many random words as they need: rejection and inversion methods. Element i
// of a call draws from Philox counter offset + i, whose upper half counts the blocks of words, so
// what it gets follows from (seed, offset, i) alone. All is computed in double without contraction:
// the devices differ by their logarithms' last bits. Out of their domain parameters give NaN.
// Includes only what the host compiler (after <cmath>) and nvcc can read.
#pragma once

#include "rensa/core/distributions.h"
#include "rensa/core/functors.h"
#include "rensa/core/philox.h"

namespace rensa {

/// The words of one element, two at a time.
class VariateStream {
 public:
  RENSA_FN VariateStream(unsigned long long seed, unsigned long long counter)
      : seed_(seed), counter_(counter) {}
  /// Uniform in [0, 1).
  RENSA_FN double uniform() {
    step();
    return second_ ? uniform_double(words_.word[2], words_.word[3])
                   : uniform_double(words_.word[0], words_.word[1]);
  }
  /// Uniform in (0, 1).
  RENSA_FN double open() {
    step();
    return second_ ? open_double(words_.word[2], words_.word[3])
                   : open_double(words_.word[0], words_.word[1]);
  }

 private:
  RENSA_FN void step() {
    second_ = !second_;
    if (!second_) words_ = philox(seed_, counter_, block_++);
  }
  unsigned long long seed_, counter_, block_ = 0;
  PhiloxWords words_ = {};
  bool second_ = true;
};

namespace draw {

#if defined(__CUDACC__)
#define RENSA_DRAW __host__ __device__ inline
#else
#define RENSA_DRAW inline
#endif

/// Counts are stored as int64: what is drawn stays below its end, and so do numbers of trials.
constexpr double kMostCounted = 9.2e18;

RENSA_DRAW double nan() { return m::infinity<double>() - m::infinity<double>(); }

RENSA_DRAW double exponential(VariateStream& s) { return -m::log(s.open()); }

RENSA_DRAW double normal(VariateStream& s) {
  double length = m::sqrt(-2 * m::log(s.open()));
  return length * m::cos(6.283185307179586476925286766559 * s.uniform());
}

/// What Stirling's formula leaves out: log(k!) - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2).
RENSA_DRAW double stirling_rest(double k) {
  double shift = 0;
  for (; k < 10; k += 1) {  // NOLINT(clang-analyzer-security.FloatLoopCounter): whole numbers
    // rest(k) = rest(k + 1) + the step of Stirling's formula - log(k + 1)
    shift += (k + 1.5) * m::log1p(1 / (k + 1)) - 1;
  }
  double x = 1 / (k + 1), square = x * x;
  double rest = 1.0 / 1680 - square / 1188;
  rest = 1.0 / 360 - square * (1.0 / 1260 - square * rest);
  return shift + x * (1.0 / 12 - square * rest);
}

/// log(k!)
RENSA_DRAW double log_factorial(double k) {
  double next = k + 1;
  return (k + 0.5) * m::log(next) - next + 0.91893853320467274178 + stirling_rest(k);
}

/// d and v of Marsaglia and Tsang's method for shape a >= 1: d * v is the variate.
struct GammaParts {
  double d, v;
};
RENSA_DRAW GammaParts gamma_parts(VariateStream& s, double a) {
  double d = a - 1.0 / 3, c = 1 / m::sqrt(9 * d);
  for (;;) {
    double x = normal(s), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (m::log(s.open()) < 0.5 * x * x + d * (1 - v + m::log(v))) return {d, v};
  }
}

RENSA_DRAW double standard_gamma(VariateStream& s, double a) {
  if (!(a > 0) || a == m::infinity<double>()) return a == 0 || a > 0 ? a : nan();
  if (a >= 1) {
    GammaParts parts = gamma_parts(s, a);
    return parts.d * parts.v;
  }
  GammaParts parts = gamma_parts(s, a + 1);
  return parts.d * parts.v * m::exp(-exponential(s) / a);
}

/// Its logarithm, which stays finite where the variate itself underflows.
RENSA_DRAW double log_gamma(VariateStream& s, double a) {
  if (!(a > 0) || a == m::infinity<double>()) {
    return a == 0 ? -m::infinity<double>() : a > 0 ? a : nan();
  }
  GammaParts parts = gamma_parts(s, a < 1 ? a + 1 : a);
  double result = m::log(parts.d) + m::log(parts.v);
  return a < 1 ? result - exponential(s) / a : result;
}

RENSA_DRAW double beta(VariateStream& s, double a, double b) {
  if (!(a > 0 && b > 0)) return nan();
  double x = log_gamma(s, a), y = log_gamma(s, b);
  return 1 / (1 + m::exp(y - x));
}

RENSA_DRAW double f(VariateStream& s, double a, double b) {
  double x = standard_gamma(s, a / 2), y = standard_gamma(s, b / 2);
  return x * b / (y * a);
}

RENSA_DRAW double standard_t(VariateStream& s, double df) {
  double x = normal(s);
  return x * m::sqrt(df / 2 / standard_gamma(s, df / 2));
}

RENSA_DRAW double triangular(VariateStream& s, double left, double mode, double right) {
  if (!(left <= mode && mode <= right && left < right)) return nan();
  double base = right - left, share = (mode - left) / base, u = s.uniform();
  return u <= share ? left + m::sqrt(u * base * (mode - left))
                    : right - m::sqrt((1 - u) * base * (right - mode));
}

/// Michael, Schucany and Haas 1976.
RENSA_DRAW double wald(VariateStream& s, double mean, double scale) {
  if (!(mean > 0 && scale > 0)) return nan();
  double x = normal(s), y = mean * x * x, half = mean / (2 * scale);
  double d = mean + half * (y - m::sqrt(4 * scale * y + y * y));
  return s.uniform() <= mean / (mean + d) ? d : mean * mean / d;
}

/// Best and Fisher 1979; nearly uniform and nearly normal where their formula loses its digits.
RENSA_DRAW double vonmises(VariateStream& s, double mu, double kappa) {
  constexpr double kPi = 3.14159265358979323846;
  if (!(kappa >= 0)) return nan();
  if (kappa < 1e-8) return kPi * (2 * s.uniform() - 1);
  double angle;
  if (kappa > 1e6) {
    angle = m::sqrt(1 / kappa) * normal(s);
  } else {
    double tau = 1 + m::sqrt(1 + 4 * kappa * kappa);
    double rho = (tau - m::sqrt(2 * tau)) / (2 * kappa);
    double r = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho), w;
    for (;;) {
      double z = m::cos(kPi * s.uniform());
      w = (1 + r * z) / (r + z);
      double y = kappa * (r - w), v = s.open();
      if (y * (2 - y) - v >= 0 || m::log(y / v) + 1 - y >= 0) break;
    }
    angle = m::acos(w > 1 ? 1.0 : w < -1 ? -1.0 : w);
    if (s.uniform() < 0.5) angle = -angle;
  }
  angle += mu;
  double turned = m::fmod(m::abs(angle) + kPi, 2 * kPi) - kPi;
  return angle < 0 ? -turned : turned;
}

/// Knuth's products below 10, from there Hoermann's PTRS (1993).
RENSA_DRAW double poisson(VariateStream& s, double lam) {
  if (!(lam >= 0 && lam <= kMostCounted)) return nan();
  if (lam == 0) return 0;
  if (lam < 10) {
    double bound = m::exp(-lam), product = s.uniform(), k = 0;
    for (; product > bound; k += 1) product *= s.uniform();
    return k;
  }
  double b = 0.931 + 2.53 * m::sqrt(lam), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.open(), us = 0.5 - m::abs(u);
    double k = m::floor((2 * a / us + b) * u + lam + 0.43);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    // log of lam^k exp(-lam) / k!, Stirling's formula being in the logarithm
    double next = k + 1;
    double density = k * m::log1p((lam - next) / next) - 0.5 * m::log(next) + (next - lam) -
                     0.91893853320467274178 - stirling_rest(k);
    if (m::log(v * inverse_alpha / (a / (us * us) + b)) <= density) return k;
  }
}

/// Inversion for n * p < 10, from there Hoermann's BTRS (1993); p at most 1/2.
RENSA_DRAW double binomial_below_half(VariateStream& s, double n, double p) {
  double q = 1 - p, mean = n * p;
  if (mean < 10) {
    double first = m::exp(n * m::log1p(-p));
    double bound = mean + 10 * m::sqrt(mean * q + 1);
    bound = bound < n ? bound : n;
    double x = 0, px = first, u = s.uniform();
    while (u > px) {
      x += 1;
      if (x > bound) {
        x = 0, px = first, u = s.uniform();
      } else {
        u -= px;
        px = (n - x + 1) * p * px / (x * q);
      }
    }
    return x;
  }
  double deviation = m::sqrt(mean * q), b = 1.15 + 2.53 * deviation;
  double a = -0.0873 + 0.0248 * b + 0.01 * p, bound = 0.92 - 4.2 / b;
  double ratio = p / q, alpha = (2.83 + 5.1 / b) * deviation, mode = m::floor((n + 1) * p);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.open(), us = 0.5 - m::abs(u);
    double k = m::floor((2 * a / us + b) * u + mean + 0.5);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || k > n) continue;
    double density = (mode + 0.5) * m::log((mode + 1) / (ratio * (n - mode + 1))) +
                     (n + 1) * m::log((n - mode + 1) / (n - k + 1)) +
                     (k + 0.5) * m::log(ratio * (n - k + 1) / (k + 1)) + stirling_rest(mode) +
                     stirling_rest(n - mode) - stirling_rest(k) - stirling_rest(n - k);
    if (m::log(v * alpha / (a / (us * us) + b)) <= density) return k;
  }
}

RENSA_DRAW double binomial(VariateStream& s, double n, double p) {
  if (!(n >= 0 && n <= kMostCounted && p >= 0 && p <= 1)) return nan();
  if (n == 0 || p == 0) return 0;
  return p <= 0.5 ? binomial_below_half(s, n, p) : n - binomial_below_half(s, n, 1 - p);
}

/// The distribution function of one n and p, for the same variates as binomial_below_half's
/// inversion: many draws look them up.
struct BinomialTable {
  static constexpr int kMost = 64;
  double upto[kMost];
  int counts = 0;        // entries
  bool flipped = false;  // n less the count looked up is the variate
  double n = 0;

  /// False where the variates do not come of inversion. For the host.
  bool fill(double size, double p) {
    n = size;
    flipped = p > 0.5;
    if (flipped) p = 1 - p;
    double q = 1 - p, mean = n * p;
    if (!(n > 0 && p > 0 && mean < 10)) return false;
    double bound = mean + 10 * m::sqrt(mean * q + 1), px = m::exp(n * m::log1p(-p)), sum = px;
    if (bound > n) bound = n;
    upto[0] = sum;
    for (counts = 1; counts <= bound && counts < kMost; ++counts) {
      px = (n - counts + 1) * p * px / (counts * q);
      sum += px;
      upto[counts] = sum;
    }
    return true;
  }
  /// With `entries` a copy of upto, or itself.
  RENSA_FN double draw(VariateStream& s, const double* entries) const {
    for (;;) {
      double u = s.uniform();
      int x = 0;
      for (int half = kMost / 2; half > 0; half /= 2) {
        if (x + half <= counts && entries[x + half - 1] < u) x += half;
      }
      if (x < counts) return flipped ? n - x : x;
    }
  }
};

RENSA_DRAW double noncentral_chisquare(VariateStream& s, double df, double nonc) {
  return 2 * standard_gamma(s, df / 2 + poisson(s, nonc / 2));
}

RENSA_DRAW double noncentral_f(VariateStream& s, double dfnum, double dfden, double nonc) {
  double x = noncentral_chisquare(s, dfnum, nonc);
  return x * dfden / (2 * standard_gamma(s, dfden / 2) * dfnum);
}

RENSA_DRAW double geometric(VariateStream& s, double p) {
  if (!(p > 0 && p <= 1)) return nan();
  double k = m::ceil(m::log(s.open()) / m::log1p(-p));
  return k < 1 ? 1 : k < 9223372036854774784.0 ? k : 9223372036854774784.0;
}

/// log((x + d)!) - log(x!) less d * log(x + 1), which the four of them below have in common.
RENSA_DRAW double factorials_apart(double x, double d) {
  return (x + d + 0.5) * m::log1p(d / (x + 1)) - d + stirling_rest(x + d) - stirling_rest(x);
}

/// Stadlober's HRUA* (1990): the members of a group of `fewer` among `drawn` of fewer + more, by
/// the ratio of uniforms. fewer <= more, drawn at most half of all, and neither small.
RENSA_DRAW double hypergeometric_ratio(VariateStream& s, double fewer, double more, double drawn) {
  double total = fewer + more, share = fewer / total, mean = drawn * share;
  double variance = (total - drawn) / (total - 1) * mean * (more / total);
  double deviation = m::sqrt(variance + 0.5);
  double width =
      1.7155277699214135 * deviation + 0.8989161620588988;  // 2 sqrt(2/e), 3 - 2 sqrt(3/e)
  double mode = m::floor((drawn + 1) * ((fewer + 1) / (total + 2)));
  double most = (drawn < fewer ? drawn : fewer) + 1, far = m::floor(mean + 0.5 + 16 * deviation);
  if (far < most) most = far;
  double of_fewer = fewer - mode, of_drawn = drawn - mode, rest = more - drawn + mode;
  double slope = m::log((mode + 1) / (of_fewer + 1) * ((rest + 1) / (of_drawn + 1)));
  for (;;) {
    double u = s.open(), v = s.uniform();
    double x = mean + 0.5 + width * (v - 0.5) / u;
    if (!(x >= 0 && x < most)) continue;
    double k = m::floor(x), d = k - mode;
    // log of P(k) / P(mode)
    double t = -(factorials_apart(mode, d) + factorials_apart(of_fewer, -d) +
                 factorials_apart(of_drawn, -d) + factorials_apart(rest, d)) -
               d * slope;
    if (u * (4 - u) - 3 <= t) return k;
    if (u * (u - t) >= 1) continue;
    if (2 * m::log(u) <= t) return k;
  }
}

/// The good ones among `sample` drawn from good + bad. Few are drawn one after the other.
RENSA_DRAW double hypergeometric(VariateStream& s, double good, double bad, double sample) {
  double total = good + bad;
  bool inside = good >= 0 && bad >= 0 && sample >= 0 && sample <= total;
  if (!(inside && total <= kMostCounted)) return nan();
  bool rest = sample > total / 2;
  double drawn = rest ? total - sample : sample, hits = 0;
  if (drawn >= 10) {
    hits = good <= bad ? hypergeometric_ratio(s, good, bad, drawn)
                       : drawn - hypergeometric_ratio(s, bad, good, drawn);
    return rest ? good - hits : hits;
  }
  double left = good, of = total;
  // NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter): whole numbers
  for (double i = 0; i < drawn; i += 1, of -= 1) {
    if (s.uniform() * of < left) hits += 1, left -= 1;
    if (left <= 0) break;
  }
  return rest ? good - hits : hits;
}

/// Devroye 1986, chapter X.6.
RENSA_DRAW double zipf(VariateStream& s, double a) {
  if (!(a > 1)) return nan();
  if (a >= 1025) return 1;
  double am1 = a - 1, b = m::pow(2.0, am1), umin = m::pow(9223372036854774784.0, -am1);
  for (;;) {
    double u = 1 - s.uniform();
    double v = s.uniform(), x = m::floor(m::pow(u * umin + (1 - u), -1 / am1));
    if (!(x >= 1 && x <= 9223372036854774784.0)) continue;
    double t = m::pow(1 + 1 / x, am1);
    if (v * x * (t - 1) / (b - 1) <= t / b) return x;
  }
}

/// Kemp 1981.
RENSA_DRAW double logseries(VariateStream& s, double p) {
  if (!(p >= 0 && p < 1)) return nan();
  double r = m::log1p(-p);
  for (;;) {
    double v = s.open();
    if (v >= p) return 1;
    double u = s.open(), q = -m::expm1(r * u);
    if (v > q * q && v < q) return 2;
    if (v >= q) return 1;
    double result = m::floor(1 + m::log(v) / m::log(q));
    if (result >= 1) return result;
  }
}

/// The first index whose entry of the cumulated `table` lies above a uniform in [0, 1).
RENSA_DRAW double categorical(VariateStream& s, const double* table, long long size) {
  double u = s.uniform();
  long long low = 0, high = size - 1;
  while (low < high) {
    long long middle = low + (high - low) / 2;
    if (u < table[middle]) high = middle;
    else low = middle + 1;
  }
  return static_cast<double>(low);
}

}  // namespace draw

/// The row D with the parameters of one element.
template <Distribution D>
RENSA_DRAW double draw_variate(VariateStream& s, double a, double b, double c, const double* table,
                               long long table_size) {
  (void)a, (void)b, (void)c, (void)table, (void)table_size;
#define RENSA_DISTRIBUTION(name, expression) \
  if constexpr (D == Distribution::name) return expression;
#include "rensa/core/distributions.def"
#undef RENSA_DISTRIBUTION
}

#undef RENSA_DRAW

}  // namespace rensa
