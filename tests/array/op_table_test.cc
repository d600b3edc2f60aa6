// Every row of core/ops.def over dtypes, layouts and devices, against formulas of the standard
// library. A new row of ops.def needs a row in op_table() below.
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "tests/array/arrays.h"

namespace rensa {

namespace ufunc {
#define RENSA_UFUNC(name, inputs, rule, expression) extern const UfuncInfo name;
#define RENSA_INTERNAL(name, inputs, rule, expression) extern const UfuncInfo name;
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
}  // namespace ufunc

namespace testing {
namespace {

using Complex = std::complex<double>;
using I = std::int64_t;

struct OpRow {
  Ufunc ufunc;
  std::function<double(const double*)> real;                 // null: not over floats
  std::function<std::int64_t(const std::int64_t*)> integer;  // null: not over integers and bool
  std::function<Complex(const Complex*)> complex;            // null: not over complex numbers
  double low = -3, high = 3;
  bool specials = true;   // NaN, infinities and zeros among the floats
  bool any_zero = false;  // the sign of a zero is left open
};

// A formula in the types that it is written for.
template <class T, class F> std::function<T(const T*)> unary(F f) {
  return [f](const T* x) { return T(f(x[0])); };
}
template <class T, class F> std::function<T(const T*)> binary(F f) {
  return [f](const T* x) { return T(f(x[0], x[1])); };
}

struct Domain {
  double low = -3, high = 3;
  bool specials = true, any_zero = false;
};

// Over all numbers.
template <class F> OpRow all1(Ufunc u, F f, Domain d = {}) {
  return {u,     unary<double>(f), unary<I>(f), unary<Complex>(f),
          d.low, d.high,           d.specials,  d.any_zero};
}
template <class F> OpRow all2(Ufunc u, F f, Domain d = {}) {
  return {u,      binary<double>(f), binary<I>(f), binary<Complex>(f), d.low,
          d.high, d.specials,        d.any_zero};
}
// Over integers by one formula and over floats by another.
template <class F, class G> OpRow real1(Ufunc u, F f, G g, Domain d = {}) {
  return {u, unary<double>(f), unary<I>(g), nullptr, d.low, d.high, d.specials, d.any_zero};
}
template <class F, class G> OpRow real2(Ufunc u, F f, G g, Domain d = {}) {
  return {u, binary<double>(f), binary<I>(g), nullptr, d.low, d.high, d.specials, d.any_zero};
}
// Floating functions: integers are computed as floats.
template <class F> OpRow float1(Ufunc u, F f, double low = -3, double high = 3) {
  return {u, unary<double>(f), nullptr, nullptr, low, high, true, false};
}
// Floating functions of complex numbers too.
template <class F> OpRow analytic(Ufunc u, F f, double low = -3, double high = 3) {
  return {u, unary<double>(f), nullptr, unary<Complex>(f), low, high, true, false};
}
template <class F, class G>
OpRow analytic2(Ufunc u, F f, G complex, double low = -3, double high = 3) {
  return {u, unary<double>(f), nullptr, unary<Complex>(complex), low, high, true, false};
}
template <class F> OpRow float2(Ufunc u, F f, Domain d = {}) {
  return {u, binary<double>(f), nullptr, nullptr, d.low, d.high, d.specials, d.any_zero};
}
template <class F> OpRow bits(Ufunc u, F f, Domain d = {}) {
  return {u, nullptr, binary<I>(f), nullptr, d.low, d.high, true, false};
}

double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
}
double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b);
}
I maximum_i(I a, I b) { return std::max(a, b); }
I minimum_i(I a, I b) { return std::min(a, b); }

double floor_mod(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0 && (r < 0) != (b < 0)) r += b;
  return r == 0 ? std::copysign(0.0, b) : r;
}
double floor_div(double a, double b) {
  if (b == 0) return a / b;
  double r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  return q == 0 ? std::copysign(0.0, a / b) : std::rint(q);
}
I floor_div_i(I a, I b) {
  if (b == 0) return 0;
  return static_cast<I>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}
I floor_mod_i(I a, I b) { return b == 0 ? 0 : a - floor_div_i(a, b) * b; }
I power_i(I a, I b) {
  I result = 1;
  for (I i = 0; i < b; ++i) result *= a;
  return result;
}
double sign(double a) { return std::isnan(a) ? a : (a > 0) - (a < 0); }
template <class T> bool truth(T a) { return a != T(0); }
// The next number after `a`, rounded, in a type of `digits` bits whose least exponent is `least`.
double next_in(double a, double b, int digits, int least) {
  if (a == b) return b;
  int exponent = a == 0 ? least : std::max(std::ilogb(a), least);
  double ulp = std::ldexp(1, exponent - digits + 1), rounded = std::rint(a / ulp) * ulp;
  if (a < b) return rounded + ulp;
  bool into_finer = rounded == std::ldexp(1, exponent) && exponent > least;
  return rounded - (into_finer ? ulp / 2 : ulp);
}
double log_add(double a, double b) {
  return a == b ? a + std::log(2.0) : std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

double heaviside(double a, double at_zero) {
  if (std::isnan(a)) return a;
  return a == 0 ? at_zero : a > 0;
}

template <class T> std::function<T(const T*)> choose() {
  return [](const T* x) { return truth(x[0]) ? x[1] : x[2]; };
}

std::vector<OpRow> make_table() {
  const Domain kOpenZero{-3, 3, true, true}, kPositive{0.1, 3, false};
  const double kInf = std::numeric_limits<double>::infinity();
  auto same = [](auto a) { return a; };
  std::vector<OpRow> t;
  t.push_back(all1(ufunc::copy, same));
  t.push_back(all1(ufunc::positive, same));
  t.push_back({ufunc::where, choose<double>(), choose<I>(), choose<Complex>(), -3, 3, true, false});

  t.push_back(all2(ufunc::add, [](auto a, auto b) { return a + b; }));
  t.push_back(all2(ufunc::subtract, [](auto a, auto b) { return a - b; }));
  t.push_back(all2(ufunc::multiply, [](auto a, auto b) { return a * b; }));
  auto divide = [](auto a, auto b) { return a / b; };
  t.push_back({ufunc::divide, binary<double>(divide), nullptr, binary<Complex>(divide), -3, 3});
  t.push_back(real2(ufunc::floor_divide, floor_div, floor_div_i));
  t.push_back(real2(ufunc::remainder, floor_mod, floor_mod_i));
  t.push_back(real2(
      ufunc::fmod, [](double a, double b) { return std::fmod(a, b); },
      [](I a, I b) { return b == 0 ? 0 : a % b; }));
  t.push_back({ufunc::power, binary<double>([](double a, double b) { return std::pow(a, b); }),
               binary<I>(power_i),
               binary<Complex>([](Complex a, Complex b) { return std::exp(b * std::log(a)); }), 0.1,
               3});
  t.push_back({ufunc::float_power,
               binary<double>([](double a, double b) { return std::pow(a, b); }), nullptr,
               binary<Complex>([](Complex a, Complex b) { return std::exp(b * std::log(a)); }), 0.1,
               3});
  t.push_back(all1(ufunc::negative, [](auto a) { return -a; }));
  t.push_back({ufunc::reciprocal, unary<double>([](double a) { return 1 / a; }),
               unary<I>([](I a) { return a == 0 ? 0 : 1 / a; }),
               unary<Complex>([](Complex a) { return 1.0 / a; }), -3, 3});
  t.push_back(all1(ufunc::absolute, [](auto a) { return std::abs(a); }));
  t.push_back(float1(ufunc::fabs, [](double a) { return std::fabs(a); }));
  t.push_back({ufunc::sign, unary<double>(sign), unary<I>([](I a) { return (a > 0) - (a < 0); }),
               unary<Complex>([](Complex a) { return a / std::abs(a); })});
  t.push_back(all1(ufunc::square, [](auto a) { return a * a; }));
  t.push_back({ufunc::conjugate, unary<double>(same), unary<I>(same),
               unary<Complex>([](Complex a) { return std::conj(a); })});
  t.push_back(real2(ufunc::maximum, maximum, maximum_i, kOpenZero));
  t.push_back(real2(ufunc::minimum, minimum, minimum_i, kOpenZero));
  t.push_back(real2(
      ufunc::fmax, [](double a, double b) { return std::fmax(a, b); }, maximum_i, kOpenZero));
  t.push_back(real2(
      ufunc::fmin, [](double a, double b) { return std::fmin(a, b); }, minimum_i, kOpenZero));
  t.push_back({ufunc::clip, [](const double* x) { return minimum(maximum(x[0], x[1]), x[2]); },
               [](const I* x) { return minimum_i(maximum_i(x[0], x[1]), x[2]); }, nullptr, -3, 3,
               true, true});

  t.push_back(all2(ufunc::equal, [](auto a, auto b) { return a == b; }));
  t.push_back(all2(ufunc::not_equal, [](auto a, auto b) { return a != b; }));
  auto less = [](auto a, auto b) { return a < b; };
  auto less_equal = [](auto a, auto b) { return a <= b; };
  auto greater = [](auto a, auto b) { return a > b; };
  auto greater_equal = [](auto a, auto b) { return a >= b; };
  t.push_back(real2(ufunc::less, less, less));
  t.push_back(real2(ufunc::less_equal, less_equal, less_equal));
  t.push_back(real2(ufunc::greater, greater, greater));
  t.push_back(real2(ufunc::greater_equal, greater_equal, greater_equal));
  t.push_back(all2(ufunc::logical_and, [](auto a, auto b) { return truth(a) && truth(b); }));
  t.push_back(all2(ufunc::logical_or, [](auto a, auto b) { return truth(a) || truth(b); }));
  t.push_back(all2(ufunc::logical_xor, [](auto a, auto b) { return truth(a) != truth(b); }));
  t.push_back(all1(ufunc::logical_not, [](auto a) { return !truth(a); }));
  t.push_back(analytic2(
      ufunc::isnan, [](double a) { return std::isnan(a); }, [](Complex) { return 0.0; }));
  t.push_back(analytic2(
      ufunc::isinf, [](double a) { return std::isinf(a); }, [](Complex) { return 0.0; }));
  t.push_back(analytic2(
      ufunc::isfinite, [](double a) { return std::isfinite(a); }, [](Complex) { return 1.0; }));
  t.push_back(float1(ufunc::isposinf, [kInf](double a) { return a == kInf; }));
  t.push_back(float1(ufunc::isneginf, [kInf](double a) { return a == -kInf; }));
  t.push_back(float1(ufunc::signbit, [](double a) { return std::signbit(a); }));

  t.push_back(bits(ufunc::bitwise_and, [](I a, I b) { return a & b; }));
  t.push_back(bits(ufunc::bitwise_or, [](I a, I b) { return a | b; }));
  t.push_back(bits(ufunc::bitwise_xor, [](I a, I b) { return a ^ b; }));
  t.push_back({ufunc::invert, nullptr, unary<I>([](I a) { return ~a; }), nullptr});
  t.push_back(bits(ufunc::left_shift, [](I a, I b) { return a * (I{1} << b); }, {0, 6}));
  t.push_back(bits(ufunc::right_shift, [](I a, I b) { return a >> b; }, {0, 6}));
  t.push_back({ufunc::bitwise_count, nullptr,
               unary<I>([](I a) { return std::popcount(static_cast<std::uint64_t>(std::abs(a))); }),
               nullptr, -100, 100});
  t.push_back(bits(ufunc::gcd, [](I a, I b) { return std::gcd(a, b); }, {-9, 9}));
  t.push_back(bits(ufunc::lcm, [](I a, I b) { return std::lcm(a, b); }, {-9, 9}));

  t.push_back(analytic(ufunc::exp, [](auto a) { return std::exp(a); }));
  t.push_back(analytic2(
      ufunc::exp2, [](double a) { return std::exp2(a); },
      [](Complex a) { return std::exp(a * std::log(2.0)); }));
  t.push_back(analytic2(
      ufunc::expm1, [](double a) { return std::expm1(a); },
      [](Complex a) { return std::exp(a) - 1.0; }));
  t.push_back(analytic(
      ufunc::log, [](auto a) { return std::log(a); }, 0.01));
  t.push_back(analytic2(
      ufunc::log2, [](double a) { return std::log2(a); },
      [](Complex a) { return std::log(a) / std::log(2.0); }, 0.01));
  t.push_back(analytic(
      ufunc::log10, [](auto a) { return std::log10(a); }, 0.01));
  t.push_back(analytic2(
      ufunc::log1p, [](double a) { return std::log1p(a); },
      [](Complex a) { return std::log(1.0 + a); }, -0.9));
  t.push_back(float2(ufunc::logaddexp, log_add, kPositive));
  t.push_back(float2(
      ufunc::logaddexp2, [](double a, double b) { return std::log2(std::exp2(a) + std::exp2(b)); },
      kPositive));
  t.push_back(analytic(
      ufunc::sqrt, [](auto a) { return std::sqrt(a); }, 0));
  t.push_back(analytic(
      ufunc::rsqrt, [](auto a) { return 1.0 / std::sqrt(a); }, 0.01));
  t.push_back(float1(ufunc::cbrt, [](double a) { return std::cbrt(a); }));
  t.push_back(float2(ufunc::hypot, [](double a, double b) { return std::hypot(a, b); }));

  t.push_back(analytic(ufunc::sin, [](auto a) { return std::sin(a); }));
  t.push_back(analytic(
      ufunc::cos, [](auto a) { return std::cos(a); }, -1.4, 1.4));
  t.push_back(analytic(
      ufunc::tan, [](auto a) { return std::tan(a); }, -1.4, 1.4));
  t.push_back(analytic(
      ufunc::arcsin, [](auto a) { return std::asin(a); }, -1, 1));
  t.push_back(analytic(
      ufunc::arccos, [](auto a) { return std::acos(a); }, -1, 1));
  t.push_back(analytic(ufunc::arctan, [](auto a) { return std::atan(a); }));
  t.push_back(float2(ufunc::arctan2, [](double a, double b) { return std::atan2(a, b); }));
  t.push_back(analytic(ufunc::sinh, [](auto a) { return std::sinh(a); }));
  t.push_back(analytic(ufunc::cosh, [](auto a) { return std::cosh(a); }));
  t.push_back(analytic(ufunc::tanh, [](auto a) { return std::tanh(a); }));
  t.push_back(analytic(ufunc::arcsinh, [](auto a) { return std::asinh(a); }));
  t.push_back(analytic(
      ufunc::arccosh, [](auto a) { return std::acosh(a); }, 1));
  t.push_back(analytic(
      ufunc::arctanh, [](auto a) { return std::atanh(a); }, -0.99, 0.99));
  t.push_back(float1(ufunc::degrees, [](double a) { return a * 180 / M_PI; }));
  t.push_back(float1(ufunc::radians, [](double a) { return a * M_PI / 180; }));
  t.push_back(float1(ufunc::erf, [](double a) { return std::erf(a); }));

  auto whole = [](I a) { return a; };
  t.push_back(real1(
      ufunc::floor, [](double a) { return std::floor(a); }, whole));
  t.push_back(real1(
      ufunc::ceil, [](double a) { return std::ceil(a); }, whole));
  t.push_back(real1(
      ufunc::trunc, [](double a) { return std::trunc(a); }, whole));
  t.push_back(analytic2(
      ufunc::rint, [](double a) { return std::rint(a); },
      [](Complex a) { return Complex(std::rint(a.real()), std::rint(a.imag())); }));
  t.push_back(float2(ufunc::copysign, [](double a, double b) { return std::copysign(a, b); }));
  t.push_back(float2(ufunc::heaviside, heaviside));
  t.push_back(float2(ufunc::nextafter, [](double a, double b) { return std::nextafter(a, b); },
                     {2.5, 3, false}));
  t.push_back(float2(ufunc::ldexp,
                     [](double a, double b) { return std::ldexp(a, static_cast<int>(b)); },
                     {-3, 3, false}));

  auto sinc = [](auto a) { return a == 0.0 ? a + 1.0 : std::sin(M_PI * a) / (M_PI * a); };
  t.push_back(
      {ufunc::sinc, unary<double>(sinc), nullptr, unary<Complex>(sinc), -0.4, 0, false, true});
  t.push_back(float1(ufunc::fraction, [](double a) {
    double whole;
    return std::modf(a, &whole);
  }));
  t.push_back(float2(ufunc::round_scaled, [](double a, double b) {
    return b < 0 ? std::rint(a / -b) * -b : std::rint(a * b) / b;
  }));
  t.push_back(float1(ufunc::mantissa, [](double a) {
    int power;
    return std::frexp(a, &power);
  }));
  t.push_back(float1(ufunc::exponent, [](double a) {
    int power = 0;
    std::frexp(std::isfinite(a) ? a : 0, &power);
    return power;
  }));
  t.push_back({ufunc::bessel_i0,
               unary<double>([](double a) { return std::cyl_bessel_i(0, std::abs(a)); }), nullptr,
               nullptr, -3, 3, false});
  t.push_back(float2(ufunc::next_float16, [](double a, double b) { return next_in(a, b, 11, -14); },
                     {2.5, 3, false}));
  t.push_back(float2(ufunc::next_bfloat16,
                     [](double a, double b) { return next_in(a, b, 8, -126); }, {2.5, 3, false}));
  t.push_back({ufunc::finite_or,
               [kInf](const double* x) {
                 if (std::isnan(x[0])) return x[1];
                 return x[0] == kInf ? x[2] : x[0] == -kInf ? -x[2] : x[0];
               },
               nullptr, nullptr});

  t.push_back(real1(
      ufunc::relu, [](double a) { return a <= 0 ? 0 : a; }, [](I a) { return std::max<I>(a, 0); }));
  t.push_back(real2(
      ufunc::relu_grad, [](double a, double b) { return b > 0 ? a : 0; },
      [](I a, I b) { return b > 0 ? a : 0; }));
  return t;
}

// One row for each of ops.def.
const std::vector<OpRow>& op_table() {
  static const std::vector<OpRow> table = make_table();
  return table;
}

// --- what the rules promise, said a second time ---
bool takes(DtypeRule rule, Dtype d) {
  char k = dtype_kind(d);
  switch (rule) {
    case DtypeRule::arithmetic: return k != 'b';
    case DtypeRule::bitwise:
    case DtypeRule::shift:
    case DtypeRule::bit_count: return k == 'b' || k == 'i' || k == 'u';
    case DtypeRule::exponent: return (k == 'b' || k == 'i' || k == 'u') && d != uint64;
    case DtypeRule::integer: return k == 'i' || k == 'u';
    case DtypeRule::any:
    case DtypeRule::number:
    case DtypeRule::doubles:
    case DtypeRule::analytic:
    case DtypeRule::predicate:
    case DtypeRule::division:
    case DtypeRule::magnitude:
    case DtypeRule::equality:
    case DtypeRule::where: return true;
    default: return k != 'c';
  }
}

Dtype float_of(Dtype d) {
  if (dtype_kind(d) == 'f' || dtype_kind(d) == 'c') return d;
  return itemsize(d) == 1 ? float16 : itemsize(d) == 2 ? float32 : float64;
}

Dtype result_dtype(DtypeRule rule, Dtype d) {
  bool integral = dtype_kind(d) != 'f' && dtype_kind(d) != 'c';
  switch (rule) {
    case DtypeRule::number:
    case DtypeRule::real:
    case DtypeRule::shift: return d == bool_ ? int8 : d;
    case DtypeRule::doubles: return dtype_kind(d) == 'c' ? complex128 : float64;
    case DtypeRule::analytic:
    case DtypeRule::exponent:
    case DtypeRule::floating: return float_of(d);
    case DtypeRule::bit_count: return uint8;
    case DtypeRule::division: return integral ? float64 : d;
    case DtypeRule::magnitude: return d == complex64 ? float32 : d == complex128 ? float64 : d;
    case DtypeRule::equality:
    case DtypeRule::comparison:
    case DtypeRule::real_predicate:
    case DtypeRule::predicate: return bool_;
    default: return d;
  }
}

// --- operands ---
enum class Layout { contiguous, transposed, strided, broadcast, zero_d, empty, odd_length };
constexpr Layout kLayouts[] = {Layout::contiguous, Layout::transposed, Layout::strided,
                               Layout::broadcast,  Layout::zero_d,     Layout::empty,
                               Layout::odd_length};

Shape operand_shape(Layout layout, int which) {
  if (layout == Layout::zero_d) return {};
  if (layout == Layout::empty) return {0, 3};
  if (layout == Layout::odd_length) return {1031};
  if (layout != Layout::broadcast || which == 0) return {5, 7};
  return which == 1 ? Shape{7} : Shape{5, 1};
}

std::vector<double> draw(const OpRow& row, Dtype dtype, std::int64_t n, int which) {
  std::mt19937 engine(static_cast<unsigned>(17 * which + static_cast<int>(dtype)));
  char kind = dtype_kind(dtype);
  double low = row.low, high = row.high;
  if (kind == 'u') low = std::max(low, 0.0);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(distribution(engine));
  if (kind == 'b') {
    for (double& v : values) v = v > (low + high) / 2;
  } else if (kind == 'i' || kind == 'u') {
    for (double& v : values) v = std::ceil(v);
  } else if (kind == 'f' && row.specials) {
    // Each operand puts them elsewhere, so that they meet one another and ordinary numbers.
    const double inf = std::numeric_limits<double>::infinity();
    const double specials[] = {std::nan(""), inf, -inf, 0.0, -0.0, 1.0, -0.5};
    for (std::int64_t i = 0; i < n / 4; ++i) {
      values[static_cast<std::size_t>(i * 4 % n)] = specials[(i * (which + 1) + which) % 7];
    }
  }
  return values;
}

// The values as an array of `dtype` that lies in memory as `layout` says.
Array lay_out(const std::vector<double>& values, Dtype dtype, const Shape& shape, Layout layout,
              Device device) {
  Array flat = xp::array(values, device).astype(dtype);
  if (dtype_kind(dtype) == 'c') {
    // Imaginary parts from the other end of the list.
    Array turned = Array(flat[Slice(none, none, -1)]).copy();
    flat += turned * std::complex<float>(0, 1);
  }
  if (layout == Layout::transposed && shape.ndim() == 2) {
    return flat.reshape({shape[1], shape[0]}).T();
  }
  if (layout == Layout::strided) {
    Array wide = xp::zeros({shape[0], 2 * shape[1]}, dtype, device);
    Array view = wide[{Slice(none, none, -1), Slice(none, none, -2)}];
    view.assign(flat.reshape(shape));
    return view;
  }
  return flat.reshape(shape);
}

template <class T> std::vector<T> broadcast_values(const Array& a, const Shape& shape) {
  return a.broadcast_to(shape).to_vector<T>();
}

// The row's formula over the operands' values, as an array of `dtype` on the CPU.
template <class T, class F>
Array apply(const F& formula, const std::vector<Array>& operands, const Shape& shape, Dtype dtype) {
  std::vector<std::vector<T>> columns;
  for (const Array& a : operands) columns.push_back(broadcast_values<T>(a, shape));
  std::vector<T> results;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.total()); ++i) {
    T x[3] = {};
    for (std::size_t k = 0; k < columns.size(); ++k) x[k] = columns[k][i];
    results.push_back(formula(x));
  }
  return xp::array(results, cpu()).astype(dtype).reshape(shape);
}

Array reference(const OpRow& row, const std::vector<Array>& operands, const Shape& shape,
                Dtype input, Dtype output) {
  char kind = dtype_kind(input);
  DeviceScope on_host(cpu());
  if (kind == 'c') return apply<Complex>(row.complex, operands, shape, output);
  if (kind == 'f' || !row.integer) return apply<double>(row.real, operands, shape, output);
  if (row.ufunc == ufunc::invert && kind == 'b') return xp::logical_not(operands[0].to(cpu()));
  return apply<I>(row.integer, operands, shape, output);
}

bool has_formula(const OpRow& row, Dtype d) {
  if (dtype_kind(d) == 'c') return row.complex != nullptr;
  return dtype_kind(d) == 'f' ? row.real != nullptr : row.real != nullptr || row.integer != nullptr;
}

class OpTable : public ::testing::TestWithParam<int> {};

void check_layout(const OpRow& row, const UfuncInfo& info, Dtype dtype, Layout layout,
                  Device device) {
  std::vector<Array> operands;
  Shape shape = operand_shape(layout, 0);
  for (int k = 0; k < info.inputs; ++k) {
    Shape s = operand_shape(layout, k);
    Dtype d = info.rule == DtypeRule::where && k == 0 ? bool_ : dtype;
    operands.push_back(lay_out(draw(row, d, s.total(), k), d, s, layout, device));
  }
  Array got;
  if (info.inputs == 1) got = xp::elementwise(row.ufunc, {operands[0]});
  if (info.inputs == 2) got = xp::elementwise(row.ufunc, {operands[0], operands[1]});
  if (info.inputs == 3) got = xp::elementwise(row.ufunc, {operands[0], operands[1], operands[2]});
  Dtype output = result_dtype(info.rule, dtype);
  EXPECT_EQ(got.device(), device);
  Array want = reference(row, operands, shape, dtype, output);
  double rtol = tolerance(output);
  // Results that are small beside what they are made of, and the subnormals of 16 bits.
  Closeness c{rtol,
              dtype_kind(dtype) == 'c' ? rtol * 20
              : itemsize(output) == 2  ? 1e-7
                                       : 1e-300,
              !row.any_zero && output != bool_};
  EXPECT_TRUE(matches(got.to(cpu()), want, c))
      << info.name << " over " << dtype_name(dtype) << ", layout " << static_cast<int>(layout);
}

TEST_P(OpTable, AgreesWithTheFormula) {
  const OpRow& row = op_table()[static_cast<std::size_t>(GetParam())];
  const UfuncInfo& info = ufunc_info(row.ufunc);
  int checked = 0;
  for (int d = 0; d < kNumDtypes; ++d) {
    Dtype dtype = static_cast<Dtype>(d);
    if (!takes(info.rule, dtype)) {
      Array a = xp::ones({2}, dtype);
      EXPECT_THROW(info.inputs == 1   ? xp::elementwise(row.ufunc, {a})
                   : info.inputs == 2 ? xp::elementwise(row.ufunc, {a, a})
                                      : xp::elementwise(row.ufunc, {a, a, a}),
                   DtypeError)
          << info.name << " over " << dtype_name(dtype);
      continue;
    }
    ASSERT_TRUE(has_formula(row, dtype)) << info.name << " over " << dtype_name(dtype);
    for (Layout layout : kLayouts) {
      for (Device device : test_devices()) check_layout(row, info, dtype, layout, device);
    }
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

std::string row_name(const ::testing::TestParamInfo<int>& info) {
  return ufunc_info(op_table()[static_cast<std::size_t>(info.param)].ufunc).name;
}

INSTANTIATE_TEST_SUITE_P(Rows, OpTable, ::testing::Range(0, static_cast<int>(op_table().size())),
                         row_name);

TEST(OpTableItself, HasEveryRowOfOpsDef) {
  std::map<Ufunc, int, decltype([](Ufunc a, Ufunc b) { return a.number() < b.number(); })> count;
  for (const OpRow& row : op_table()) ++count[row.ufunc];
  for (Ufunc ufunc : all_ufuncs()) {
    EXPECT_EQ(count[ufunc], 1) << ufunc_info(ufunc).name << " has no row in the test's table";
  }
}

}  // namespace
}  // namespace testing
}  // namespace rensa
