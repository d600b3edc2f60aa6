// Random numbers: Philox generators, whose only state is a seed and a count of counters, and
// NumPy's distributions, as methods of a Generator and as functions of namespace xp::random, which
// draw from the generator of the device that they name. random_basics.h says what follows from a
// seed.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/random_basics.h"

namespace rensa::xp::random {

/// The keywords of integers.
struct IntegersOptions {
  rensa::detail::NamedOptions named = {};
  Size size = {};       // what is drawn; one number when left out
  Dtype dtype = int64;  // an integer one
  bool endpoint = false;
  Placement device = {};
};

/// The keywords of choice.
struct ChoiceOptions {
  rensa::detail::NamedOptions named = {};
  Size size = {};  // what is drawn; one number when left out
  bool replace = true;
  ArrayOption p = {};
  int axis = 0;           // along which `a` is chosen from
  Placement device = {};  // of numbers below n
};

/// The bit generator: Philox4x32-10. (NumPy's and CuPy's other ones make their numbers one after
/// the other, so that what an element gets would depend on the grid; they are left out.)
struct Philox4x3210 {
  std::uint64_t seed = 0;  // a generator of this seed starts at its first number
};

namespace detail {
struct GeneratorSource;
}

/// A handle: copies draw from one stream of numbers. Safe to use from several threads, which then
/// take their counters in any order. Results are on device(); no method waits unless it says so.
class Generator {
 public:
  explicit Generator(Philox4x3210 bits, Placement device = {});
  /// A handle to state that somebody else has as well.
  Generator(std::shared_ptr<detail::GeneratorSource> source, Device device);

  Device device() const { return device_; }
  GeneratorState get_state() const;                   // where it is in its numbers
  void set_state(const GeneratorState& state) const;  // goes on from there
  /// Takes `count` Philox counters.
  GeneratorPosition take(std::int64_t count) const;

  // --- uniforms and integers ---
  /// Floats in [0, 1): 24 bits, float64 53 bits.
  [[nodiscard]] Array random(const Size& size = {}, Dtype dtype = float32) const;
  /// Floats in [low, high).
  [[nodiscard]] Array uniform(const Parameter& low = 0, const Parameter& high = 1,
                              const Size& size = {}, Dtype dtype = float32) const;
  /// Integers in [low, high). Throws ValueError for an empty range and for bounds outside of the
  /// dtype.
  [[nodiscard]] Array randint(std::int64_t low, std::int64_t high, const Size& size = {},
                              Dtype dtype = int64) const;
  /// The same with bounds that broadcast (integer arrays); where one is an array an element whose
  /// range is empty gives its low.
  [[nodiscard]] Array randint(const Array& low, const Array& high, const Size& size = {},
                              Dtype dtype = int64) const;
  /// As randint from 0, with `endpoint` up to and with `high`: NumPy's Generator.integers.
  [[nodiscard]] Array integers(std::int64_t low, std::int64_t high, const Size& size = {},
                               Dtype dtype = int64, bool endpoint = false) const;
  /// `length` random bytes. Waits for the device.
  std::vector<std::uint8_t> bytes(std::int64_t length) const;

  // --- location and scale ---
  /// Of mean 0 and standard deviation 1.
  [[nodiscard]] Array standard_normal(const Size& size = {}, Dtype dtype = float32) const;
  /// Of the normal distribution with mean `loc` and standard deviation `scale`.
  [[nodiscard]] Array normal(const Parameter& loc = 0, const Parameter& scale = 1,
                             const Size& size = {}, Dtype dtype = float32) const;
  /// Exp of normal numbers with mean `mean` and standard deviation `sigma`.
  [[nodiscard]] Array lognormal(const Parameter& mean = 0, const Parameter& sigma = 1,
                                const Size& size = {}, Dtype dtype = float32) const;
  /// Of density exp(-x), x >= 0.
  [[nodiscard]] Array standard_exponential(const Size& size = {}, Dtype dtype = float32) const;
  /// Standard_exponential times `scale`, which is the mean.
  [[nodiscard]] Array exponential(const Parameter& scale = 1, const Size& size = {},
                                  Dtype dtype = float32) const;
  /// Of the distribution function exp(-exp(-z)), z = (x - loc) / scale.
  [[nodiscard]] Array gumbel(const Parameter& loc = 0, const Parameter& scale = 1,
                             const Size& size = {}, Dtype dtype = float32) const;
  /// Of density exp(-|x - loc| / scale) / (2 * scale).
  [[nodiscard]] Array laplace(const Parameter& loc = 0, const Parameter& scale = 1,
                              const Size& size = {}, Dtype dtype = float32) const;
  /// Of the distribution function 1 / (1 + exp(-z)), z = (x - loc) / scale.
  [[nodiscard]] Array logistic(const Parameter& loc = 0, const Parameter& scale = 1,
                               const Size& size = {}, Dtype dtype = float32) const;
  /// Of density 1 / (pi * (1 + x^2)).
  [[nodiscard]] Array standard_cauchy(const Size& size = {}, Dtype dtype = float32) const;

  // --- shape parameters ---
  /// Of density x^(shape - 1) * exp(-x) / Gamma(shape), x >= 0.
  [[nodiscard]] Array standard_gamma(const Parameter& shape, const Size& size = {},
                                     Dtype dtype = float32) const;
  /// Standard_gamma times `scale`.
  [[nodiscard]] Array gamma(const Parameter& shape, const Parameter& scale = 1,
                            const Size& size = {}, Dtype dtype = float32) const;
  /// Of a density in proportion to x^(a - 1) * (1 - x)^(b - 1) on [0, 1].
  [[nodiscard]] Array beta(const Parameter& a, const Parameter& b, const Size& size = {},
                           Dtype dtype = float32) const;
  /// The sum of the squares of `df` standard normal numbers.
  [[nodiscard]] Array chisquare(const Parameter& df, const Size& size = {},
                                Dtype dtype = float32) const;
  /// The same of normal numbers whose means have squares of the sum `nonc`.
  [[nodiscard]] Array noncentral_chisquare(const Parameter& df, const Parameter& nonc,
                                           const Size& size = {}, Dtype dtype = float32) const;
  /// The quotient of chisquare(dfnum) / dfnum by chisquare(dfden) / dfden.
  [[nodiscard]] Array f(const Parameter& dfnum, const Parameter& dfden, const Size& size = {},
                        Dtype dtype = float32) const;
  /// The same with noncentral_chisquare(dfnum, nonc) above.
  [[nodiscard]] Array noncentral_f(const Parameter& dfnum, const Parameter& dfden,
                                   const Parameter& nonc, const Size& size = {},
                                   Dtype dtype = float32) const;
  /// Student's: standard_normal by sqrt(chisquare(df) / df).
  [[nodiscard]] Array standard_t(const Parameter& df, const Size& size = {},
                                 Dtype dtype = float32) const;
  /// Pareto's second kind (Lomax'), as NumPy's: of density a * (1 + x)^(-a - 1), x >= 0.
  [[nodiscard]] Array pareto(const Parameter& a, const Size& size = {},
                             Dtype dtype = float32) const;
  /// Of density a * x^(a - 1) on [0, 1].
  [[nodiscard]] Array power(const Parameter& a, const Size& size = {}, Dtype dtype = float32) const;
  /// The length of a vector of two normal numbers with standard deviation `scale`.
  [[nodiscard]] Array rayleigh(const Parameter& scale = 1, const Size& size = {},
                               Dtype dtype = float32) const;
  /// Of density a * x^(a - 1) * exp(-x^a), x >= 0.
  [[nodiscard]] Array weibull(const Parameter& a, const Size& size = {},
                              Dtype dtype = float32) const;
  /// Of a density that rises from `left` to `mode` and falls to `right`, in lines.
  [[nodiscard]] Array triangular(const Parameter& left, const Parameter& mode,
                                 const Parameter& right, const Size& size = {},
                                 Dtype dtype = float32) const;
  /// The inverse Gaussian distribution.
  [[nodiscard]] Array wald(const Parameter& mean, const Parameter& scale, const Size& size = {},
                           Dtype dtype = float32) const;
  /// An angle in [-pi, pi] about `mu`, the nearer the greater `kappa` is.
  [[nodiscard]] Array vonmises(const Parameter& mu, const Parameter& kappa, const Size& size = {},
                               Dtype dtype = float32) const;

  // --- counts: any integer dtype, or a floating one ---
  /// How many events there are where `lam` are the mean.
  [[nodiscard]] Array poisson(const Parameter& lam = 1, const Size& size = {},
                              Dtype dtype = int64) const;
  /// How many of `n` trials succeed, each with the probability `p`.
  [[nodiscard]] Array binomial(const Parameter& n, const Parameter& p, const Size& size = {},
                               Dtype dtype = int64) const;
  /// How many trials fail before the n-th success.
  [[nodiscard]] Array negative_binomial(const Parameter& n, const Parameter& p,
                                        const Size& size = {}, Dtype dtype = int64) const;
  /// How many trials there are up to and with the first success.
  [[nodiscard]] Array geometric(const Parameter& p, const Size& size = {},
                                Dtype dtype = int64) const;
  /// How many good ones are among `nsample` drawn, without replacement, from `ngood` good ones and
  /// `nbad` bad ones.
  [[nodiscard]] Array hypergeometric(const Parameter& ngood, const Parameter& nbad,
                                     const Parameter& nsample, const Size& size = {},
                                     Dtype dtype = int64) const;
  /// K = 1, 2, ... with probabilities in proportion to k^-a; a > 1.
  [[nodiscard]] Array zipf(const Parameter& a, const Size& size = {}, Dtype dtype = int64) const;
  /// K = 1, 2, ... with probabilities in proportion to p^k / k.
  [[nodiscard]] Array logseries(const Parameter& p, const Size& size = {},
                                Dtype dtype = int64) const;

  // --- vectors: the last axis of the result is one variate ---
  /// `alpha` is one-dimensional and positive (checked on the CPU only).
  [[nodiscard]] Array dirichlet(const Array& alpha, const Size& size = {},
                                Dtype dtype = float32) const;
  /// Normal variates around `mean` (n,) with covariances `cov` (n, n), symmetric. Waits for the
  /// device. Throws ValueError where cov is not positive semi-definite, rounding aside.
  [[nodiscard]] Array multivariate_normal(const Array& mean, const Array& cov,
                                          const Size& size = {}, Dtype dtype = float32) const;
  /// How often each of pvals.size() outcomes comes in n trials; the last outcome takes what the
  /// others leave. Waits for the device where pvals lies on one.
  [[nodiscard]] Array multinomial(std::int64_t n, const Array& pvals, const Size& size = {},
                                  Dtype dtype = int64) const;

  // --- orders and choices ---
  /// A random order of 0..n-1 (int64), equal on CPU and GPU for one seed. Up to 65536 each order is
  /// as likely as the others; above, a keyed one-to-one map (a Feistel network) makes it.
  [[nodiscard]] Array permutation(std::int64_t n) const;
  /// The rows of `a`, or what lies along `axis`, in a random order: a copy.
  [[nodiscard]] Array permutation(const Array& a, int axis = 0) const;
  /// The same in place.
  void shuffle(const Array& a, int axis = 0) const;
  /// Numbers of 0..n-1, or rows of `a`, with the probabilities `p` (one-dimensional, of sum 1; all
  /// equal when undefined), each at most once without `replace`. Waits for the device where p lies
  /// on one. Throws ValueError.
  [[nodiscard]] Array choice(std::int64_t n, const Size& size = {}, bool replace = true,
                             const Array& p = {}) const;
  [[nodiscard]] Array choice(const Array& a, const Size& size = {}, bool replace = true,
                             const Array& p = {}) const;
  [[nodiscard]] Array choice(std::int64_t n, const ChoiceOptions& options) const;
  [[nodiscard]] Array choice(const Array& a, const ChoiceOptions& options) const;

  // --- the same by options ---
  [[nodiscard]] Array randint(std::int64_t high) const { return randint(0, high); }
  Array randint(std::int64_t high, const DrawOptions& options) const {
    return randint(0, high, options);
  }
  Array randint(std::int64_t low, std::int64_t high, const DrawOptions& options) const;
  [[nodiscard]] Array integers(std::int64_t high) const { return integers(0, high); }
  [[nodiscard]] Array integers(std::int64_t high, const IntegersOptions& options) const {
    return integers(0, high, options);
  }
  [[nodiscard]] Array integers(std::int64_t low, std::int64_t high,
                               const IntegersOptions& options) const {
    check_own_device("integers", options.device);
    return integers(low, high, options.size, options.dtype, options.endpoint);
  }
#define RENSA_DRAW_0(name, usual)                                       \
  Array name(const DrawOptions& o) const {                              \
    check_own_device(#name, o.device);                                  \
    return o.finish(#name, name(o.drawn_size(), o.drawn_dtype(usual))); \
  }
#define RENSA_DRAW_1(name, usual)                                          \
  Array name(const Parameter& a, const DrawOptions& o) const {             \
    check_own_device(#name, o.device);                                     \
    return o.finish(#name, name(a, o.drawn_size(), o.drawn_dtype(usual))); \
  }
#define RENSA_DRAW_2(name, usual)                                                  \
  Array name(const Parameter& a, const Parameter& b, const DrawOptions& o) const { \
    check_own_device(#name, o.device);                                             \
    return o.finish(#name, name(a, b, o.drawn_size(), o.drawn_dtype(usual)));      \
  }
#define RENSA_DRAW_3(name, usual)                                                              \
  Array name(const Parameter& a, const Parameter& b, const Parameter& c, const DrawOptions& o) \
      const {                                                                                  \
    check_own_device(#name, o.device);                                                         \
    return o.finish(#name, name(a, b, c, o.drawn_size(), o.drawn_dtype(usual)));               \
  }
#define RENSA_DRAW_USUAL_1(name, usual, a) \
  RENSA_DRAW_1(name, usual)                \
  Array name(const DrawOptions& o) const { return name(a, o); }
#define RENSA_DRAW_USUAL_2(name, usual, a, b) \
  RENSA_DRAW_2(name, usual)                   \
  Array name(const DrawOptions& o) const { return name(a, b, o); }
  RENSA_DRAW_0(random, float32)
  RENSA_DRAW_USUAL_2(uniform, float32, 0, 1)
  RENSA_DRAW_USUAL_2(normal, float32, 0, 1)
#include "rensa/array/draws.def"
#undef RENSA_DRAW_0
#undef RENSA_DRAW_1
#undef RENSA_DRAW_2
#undef RENSA_DRAW_3
#undef RENSA_DRAW_USUAL_1
#undef RENSA_DRAW_USUAL_2

 private:
  /// Throws DeviceError where options name another device than the generator's.
  void check_own_device(const char* operation, Placement device) const;
  std::shared_ptr<detail::GeneratorSource> source_;
  Device device_;
};

/// A generator of its own: from `seed`, the same numbers on every device; from entropy without.
Generator default_rng(const Seed& seed, Placement device = {});
Generator default_rng(Placement device = {});

/// The generator of a device that the functions below draw from. The CPU and GPU 0 draw the same
/// numbers; further GPUs draw others, so that the replicas of a data-parallel run do not drop the
/// same units.
Generator generator(Placement device = {});

// The methods of generator(device) of the same names; see there.
[[nodiscard]] Array integers(std::int64_t low, std::int64_t high, const Size& size = {},
                             Dtype dtype = int64, bool endpoint = false, Placement device = {});
std::vector<std::uint8_t> bytes(std::int64_t length, Placement device = {});
[[nodiscard]] Array standard_normal(const Size& size = {}, Dtype dtype = float32,
                                    Placement device = {});
[[nodiscard]] Array lognormal(const Parameter& mean = 0, const Parameter& sigma = 1,
                              const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array standard_exponential(const Size& size = {}, Dtype dtype = float32,
                                         Placement device = {});
[[nodiscard]] Array exponential(const Parameter& scale = 1, const Size& size = {},
                                Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array gumbel(const Parameter& loc = 0, const Parameter& scale = 1,
                           const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array laplace(const Parameter& loc = 0, const Parameter& scale = 1,
                            const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array logistic(const Parameter& loc = 0, const Parameter& scale = 1,
                             const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array standard_cauchy(const Size& size = {}, Dtype dtype = float32,
                                    Placement device = {});
[[nodiscard]] Array standard_gamma(const Parameter& shape, const Size& size = {},
                                   Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array gamma(const Parameter& shape, const Parameter& scale = 1, const Size& size = {},
                          Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array beta(const Parameter& a, const Parameter& b, const Size& size = {},
                         Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array chisquare(const Parameter& df, const Size& size = {}, Dtype dtype = float32,
                              Placement device = {});
[[nodiscard]] Array noncentral_chisquare(const Parameter& df, const Parameter& nonc,
                                         const Size& size = {}, Dtype dtype = float32,
                                         Placement device = {});
[[nodiscard]] Array f(const Parameter& dfnum, const Parameter& dfden, const Size& size = {},
                      Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array noncentral_f(const Parameter& dfnum, const Parameter& dfden,
                                 const Parameter& nonc, const Size& size = {},
                                 Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array standard_t(const Parameter& df, const Size& size = {}, Dtype dtype = float32,
                               Placement device = {});
[[nodiscard]] Array pareto(const Parameter& a, const Size& size = {}, Dtype dtype = float32,
                           Placement device = {});
[[nodiscard]] Array power(const Parameter& a, const Size& size = {}, Dtype dtype = float32,
                          Placement device = {});
[[nodiscard]] Array rayleigh(const Parameter& scale = 1, const Size& size = {},
                             Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array weibull(const Parameter& a, const Size& size = {}, Dtype dtype = float32,
                            Placement device = {});
[[nodiscard]] Array triangular(const Parameter& left, const Parameter& mode, const Parameter& right,
                               const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array wald(const Parameter& mean, const Parameter& scale, const Size& size = {},
                         Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array vonmises(const Parameter& mu, const Parameter& kappa, const Size& size = {},
                             Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array poisson(const Parameter& lam = 1, const Size& size = {}, Dtype dtype = int64,
                            Placement device = {});
[[nodiscard]] Array binomial(const Parameter& n, const Parameter& p, const Size& size = {},
                             Dtype dtype = int64, Placement device = {});
[[nodiscard]] Array negative_binomial(const Parameter& n, const Parameter& p, const Size& size = {},
                                      Dtype dtype = int64, Placement device = {});
[[nodiscard]] Array geometric(const Parameter& p, const Size& size = {}, Dtype dtype = int64,
                              Placement device = {});
[[nodiscard]] Array hypergeometric(const Parameter& ngood, const Parameter& nbad,
                                   const Parameter& nsample, const Size& size = {},
                                   Dtype dtype = int64, Placement device = {});
[[nodiscard]] Array zipf(const Parameter& a, const Size& size = {}, Dtype dtype = int64,
                         Placement device = {});
[[nodiscard]] Array logseries(const Parameter& p, const Size& size = {}, Dtype dtype = int64,
                              Placement device = {});
[[nodiscard]] Array dirichlet(const Array& alpha, const Size& size = {}, Dtype dtype = float32);
[[nodiscard]] Array multivariate_normal(const Array& mean, const Array& cov, const Size& size = {},
                                        Dtype dtype = float32);
[[nodiscard]] Array multinomial(std::int64_t n, const Array& pvals, const Size& size = {},
                                Dtype dtype = int64, Placement device = {});
[[nodiscard]] Array choice(std::int64_t n, const Size& size = {}, bool replace = true,
                           const Array& p = {}, Placement device = {});
[[nodiscard]] Array choice(const Array& a, const Size& size = {}, bool replace = true,
                           const Array& p = {});
[[nodiscard]] Array choice(std::int64_t n, const ChoiceOptions& options);
[[nodiscard]] Array choice(const Array& a, const ChoiceOptions& options);
[[nodiscard]] inline Array integers(std::int64_t high) { return integers(0, high); }
[[nodiscard]] inline Array integers(std::int64_t low, std::int64_t high,
                                    const IntegersOptions& options) {
  return integers(low, high, options.size, options.dtype, options.endpoint, options.device);
}
[[nodiscard]] inline Array integers(std::int64_t high, const IntegersOptions& options) {
  return integers(0, high, options);
}
#define RENSA_DRAW_0(name, usual)                                                         \
  inline Array name(const DrawOptions& o) {                                               \
    return o.finish(#name, name(o.drawn_size(), o.drawn_dtype(usual), o.drawn_device())); \
  }
#define RENSA_DRAW_1(name, usual)                                                            \
  inline Array name(const Parameter& a, const DrawOptions& o) {                              \
    return o.finish(#name, name(a, o.drawn_size(), o.drawn_dtype(usual), o.drawn_device())); \
  }
#define RENSA_DRAW_2(name, usual)                                                               \
  inline Array name(const Parameter& a, const Parameter& b, const DrawOptions& o) {             \
    return o.finish(#name, name(a, b, o.drawn_size(), o.drawn_dtype(usual), o.drawn_device())); \
  }
#define RENSA_DRAW_3(name, usual)                                                                  \
  inline Array name(const Parameter& a, const Parameter& b, const Parameter& c,                    \
                    const DrawOptions& o) {                                                        \
    return o.finish(#name, name(a, b, c, o.drawn_size(), o.drawn_dtype(usual), o.drawn_device())); \
  }
#define RENSA_DRAW_USUAL_1(name, usual, a) \
  RENSA_DRAW_1(name, usual)                \
  inline Array name(const DrawOptions& o) { return name(a, o); }
#define RENSA_DRAW_USUAL_2(name, usual, a, b) \
  RENSA_DRAW_2(name, usual)                   \
  inline Array name(const DrawOptions& o) { return name(a, b, o); }
#include "rensa/array/draws.def"
#undef RENSA_DRAW_0
#undef RENSA_DRAW_1
#undef RENSA_DRAW_2
#undef RENSA_DRAW_3
#undef RENSA_DRAW_USUAL_1
#undef RENSA_DRAW_USUAL_2
/// [0, 1): NumPy's other names of `random`.
[[nodiscard]] Array random_sample(const Size& size = {}, Dtype dtype = float32,
                                  Placement device = {});
[[nodiscard]] Array ranf(const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array sample(const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array rand(const Size& size, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array randn(const Size& size, Dtype dtype = float32, Placement device = {});
/// rand(2, 3) and randn(2, 3), as in NumPy.
template <std::integral... N> [[nodiscard]] Array rand(N... extents) {
  return rand(Shape{static_cast<std::int64_t>(extents)...});
}
template <std::integral... N> [[nodiscard]] Array randn(N... extents) {
  return randn(Shape{static_cast<std::int64_t>(extents)...});
}
/// Integers in [low, high].
[[nodiscard]] Array random_integers(std::int64_t low, std::int64_t high, const Size& size = {},
                                    Placement device = {});

}  // namespace rensa::xp::random
