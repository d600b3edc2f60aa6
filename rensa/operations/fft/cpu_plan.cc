// The order and the constants of a Fourier transform's passes.
#include <cmath>
#include <numbers>
#include <utility>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/operations/fft/cpu_kernels.h"

namespace rensa::host {

namespace {

// exp(-2 pi i turns / n), its angle taken into the first eighth of a turn, where the parts are
// exact.
FftFactor<double> unit(std::int64_t turns, std::int64_t n) {
  if (2 * turns > n) {
    FftFactor<double> mirror = unit(n - turns, n);
    return {mirror.re, -mirror.im};
  }
  if (4 * turns > n) {
    FftFactor<double> mirror = unit(n - 2 * turns, 2 * n);
    return {-mirror.re, mirror.im};
  }
  if (8 * turns > n) {
    FftFactor<double> mirror = unit(n - 4 * turns, 4 * n);
    return {-mirror.im, -mirror.re};
  }
  double angle = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

// Eights first, then what is left of the twos, then odd primes.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> radices;
  for (; n % 8 == 0; n /= 8) radices.push_back(8);
  if (n % 4 == 0) radices.push_back(4), n /= 4;
  if (n % 2 == 0) radices.push_back(2), n /= 2;
  for (std::int64_t p = 3; n > 1; p += 2) {
    for (; n % p == 0; n /= p) radices.push_back(p);
  }
  return radices;
}

struct Tables {
  FftKernels<float> narrow;
  FftKernels<double> wide;
};

const Tables& tables() {
  static const Tables all = [] {
    Tables t;
    RENSA_IN_SET(best_instruction_set(), get_fft_kernels)(t.narrow, t.wide);
    return t;
  }();
  return all;
}

}  // namespace

Turns::Turns(std::int64_t n) : n_(n), bits_(0) {
  while ((std::int64_t{1} << 2 * bits_) < n) ++bits_;
  for (std::int64_t i = 0; i < std::int64_t{1} << bits_; ++i) fine_.push_back(unit(i, n));
  for (std::int64_t i = 0; i <= n; i += std::int64_t{1} << bits_) coarse_.push_back(unit(i, n));
}

FftFactor<double> Turns::operator()(std::int64_t turns) const {
  const FftFactor<double>& a = coarse_[static_cast<std::size_t>(turns >> bits_)];
  const FftFactor<double>& b =
      fine_[static_cast<std::size_t>(turns & ((std::int64_t{1} << bits_) - 1))];
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <class R> FftPlan<R>::FftPlan(std::int64_t n) : length(n) {
  auto add = [&](std::int64_t turns, std::int64_t of) {
    FftFactor<double> value = unit(turns, of);
    factors.push_back({static_cast<R>(value.re), static_cast<R>(value.im)});
  };
  std::int64_t before = 1;
  for (std::int64_t radix : radices_of(n)) {
    FftPass pass;
    pass.radix = radix;
    pass.before = before;
    pass.inner = n / (before * radix);
    pass.turns = static_cast<std::int64_t>(factors.size());
    for (std::int64_t i = 0; i < pass.inner; ++i) {
      for (std::int64_t j = 1; j < radix; ++j) add(i * j * before, n);
    }
    pass.roots = static_cast<std::int64_t>(factors.size());
    for (std::int64_t j = 0; j < radix && radix % 2 == 1; ++j) add(j, radix);
    passes.push_back(pass);
    before *= radix;
  }
}

template <> const FftKernels<float>& fft_kernels() { return tables().narrow; }
template <> const FftKernels<double>& fft_kernels() { return tables().wide; }

template struct FftPlan<float>;
template struct FftPlan<double>;

}  // namespace rensa::host
