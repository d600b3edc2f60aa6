// Orders, choices and multinomial counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/array/random_internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/variates/variates.h"

namespace rensa::xp::random {

namespace {

void check_rows(const char* operation, const Array& a) {
  rensa::detail::check_defined(operation, a);
  if (a.ndim() > 0) return;
  throw ShapeError(fmt::format("{}: {} has no axis", operation, a.view().describe()));
}

// The probabilities as numbers: non-negative, `size` of them, and of sum 1.
std::vector<double> probabilities(const Array& p, std::int64_t size) {
  if (p.shape() != Shape{size}) {
    throw ValueError(
        fmt::format("choice: p is {}, there are {} to choose from", p.view().describe(), size));
  }
  auto values = p.to_vector<double>();
  double sum = 0;
  for (double value : values) {
    if (!(value >= 0)) throw ValueError(fmt::format("choice: the probability {}", value));
    sum += value;
  }
  // The square root of the precision that p comes in.
  double tolerance = p.dtype() == float64 ? 1.5e-8 : itemsize(p.dtype()) == 2 ? 0.05 : 3.5e-4;
  if (!(std::abs(sum - 1) <= tolerance)) {
    throw ValueError(fmt::format("choice: the probabilities sum to {}, not 1", sum));
  }
  return values;
}

// Positions with given probabilities, any number of times each.
Array draw_categories(const Generator& generator, const Array& p, std::int64_t n,
                      const Shape& size) {
  std::vector<double> table = probabilities(p, n);
  for (std::size_t i = 1; i < table.size(); ++i) table[i] += table[i - 1];
  for (double& entry : table) entry /= table.back();
  Array cumulated = array(table, generator.device());
  Array out = rensa::detail::new_array(size, int64, generator.device());
  if (out.size() == 0) return out;
  operations::Variates op("choice", Distribution::categorical);
  op.table = cumulated.operand();
  op.out = out.operand();
  GeneratorPosition position = generator.take(out.size());
  op.seed = position.seed;
  op.offset = position.offset;
  launch(op);
  return out;
}

// The first `count` positions of a race: each comes in after an exponential time of rate p, which
// is drawing one after the other from what is left.
Array draw_distinct(const Generator& generator, const Array& p, std::int64_t n,
                    std::int64_t count) {
  std::vector<double> rates = probabilities(p, n);
  std::int64_t possible = 0;
  for (double rate : rates) possible += rate > 0;
  if (possible < count) {
    throw ValueError(fmt::format("choice: {} without replacement, but only {} have a probability",
                                 count, possible));
  }
  Array times = generator.standard_exponential({n}, float64) / array(rates, generator.device());
  // Positive doubles order as their bits do.
  ArrayView bits = times.view();
  bits.dtype = uint64;
  return detail::order_of(Array(times.storage(), bits))[Slice(count)];
}

}  // namespace

Array Generator::permutation(const Array& a, int axis) const {
  check_rows("permutation", a);
  return xp::take(a, permutation(a.shape(axis)), axis);
}

void Generator::shuffle(const Array& a, int axis) const {
  check_rows("shuffle", a);
  rensa::detail::check_writable("shuffle", a);
  if (a.size() > 0) a.assign(permutation(a, axis));
}

Array Generator::choice(std::int64_t n, const ChoiceOptions& o) const {
  check_own_device("choice", o.device);
  return choice(n, o.size, o.replace, o.p ? *o.p : Array());
}

Array Generator::choice(const Array& a, const ChoiceOptions& o) const {
  check_rows("choice", a);
  return xp::take(a, choice(a.shape(o.axis), o), o.axis);
}

Array Generator::choice(std::int64_t n, const Size& size, bool replace, const Array& p) const {
  for (std::int64_t extent : size.shape()) {
    if (extent < 0)
      throw ValueError(fmt::format("choice: size {} has a negative extent", size.shape().str()));
  }
  std::int64_t count = size.shape().total();
  if (n < 0 || (n == 0 && count > 0)) {
    throw ValueError(fmt::format("choice: {} things to choose from", n));
  }
  if (replace)
    return p.defined() ? draw_categories(*this, p, n, size.shape())
           : n > 0     ? randint(0, n, size.shape())
                       : empty(size.shape(), int64, device_);
  if (count > n) {
    throw ValueError(
        fmt::format("choice: {} without replacement, but there are only {}", count, n));
  }
  Array chosen =
      p.defined() ? draw_distinct(*this, p, n, count) : Array(permutation(n)[Slice(count)]);
  return chosen.reshape(size.shape());
}

Array Generator::choice(const Array& a, const Size& size, bool replace, const Array& p) const {
  check_rows("choice", a);
  return xp::take(a, choice(a.shape(0), size.shape(), replace, p), 0);
}

Array Generator::multinomial(std::int64_t n, const Array& pvals, const Size& size,
                             Dtype dtype) const {
  rensa::detail::check_defined("multinomial", pvals);
  if (n < 0) throw ValueError(fmt::format("multinomial: {} trials", n));
  if (pvals.ndim() != 1) {
    throw ShapeError(fmt::format("multinomial: pvals is {}, it has to be one-dimensional",
                                 pvals.view().describe()));
  }
  auto p = pvals.to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] >= 0 && p[i] <= 1)) {
      throw ValueError(fmt::format("multinomial: the probability {}", p[i]));
    }
    if (i + 1 < p.size()) sum += p[i];
  }
  if (sum > (pvals.dtype() == float64 ? 1 + 1e-12 : 1 + 1e-6)) {
    throw ValueError(fmt::format("multinomial: sum(pvals[:-1]) is {}, above 1", sum));
  }
  Shape shape = size.shape();
  shape.push_back(pvals.size());
  Array out = rensa::detail::new_array(shape, dtype, device_);
  Array left = full(size.shape(), n, int64, device_);
  double rest = 1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    Array column = out[{ellipsis, static_cast<std::int64_t>(i)}];
    if (i + 1 == p.size()) {
      column.assign(left);
      break;
    }
    double share = rest > 0 ? std::min(p[i] / rest, 1.0) : 0;
    Array count = binomial(left, share, size.shape());
    column.assign(count);
    left -= count;
    rest -= p[i];
  }
  return out;
}

}  // namespace rensa::xp::random
