// One complex transform on the CPU: taken apart into short ones that go side by side, or, of a
// length with a large prime factor, in which the passes are quadratic, by Bluestein's convolution.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/fft/cpu_kernels.h"

namespace rensa::host::fft {

inline constexpr std::int64_t kGrain = 1 << 12;   // values of one transform worth a task
inline constexpr std::int64_t kLeastLength = 64;  // worth taking apart

template <class R> using Complex = std::complex<R>;

inline std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

/// Whether a plan can be made.
inline bool is_smooth(std::int64_t n) { return largest_prime_factor(n) < kMaxFftRadix; }

/// The length of factors 2, 3 and 5 from `n` on whose transform takes least: values times passes
/// over them, of which one takes three twos, one three or one five.
inline std::int64_t smooth_length(std::int64_t n) {
  std::int64_t best = 0, least = 0;
  for (std::int64_t fives = 1, odd_passes = 0; fives < 2 * n; fives *= 5, ++odd_passes) {
    for (std::int64_t odd = fives, passes = odd_passes; odd < 2 * n; odd *= 3, ++passes) {
      std::int64_t length = odd, twos = 0;
      for (; length < n; length *= 2) ++twos;
      std::int64_t cost = length * (passes + (twos + 2) / 3);
      if (best == 0 || cost < least) best = length, least = cost;
    }
  }
  return best;
}

/// The divisor of n nearest below its square root.
inline std::int64_t balanced_divisor(std::int64_t n) {
  auto divisor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % divisor != 0) --divisor;
  return divisor;
}

/// This thread's two blocks of `length` values for every lane.
template <class R> struct Blocks {
  explicit Blocks(std::int64_t length) {
    auto size = static_cast<std::size_t>(length * 2 * fft_kernels<R>().lanes);
    constexpr std::size_t kLine = 64 / sizeof(R);
    thread_local std::vector<R> memory;
    if (memory.size() < 2 * size + kLine) memory.resize(2 * size + kLine);
    auto past = reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(R) % kLine;
    first = memory.data() + (kLine - past) % kLine;
    second = first + size;
  }
  R *first, *second;
};

/// The forward transforms of `block`. Returns the block that holds them, `block` or `other`; the
/// other one is `*rest`.
template <class R> R* run_plan(const FftPlan<R>& plan, R* block, R* other, R** rest) {
  R* result = fft_kernels<R>().run(plan.passes.data(), plan.passes.size(), plan.factors.data(),
                                   block, other);
  *rest = result == block ? other : block;
  return result;
}

/// `used` lanes of complex values from `data` on, `apart` values from each other, their values
/// `step` from each other.
template <class R>
FftLanes lanes_of(const Complex<R>* data, std::int64_t used, std::int64_t apart,
                  std::int64_t step) {
  FftLanes lanes;
  lanes.used = static_cast<int>(used);
  for (int l = 0; l < lanes.used; ++l) {
    lanes.data[l] = reinterpret_cast<char*>(const_cast<Complex<R>*>(data + l * apart));
  }
  lanes.step = step * static_cast<std::int64_t>(sizeof(Complex<R>));
  lanes.part = sizeof(R);
  return lanes;
}

/// One transform by all threads: n = rows * columns, transforms of the columns, a turn of every
/// value, transforms of the rows. Both parts go over neighbours side by side. With one row it is
/// one transform, in a lane alone.
template <class R> class SplitTransform {
 public:
  SplitTransform(std::int64_t n, std::int64_t rows, bool inverse)
      : rows_(rows),
        columns_(n / rows),
        inverse_(inverse),
        of_columns_(rows),
        of_rows_(n / rows),
        turns_(n) {
    if (rows_ > 1) middle_.resize(static_cast<std::size_t>(n));
  }

  void run(const Complex<R>* in, Complex<R>* out, R scale) {
    const FftKernels<R>& kernels = fft_kernels<R>();
    if (rows_ > 1) {
      parallel_for(columns_, grain(rows_), [&](std::int64_t begin, std::int64_t end) {
        Blocks<R> blocks(rows_);
        for (; begin < end; begin += kernels.lanes) {
          std::int64_t used = std::min<std::int64_t>(kernels.lanes, end - begin);
          R* rest;
          FftLanes from = lanes_of(in + begin, used, 1, columns_);
          kernels.gather(from, rows_, rows_, inverse_, blocks.first, blocks.second);
          R* result = run_plan(of_columns_, blocks.first, blocks.second, &rest);
          kernels.turn(turns_, begin, rows_, result);
          kernels.scatter(result, rows_, false, 1,
                          lanes_of(middle_.data() + begin, used, 1, columns_), rest);
        }
      });
    }
    const Complex<R>* values = rows_ > 1 ? middle_.data() : in;
    parallel_for(rows_, grain(columns_), [&](std::int64_t begin, std::int64_t end) {
      Blocks<R> blocks(columns_);
      for (; begin < end; begin += kernels.lanes) {
        std::int64_t used = std::min<std::int64_t>(kernels.lanes, end - begin);
        R* rest;
        FftLanes from = lanes_of(values + begin * columns_, used, columns_, 1);
        kernels.gather(from, columns_, columns_, rows_ == 1 && inverse_, blocks.first,
                       blocks.second);
        R* result = run_plan(of_rows_, blocks.first, blocks.second, &rest);
        kernels.scatter(result, columns_, inverse_, scale, lanes_of(out + begin, used, 1, rows_),
                        rest);
      }
    });
  }

 private:
  // How many transforms of `length` values are worth a task: whole vectors of them.
  static std::int64_t grain(std::int64_t length) {
    std::int64_t lanes = fft_kernels<R>().lanes;
    return std::max<std::int64_t>(1, kGrain / (length * lanes)) * lanes;
  }

  std::int64_t rows_, columns_;
  bool inverse_;
  FftPlan<R> of_columns_, of_rows_;
  Turns turns_;
  std::vector<Complex<R>> middle_;
};

/// Of factors below kMaxFftRadix.
template <class R>
std::unique_ptr<SplitTransform<R>> split_transform(std::int64_t n, bool inverse) {
  std::int64_t rows = n >= kLeastLength ? balanced_divisor(n) : 1;
  return std::make_unique<SplitTransform<R>>(n, rows < 4 ? 1 : rows, inverse);
}

/// A transform of any length as a convolution with exp(i pi k^2 / n): what it multiplies by.
template <class R> struct Chirp {
  Chirp(std::int64_t n, bool inverse) : factors(static_cast<std::size_t>(n)) {
    Turns unit(2 * n);
    std::int64_t turns = 0;  // k^2 modulo 2 n
    for (std::int64_t k = 0; k < n; ++k) {
      FftFactor<double> value = unit(turns);
      factors[static_cast<std::size_t>(k)] = {static_cast<R>(value.re),
                                              static_cast<R>(inverse ? -value.im : value.im)};
      turns = (turns + 2 * k + 1) % (2 * n);
    }
    // The transform of the convolution's other side, in double whatever R is.
    auto length = static_cast<std::size_t>(smooth_length(2 * n - 1));
    std::vector<Complex<double>> other(length), transformed(length);
    turns = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      FftFactor<double> value = unit(turns);
      Complex<double> mirrored = {value.re, inverse ? value.im : -value.im};
      other[static_cast<std::size_t>(k)] = mirrored;
      if (k > 0) other[length - static_cast<std::size_t>(k)] = mirrored;
      turns = (turns + 2 * k + 1) % (2 * n);
    }
    split_transform<double>(static_cast<std::int64_t>(length), false)
        ->run(other.data(), transformed.data(), 1 / static_cast<double>(length));
    for (const Complex<double>& value : transformed) {
      spectrum.push_back({static_cast<R>(value.real()), static_cast<R>(value.imag())});
    }
  }
  std::vector<FftFactor<R>> factors, spectrum;
};

/// out[k] = in[k] * factors[k]
template <class R>
void multiply(const Complex<R>* in, const std::vector<FftFactor<R>>& factors, Complex<R>* out) {
  for (std::size_t k = 0; k < factors.size(); ++k) {
    R re = in[k].real(), im = in[k].imag();
    const FftFactor<R>& f = factors[k];
    out[k] = {re * f.re - im * f.im, re * f.im + im * f.re};
  }
}

template <class R> class Bluestein {
 public:
  Bluestein(std::int64_t n, bool inverse)
      : chirp_(n, inverse),
        padded_(chirp_.spectrum.size()),
        product_(padded_.size()),
        forward_(split_transform<R>(static_cast<std::int64_t>(padded_.size()), false)),
        backward_(split_transform<R>(static_cast<std::int64_t>(padded_.size()), true)) {}

  void run(const Complex<R>* in, Complex<R>* out, R scale) {
    multiply(in, chirp_.factors, padded_.data());
    std::fill(padded_.begin() + static_cast<std::ptrdiff_t>(chirp_.factors.size()), padded_.end(),
              Complex<R>(0));
    forward_->run(padded_.data(), product_.data(), 1);
    multiply(product_.data(), chirp_.spectrum, product_.data());
    backward_->run(product_.data(), padded_.data(), scale);
    multiply(padded_.data(), chirp_.factors, out);
  }

 private:
  Chirp<R> chirp_;
  std::vector<Complex<R>> padded_, product_;
  std::unique_ptr<SplitTransform<R>> forward_, backward_;
};

/// A complex transform from contiguous values to others. For one thread at a time.
template <class R> class ComplexTransform {
 public:
  ComplexTransform(std::int64_t n, bool inverse) {
    if (is_smooth(n)) smooth_ = split_transform<R>(n, inverse);
    else rough_ = std::make_unique<Bluestein<R>>(n, inverse);
  }
  void run(const Complex<R>* in, Complex<R>* out, R scale) {
    if (smooth_) smooth_->run(in, out, scale);
    else rough_->run(in, out, scale);
  }

 private:
  std::unique_ptr<SplitTransform<R>> smooth_;
  std::unique_ptr<Bluestein<R>> rough_;
};

}  // namespace rensa::host::fft
