// The distributions that samplers draw (core/distributions.def).
#include <fmt/format.h>

#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/array/linalg.h"
#include "rensa/array/random_internal.h"
#include "rensa/core/error.h"
#include "rensa/core/samplers.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/variates/variates.h"

namespace rensa::xp::random {

namespace detail {

namespace {

const char* describe(Domain domain) {
  switch (domain) {
    case Domain::non_negative: return "at least 0";
    case Domain::positive: return "above 0";
    case Domain::probability: return "in [0, 1]";
    case Domain::above_one: return "above 1";
    default: return "a number";
  }
}

bool holds(Domain domain, double value) {
  switch (domain) {
    case Domain::non_negative: return value >= 0;
    case Domain::positive: return value > 0;
    case Domain::probability: return value >= 0 && value <= 1;
    case Domain::above_one: return value > 1;
    default: return true;
  }
}

}  // namespace

}  // namespace detail

Parameter::Parameter(const Array& array) : array_(array) {
  rensa::detail::check_defined("random", array);
}

namespace detail {

void check_number(const char* operation, const char* parameter, const Parameter& value,
                  Domain domain) {
  if (value.is_array() || holds(domain, value.number())) return;
  throw ValueError(fmt::format("{}: {} is {}, it has to be {}", operation, parameter,
                               value.number(), describe(domain)));
}

void check_floating(const char* operation, Dtype dtype) {
  if (dtype_kind(dtype) == 'f') return;
  throw DtypeError(fmt::format("{}: {} is not taken, only float16, bfloat16, float32 and float64",
                               operation, dtype_name(dtype)));
}

Shape joint_shape(const char* operation, const Shape& shape, const Parameter& parameter) {
  if (!parameter.is_array()) return shape;
  if (dtype_kind(parameter.array().dtype()) == 'c') {
    throw DtypeError(fmt::format("{}: a parameter is complex", operation));
  }
  return broadcast_shapes(operation, shape, parameter.array().shape());
}

Shape fit_size(const char* operation, const Shape& shape, const Size& size) {
  if (!size.given()) return shape;
  if (broadcast_shapes(operation, shape, size.shape()) == size.shape()) return size.shape();
  throw ShapeError(fmt::format("{}: parameters of shape {} do not broadcast to the size {}",
                               operation, shape.str(), size.shape().str()));
}

void combine(const char* operation, Ufunc ufunc, const Array& out, const Parameter& parameter) {
  if (out.size() == 0) return;
  if (!parameter.is_array()) {
    rensa::detail::elementwise(operation, ufunc, {out, parameter.number()}, &out);
  } else {
    Array operand = parameter.array().astype(out.dtype(), false);
    rensa::detail::elementwise(operation, ufunc, {out, operand}, &out);
  }
}

}  // namespace detail

namespace {

using detail::Domain;

// A parameter with its name and domain.
struct Named {
  const char* name;
  const Parameter& value;
  Domain domain;
};

// One variate of `distribution` per element.
Array draw(const Generator& generator, const char* operation, Distribution distribution,
           std::initializer_list<Named> parameters, const Size& size, Dtype dtype) {
  operations::Variates op(operation, distribution);
  Shape shape;
  int k = 0;
  for (const Named& parameter : parameters) {
    detail::check_number(operation, parameter.name, parameter.value, parameter.domain);
    shape = detail::joint_shape(operation, shape, parameter.value);
    if (!parameter.value.is_array()) op.parameters[k].scalar = parameter.value.number();
    ++k;
  }
  shape = detail::fit_size(operation, shape, size);
  Array out = rensa::detail::new_array(shape, dtype, generator.device());
  if (out.size() == 0) return out;
  k = 0;
  for (const Named& parameter : parameters) {
    operations::ElementwiseInput& input = op.parameters[k++];
    if (!parameter.value.is_array()) continue;
    input.array = parameter.value.array().operand();
    input.array.view = broadcast_view(input.array.view, shape);
  }
  GeneratorPosition position = generator.take(out.size());
  op.seed = position.seed;
  op.offset = position.offset;
  op.out = out.operand();
  launch(op);
  return out;
}

// Counts are int64's: throws ValueError for a number of trials that is none of them.
void check_countable(const char* operation, const char* parameter, const Parameter& value) {
  if (value.is_array() || !(value.number() > draw::kMostCounted)) return;
  throw ValueError(
      fmt::format("{}: {} is {}, too large for int64", operation, parameter, value.number()));
}

Array draw_floats(const Generator& generator, const char* operation, Distribution distribution,
                  std::initializer_list<Named> parameters, const Size& size, Dtype dtype) {
  detail::check_floating(operation, dtype);
  return draw(generator, operation, distribution, parameters, size, dtype);
}

Array draw_counts(const Generator& generator, const char* operation, Distribution distribution,
                  std::initializer_list<Named> parameters, const Size& size, Dtype dtype) {
  if (dtype_kind(dtype) == 'c' || dtype == bool_) {
    throw DtypeError(fmt::format("{}: {} holds no counts", operation, dtype_name(dtype)));
  }
  return draw(generator, operation, distribution, parameters, size, dtype);
}

}  // namespace

Array Generator::standard_gamma(const Parameter& shape, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "standard_gamma", Distribution::standard_gamma,
                     {{"shape", shape, Domain::non_negative}}, size, dtype);
}

Array Generator::gamma(const Parameter& shape, const Parameter& scale, const Size& size,
                       Dtype dtype) const {
  return draw_floats(
      *this, "gamma", Distribution::gamma,
      {{"shape", shape, Domain::non_negative}, {"scale", scale, Domain::non_negative}}, size,
      dtype);
}

Array Generator::beta(const Parameter& a, const Parameter& b, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "beta", Distribution::beta,
                     {{"a", a, Domain::positive}, {"b", b, Domain::positive}}, size, dtype);
}

Array Generator::chisquare(const Parameter& df, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "chisquare", Distribution::chisquare, {{"df", df, Domain::positive}},
                     size, dtype);
}

Array Generator::noncentral_chisquare(const Parameter& df, const Parameter& nonc, const Size& size,
                                      Dtype dtype) const {
  return draw_floats(*this, "noncentral_chisquare", Distribution::noncentral_chisquare,
                     {{"df", df, Domain::positive}, {"nonc", nonc, Domain::non_negative}}, size,
                     dtype);
}

Array Generator::f(const Parameter& dfnum, const Parameter& dfden, const Size& size,
                   Dtype dtype) const {
  return draw_floats(*this, "f", Distribution::f,
                     {{"dfnum", dfnum, Domain::positive}, {"dfden", dfden, Domain::positive}}, size,
                     dtype);
}

Array Generator::noncentral_f(const Parameter& dfnum, const Parameter& dfden, const Parameter& nonc,
                              const Size& size, Dtype dtype) const {
  return draw_floats(*this, "noncentral_f", Distribution::noncentral_f,
                     {{"dfnum", dfnum, Domain::positive},
                      {"dfden", dfden, Domain::positive},
                      {"nonc", nonc, Domain::non_negative}},
                     size, dtype);
}

Array Generator::standard_t(const Parameter& df, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "standard_t", Distribution::standard_t, {{"df", df, Domain::positive}},
                     size, dtype);
}

Array Generator::pareto(const Parameter& a, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "pareto", Distribution::pareto, {{"a", a, Domain::positive}}, size,
                     dtype);
}

Array Generator::power(const Parameter& a, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "power", Distribution::power, {{"a", a, Domain::positive}}, size,
                     dtype);
}

Array Generator::rayleigh(const Parameter& scale, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "rayleigh", Distribution::rayleigh,
                     {{"scale", scale, Domain::non_negative}}, size, dtype);
}

Array Generator::weibull(const Parameter& a, const Size& size, Dtype dtype) const {
  return draw_floats(*this, "weibull", Distribution::weibull, {{"a", a, Domain::non_negative}},
                     size, dtype);
}

Array Generator::triangular(const Parameter& left, const Parameter& mode, const Parameter& right,
                            const Size& size, Dtype dtype) const {
  if (!left.is_array() && !mode.is_array() && !right.is_array() &&
      !(left.number() <= mode.number() && mode.number() <= right.number() &&
        left.number() < right.number())) {
    throw ValueError(
        fmt::format("triangular: left <= mode <= right and left < right are wanted, not {}, {}, {}",
                    left.number(), mode.number(), right.number()));
  }
  return draw_floats(
      *this, "triangular", Distribution::triangular,
      {{"left", left, Domain::any}, {"mode", mode, Domain::any}, {"right", right, Domain::any}},
      size, dtype);
}

Array Generator::wald(const Parameter& mean, const Parameter& scale, const Size& size,
                      Dtype dtype) const {
  return draw_floats(*this, "wald", Distribution::wald,
                     {{"mean", mean, Domain::positive}, {"scale", scale, Domain::positive}}, size,
                     dtype);
}

Array Generator::vonmises(const Parameter& mu, const Parameter& kappa, const Size& size,
                          Dtype dtype) const {
  return draw_floats(*this, "vonmises", Distribution::vonmises,
                     {{"mu", mu, Domain::any}, {"kappa", kappa, Domain::non_negative}}, size,
                     dtype);
}

Array Generator::poisson(const Parameter& lam, const Size& size, Dtype dtype) const {
  check_countable("poisson", "lam", lam);
  return draw_counts(*this, "poisson", Distribution::poisson, {{"lam", lam, Domain::non_negative}},
                     size, dtype);
}

Array Generator::binomial(const Parameter& n, const Parameter& p, const Size& size,
                          Dtype dtype) const {
  check_countable("binomial", "n", n);
  return draw_counts(*this, "binomial", Distribution::binomial,
                     {{"n", n, Domain::non_negative}, {"p", p, Domain::probability}}, size, dtype);
}

Array Generator::negative_binomial(const Parameter& n, const Parameter& p, const Size& size,
                                   Dtype dtype) const {
  if (!p.is_array() && p.number() == 0) {
    throw ValueError("negative_binomial: p is 0, it has to be above 0");
  }
  if (!n.is_array() && !p.is_array()) {
    // The rate of the Poisson numbers drawn, ten deviations up.
    double rate = (1 - p.number()) / p.number() * (n.number() + 10 * std::sqrt(n.number()));
    if (rate > draw::kMostCounted) {
      throw ValueError(
          fmt::format("negative_binomial: n {} is too large or p {} too small for int64",
                      n.number(), p.number()));
    }
  }
  return draw_counts(*this, "negative_binomial", Distribution::negative_binomial,
                     {{"n", n, Domain::positive}, {"p", p, Domain::probability}}, size, dtype);
}

Array Generator::geometric(const Parameter& p, const Size& size, Dtype dtype) const {
  if (!p.is_array() && p.number() == 0) throw ValueError("geometric: p is 0, it has to be above 0");
  return draw_counts(*this, "geometric", Distribution::geometric, {{"p", p, Domain::probability}},
                     size, dtype);
}

Array Generator::hypergeometric(const Parameter& ngood, const Parameter& nbad,
                                const Parameter& nsample, const Size& size, Dtype dtype) const {
  if (!ngood.is_array() && !nbad.is_array() && !nsample.is_array() &&
      nsample.number() > ngood.number() + nbad.number()) {
    throw ValueError(fmt::format("hypergeometric: {} cannot be drawn from {} + {}",
                                 nsample.number(), ngood.number(), nbad.number()));
  }
  if (!ngood.is_array() && !nbad.is_array()) {
    check_countable("hypergeometric", "ngood + nbad", ngood.number() + nbad.number());
  }
  return draw_counts(*this, "hypergeometric", Distribution::hypergeometric,
                     {{"ngood", ngood, Domain::non_negative},
                      {"nbad", nbad, Domain::non_negative},
                      {"nsample", nsample, Domain::non_negative}},
                     size, dtype);
}

Array Generator::zipf(const Parameter& a, const Size& size, Dtype dtype) const {
  return draw_counts(*this, "zipf", Distribution::zipf, {{"a", a, Domain::above_one}}, size, dtype);
}

Array Generator::logseries(const Parameter& p, const Size& size, Dtype dtype) const {
  if (!p.is_array() && p.number() == 1) throw ValueError("logseries: p is 1, it has to be below 1");
  return draw_counts(*this, "logseries", Distribution::logseries, {{"p", p, Domain::probability}},
                     size, dtype);
}

Array Generator::dirichlet(const Array& alpha, const Size& size, Dtype dtype) const {
  rensa::detail::check_defined("dirichlet", alpha);
  if (alpha.ndim() != 1 || alpha.size() == 0) {
    throw ShapeError(
        fmt::format("dirichlet: alpha is {}, it has to be one-dimensional and not empty",
                    alpha.view().describe()));
  }
  if (alpha.device().is_cpu() && !(alpha > 0).all().item<bool>()) {
    throw ValueError("dirichlet: alpha has to be above 0");
  }
  detail::check_floating("dirichlet", dtype);
  Shape shape = size.shape();
  shape.push_back(alpha.size());
  // Gamma variates over their sum, as logarithms: small alphas make gammas that underflow.
  Array logs = draw(*this, "dirichlet", Distribution::log_gamma, {{"alpha", alpha, Domain::any}},
                    shape, float64);
  Array shares = exp(logs - logs.max(-1, true));
  return (shares / shares.sum(-1, true)).astype(dtype, false);
}

namespace {

// What rounding of a matrix's elements makes of an eigenvalue of 0, beside the greatest one.
double rounding_of(Dtype dtype) {
  return dtype == float64 || dtype_kind(dtype) != 'f' ? 1e-8 : itemsize(dtype) == 4 ? 1e-5 : 0.02;
}

}  // namespace

Array Generator::multivariate_normal(const Array& mean, const Array& cov, const Size& size,
                                     Dtype dtype) const {
  rensa::detail::check_defined("multivariate_normal", mean);
  rensa::detail::check_defined("multivariate_normal", cov);
  check_same_device("multivariate_normal", mean, cov);
  detail::check_floating("multivariate_normal", dtype);
  std::int64_t n = mean.size();
  if (mean.ndim() != 1 || cov.shape() != Shape{n, n}) {
    throw ShapeError(
        fmt::format("multivariate_normal: mean is {} and cov {}; they have to be (n,) "
                    "and (n, n)",
                    mean.view().describe(), cov.view().describe()));
  }
  Shape shape = size.shape();
  shape.push_back(n);
  // cov = V diag(w) V^T, whose square root serves where cov is not of full rank as well.
  linalg::EigResult eig = linalg::eigh(cov.astype(float64, false));
  Array least = absolute(eig.eigenvalues).max({}, true) * -rounding_of(cov.dtype());
  if (n > 0 && !greater_equal(eig.eigenvalues, least).all().item<bool>()) {
    throw ValueError(
        fmt::format("multivariate_normal: cov {} is not positive semi-definite: it has the "
                    "eigenvalue {}",
                    cov.view().describe(), eig.eigenvalues.min().item<double>()));
  }
  Array root = eig.eigenvectors * sqrt(maximum(eig.eigenvalues, 0));
  Array z = standard_normal({size.shape().total(), n}, float64);
  Array variates = matmul(z, root.T()) + mean.astype(float64, false);
  return variates.reshape(shape).astype(dtype, false);
}

}  // namespace rensa::xp::random
