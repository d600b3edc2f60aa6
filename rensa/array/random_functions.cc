// The functions of namespace xp::random: methods of the devices' generators.
#include "rensa/array/internal.h"
#include "rensa/array/random.h"

namespace rensa::xp::random {

namespace {

Device device_of(const char* operation, const Array& a) {
  rensa::detail::check_defined(operation, a);
  return a.device();
}

// Where nobody names a device, an array among the parameters does.
Device place(Placement device, std::initializer_list<const Parameter*> parameters) {
  if (device.given()) return device.device();
  for (const Parameter* parameter : parameters) {
    if (parameter->is_array()) return parameter->array().device();
  }
  return device.device();
}

}  // namespace

Array random(const Size& size, Dtype dtype, Placement device) {
  return generator(device).random(size, dtype);
}

Array uniform(const Parameter& low, const Parameter& high, const Size& size, Dtype dtype,
              Placement device) {
  return generator(place(device, {&low, &high})).uniform(low, high, size, dtype);
}

Array randint(std::int64_t low, std::int64_t high, const Size& size, Dtype dtype,
              Placement device) {
  return generator(device).randint(low, high, size, dtype);
}

Array randint(const Array& low, const Array& high, const Size& size, Dtype dtype) {
  return generator(device_of("randint", low)).randint(low, high, size, dtype);
}

Array integers(std::int64_t low, std::int64_t high, const Size& size, Dtype dtype, bool endpoint,
               Placement device) {
  return generator(device).integers(low, high, size, dtype, endpoint);
}

std::vector<std::uint8_t> bytes(std::int64_t length, Placement device) {
  return generator(device).bytes(length);
}

Array standard_normal(const Size& size, Dtype dtype, Placement device) {
  return generator(device).standard_normal(size, dtype);
}

Array normal(const Parameter& loc, const Parameter& scale, const Size& size, Dtype dtype,
             Placement device) {
  return generator(place(device, {&loc, &scale})).normal(loc, scale, size, dtype);
}

Array lognormal(const Parameter& mean, const Parameter& sigma, const Size& size, Dtype dtype,
                Placement device) {
  return generator(place(device, {&mean, &sigma})).lognormal(mean, sigma, size, dtype);
}

Array standard_exponential(const Size& size, Dtype dtype, Placement device) {
  return generator(device).standard_exponential(size, dtype);
}

Array exponential(const Parameter& scale, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&scale})).exponential(scale, size, dtype);
}

Array gumbel(const Parameter& loc, const Parameter& scale, const Size& size, Dtype dtype,
             Placement device) {
  return generator(place(device, {&loc, &scale})).gumbel(loc, scale, size, dtype);
}

Array laplace(const Parameter& loc, const Parameter& scale, const Size& size, Dtype dtype,
              Placement device) {
  return generator(place(device, {&loc, &scale})).laplace(loc, scale, size, dtype);
}

Array logistic(const Parameter& loc, const Parameter& scale, const Size& size, Dtype dtype,
               Placement device) {
  return generator(place(device, {&loc, &scale})).logistic(loc, scale, size, dtype);
}

Array standard_cauchy(const Size& size, Dtype dtype, Placement device) {
  return generator(device).standard_cauchy(size, dtype);
}

Array standard_gamma(const Parameter& shape, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&shape})).standard_gamma(shape, size, dtype);
}

Array gamma(const Parameter& shape, const Parameter& scale, const Size& size, Dtype dtype,
            Placement device) {
  return generator(place(device, {&shape, &scale})).gamma(shape, scale, size, dtype);
}

Array beta(const Parameter& a, const Parameter& b, const Size& size, Dtype dtype,
           Placement device) {
  return generator(place(device, {&a, &b})).beta(a, b, size, dtype);
}

Array chisquare(const Parameter& df, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&df})).chisquare(df, size, dtype);
}

Array noncentral_chisquare(const Parameter& df, const Parameter& nonc, const Size& size,
                           Dtype dtype, Placement device) {
  return generator(place(device, {&df, &nonc})).noncentral_chisquare(df, nonc, size, dtype);
}

Array f(const Parameter& dfnum, const Parameter& dfden, const Size& size, Dtype dtype,
        Placement device) {
  return generator(place(device, {&dfnum, &dfden})).f(dfnum, dfden, size, dtype);
}

Array noncentral_f(const Parameter& dfnum, const Parameter& dfden, const Parameter& nonc,
                   const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&dfnum, &dfden, &nonc}))
      .noncentral_f(dfnum, dfden, nonc, size, dtype);
}

Array standard_t(const Parameter& df, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&df})).standard_t(df, size, dtype);
}

Array pareto(const Parameter& a, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&a})).pareto(a, size, dtype);
}

Array power(const Parameter& a, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&a})).power(a, size, dtype);
}

Array rayleigh(const Parameter& scale, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&scale})).rayleigh(scale, size, dtype);
}

Array weibull(const Parameter& a, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&a})).weibull(a, size, dtype);
}

Array triangular(const Parameter& left, const Parameter& mode, const Parameter& right,
                 const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&left, &mode, &right}))
      .triangular(left, mode, right, size, dtype);
}

Array wald(const Parameter& mean, const Parameter& scale, const Size& size, Dtype dtype,
           Placement device) {
  return generator(place(device, {&mean, &scale})).wald(mean, scale, size, dtype);
}

Array vonmises(const Parameter& mu, const Parameter& kappa, const Size& size, Dtype dtype,
               Placement device) {
  return generator(place(device, {&mu, &kappa})).vonmises(mu, kappa, size, dtype);
}

Array poisson(const Parameter& lam, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&lam})).poisson(lam, size, dtype);
}

Array binomial(const Parameter& n, const Parameter& p, const Size& size, Dtype dtype,
               Placement device) {
  return generator(place(device, {&n, &p})).binomial(n, p, size, dtype);
}

Array negative_binomial(const Parameter& n, const Parameter& p, const Size& size, Dtype dtype,
                        Placement device) {
  return generator(place(device, {&n, &p})).negative_binomial(n, p, size, dtype);
}

Array geometric(const Parameter& p, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&p})).geometric(p, size, dtype);
}

Array hypergeometric(const Parameter& ngood, const Parameter& nbad, const Parameter& nsample,
                     const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&ngood, &nbad, &nsample}))
      .hypergeometric(ngood, nbad, nsample, size, dtype);
}

Array zipf(const Parameter& a, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&a})).zipf(a, size, dtype);
}

Array logseries(const Parameter& p, const Size& size, Dtype dtype, Placement device) {
  return generator(place(device, {&p})).logseries(p, size, dtype);
}

Array multivariate_normal(const Array& mean, const Array& cov, const Size& size, Dtype dtype) {
  return generator(device_of("multivariate_normal", mean))
      .multivariate_normal(mean, cov, size, dtype);
}

Array dirichlet(const Array& alpha, const Size& size, Dtype dtype) {
  return generator(device_of("dirichlet", alpha)).dirichlet(alpha, size, dtype);
}

Array multinomial(std::int64_t n, const Array& pvals, const Size& size, Dtype dtype,
                  Placement device) {
  return generator(device).multinomial(n, pvals, size, dtype);
}

Array permutation(std::int64_t n, Placement device) { return generator(device).permutation(n); }

Array permutation(const Array& a, int axis) {
  return generator(device_of("permutation", a)).permutation(a, axis);
}

void shuffle(const Array& a, int axis) { generator(device_of("shuffle", a)).shuffle(a, axis); }

Array choice(std::int64_t n, const Size& size, bool replace, const Array& p, Placement device) {
  return generator(device).choice(n, size, replace, p);
}

Array choice(const Array& a, const Size& size, bool replace, const Array& p) {
  return generator(device_of("choice", a)).choice(a, size, replace, p);
}

Array choice(std::int64_t n, const ChoiceOptions& options) {
  return generator(options.device).choice(n, options);
}

Array choice(const Array& a, const ChoiceOptions& options) {
  return generator(device_of("choice", a)).choice(a, options);
}

Array randint(std::int64_t low, std::int64_t high, const DrawOptions& o) {
  return o.finish("randint",
                  randint(low, high, o.drawn_size(), o.drawn_dtype(int64), o.drawn_device()));
}

Array random_sample(const Size& size, Dtype dtype, Placement device) {
  return random(size, dtype, device);
}

Array ranf(const Size& size, Dtype dtype, Placement device) { return random(size, dtype, device); }

Array sample(const Size& size, Dtype dtype, Placement device) {
  return random(size, dtype, device);
}

Array rand(const Size& size, Dtype dtype, Placement device) { return random(size, dtype, device); }

Array randn(const Size& size, Dtype dtype, Placement device) {
  return standard_normal(size, dtype, device);
}

Array random_integers(std::int64_t low, std::int64_t high, const Size& size, Placement device) {
  return integers(low, high, size, int64, true, device);
}

}  // namespace rensa::xp::random
