// Fourier transforms on the CPU: KissFFT row by row, the rows shared out over the pool's threads.
// KissFFT takes a time quadratic in a prime factor; lengths with a large one go through Bluestein's
// convolution.
#include "rensa/device/fft_operations.h"

#if RENSA_FFT

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft.hh>
#include <memory>
#include <numbers>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"

namespace rensa {

namespace {

constexpr std::int64_t kLargePrime = 64;       // factors from here on are Bluestein's
constexpr std::int64_t kGrain = 1 << 14;       // values that are worth a task
constexpr std::int64_t kLongLength = 1 << 15;  // worth more than one thread
constexpr std::int64_t kLeastRows = 32;        // of such a length taken apart
constexpr std::int64_t kKeptLength = 1 << 18;  // plans up to here stay with their thread

template <class R> using Complex = std::complex<R>;

std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

// The shortest length of factors 2, 3 and 5 from `n` on.
std::int64_t smooth_length(std::int64_t n) {
  std::int64_t best = 1;
  while (best < n) best *= 2;
  for (std::int64_t fives = 1; fives < best; fives *= 5) {
    for (std::int64_t threes = fives; threes < best; threes *= 3) {
      std::int64_t length = threes;
      while (length < n) length *= 2;
      best = std::min(best, length);
    }
  }
  return best;
}

// exp(2 pi i turns / n) for an integer number of n-ths of a turn.
Complex<double> unit(std::int64_t turns, std::int64_t n) {
  double angle = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// A transform of any length as a convolution with exp(i pi k^2 / n), in double.
class Bluestein {
 public:
  Bluestein(std::int64_t n, bool inverse)
      : chirp_(static_cast<std::size_t>(n)),
        spectrum_(static_cast<std::size_t>(smooth_length(2 * n - 1))),
        padded_(spectrum_.size()),
        forward_(spectrum_.size(), false),
        backward_(spectrum_.size(), true) {
    std::int64_t turns = 0;  // k^2 modulo 2 n
    for (std::int64_t k = 0; k < n; ++k) {
      auto i = static_cast<std::size_t>(k);
      chirp_[i] = unit(inverse ? turns : -turns, 2 * n);
      padded_[i] = std::conj(chirp_[i]);
      if (i > 0) padded_[padded_.size() - i] = padded_[i];
      turns = (turns + 2 * k + 1) % (2 * n);
    }
    forward_.transform(padded_.data(), spectrum_.data());
    for (Complex<double>& value : spectrum_) value /= static_cast<double>(spectrum_.size());
    product_.resize(spectrum_.size());
  }

  template <class R> void run(const Complex<R>* in, Complex<R>* out) {
    std::fill(padded_.begin(), padded_.end(), 0.0);
    for (std::size_t k = 0; k < chirp_.size(); ++k) {
      padded_[k] = Complex<double>(in[k]) * chirp_[k];
    }
    forward_.transform(padded_.data(), product_.data());
    for (std::size_t k = 0; k < product_.size(); ++k) product_[k] *= spectrum_[k];
    backward_.transform(product_.data(), padded_.data());
    for (std::size_t k = 0; k < chirp_.size(); ++k) {
      out[k] = Complex<R>(padded_[k] * chirp_[k]);
    }
  }

 private:
  std::vector<Complex<double>> chirp_, spectrum_, padded_, product_;
  kissfft<double> forward_, backward_;
};

// The divisor of n nearest below its square root.
std::int64_t balanced_divisor(std::int64_t n) {
  auto divisor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % divisor != 0) --divisor;
  return divisor;
}

// A long transform by all threads: n = rows * columns, transforms of the columns, a turn of every
// value, transforms of the rows. Both parts go over kLanes neighbours at a time, whose values lie
// together in memory.
template <class R> class LongTransform {
 public:
  LongTransform(std::int64_t n, std::int64_t rows, bool inverse)
      : rows_(rows),
        columns_(n / rows),
        of_columns_(static_cast<std::size_t>(rows), inverse),
        of_rows_(static_cast<std::size_t>(n / rows), inverse) {
    for (std::int64_t i = 0; i < columns_; ++i) fine_.emplace_back(unit(inverse ? i : -i, n));
    for (std::int64_t i = 0; i < rows_; ++i) {
      coarse_.emplace_back(unit(inverse ? i * columns_ : -i * columns_, n));
    }
  }

  // `in` is lost.
  void run(Complex<R>* in, Complex<R>* out) const {
    parallel_for(columns_, kLanes, [&](std::int64_t begin, std::int64_t end) {
      transform_columns(in, begin, end - begin);
    });
    parallel_for(rows_, kLanes, [&](std::int64_t begin, std::int64_t end) {
      transform_rows(in, out, begin, end - begin);
    });
  }

 private:
  static constexpr std::int64_t kLanes = 8;

  // exp(2 pi i turns / n), the other way round for forward transforms.
  Complex<R> turn(std::int64_t turns) const {
    return coarse_[static_cast<std::size_t>(turns / columns_)] *
           fine_[static_cast<std::size_t>(turns % columns_)];
  }

  // In place: value k of column j becomes the column's transform, turned by j * k.
  void transform_columns(Complex<R>* values, std::int64_t column, std::int64_t lanes) const {
    kissfft<R> transform = of_columns_;  // it has scratch of its own
    std::vector<Complex<R>> in(static_cast<std::size_t>(lanes * rows_)), out(in.size());
    for (std::int64_t k = 0; k < rows_; ++k) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        in[static_cast<std::size_t>(j * rows_ + k)] = values[k * columns_ + column + j];
      }
    }
    for (std::int64_t j = 0; j < lanes; ++j) {
      transform.transform(in.data() + j * rows_, out.data() + j * rows_);
    }
    for (std::int64_t k = 0; k < rows_; ++k) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        values[k * columns_ + column + j] =
            out[static_cast<std::size_t>(j * rows_ + k)] * turn((column + j) * k);
      }
    }
  }

  // Value k of row i's transform is value i + rows * k of the whole.
  void transform_rows(const Complex<R>* values, Complex<R>* result, std::int64_t row,
                      std::int64_t lanes) const {
    kissfft<R> transform = of_rows_;
    std::vector<Complex<R>> out(static_cast<std::size_t>(lanes * columns_));
    for (std::int64_t i = 0; i < lanes; ++i) {
      transform.transform(values + (row + i) * columns_, out.data() + i * columns_);
    }
    for (std::int64_t k = 0; k < columns_; ++k) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        result[k * rows_ + row + i] = out[static_cast<std::size_t>(i * columns_ + k)];
      }
    }
  }

  std::int64_t rows_, columns_;
  kissfft<R> of_columns_, of_rows_;
  std::vector<Complex<R>> fine_, coarse_;
};

// A complex transform between contiguous values. One thread at a time.
template <class R> class ComplexTransform {
 public:
  ComplexTransform(std::int64_t n, bool inverse) {
    if (largest_prime_factor(n) >= kLargePrime) {
      rough_ = std::make_unique<Bluestein>(n, inverse);
      return;
    }
    std::int64_t rows = n >= kLongLength ? balanced_divisor(n) : 1;
    if (rows >= kLeastRows) {
      long_ = std::make_unique<LongTransform<R>>(n, rows, inverse);
    } else {
      smooth_ = std::make_unique<kissfft<R>>(static_cast<std::size_t>(n), inverse);
    }
  }
  // `in` may be lost.
  void run(Complex<R>* in, Complex<R>* out) {
    if (long_) long_->run(in, out);
    else if (smooth_) smooth_->transform(in, out);
    else rough_->run(in, out);
  }

 private:
  std::unique_ptr<kissfft<R>> smooth_;
  std::unique_ptr<LongTransform<R>> long_;
  std::unique_ptr<Bluestein> rough_;
};

// What distinguishes transforms of one precision.
struct PlanKey {
  FftKind kind;
  bool inverse;
  std::int64_t length;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// A row's transform with its buffers: real signals of even length as complex ones of half of it.
template <class R> class RowTransform {
 public:
  explicit RowTransform(const PlanKey& key)
      : key_(key),
        half_(key.kind != FftKind::complex && key.length % 2 == 0),
        complex_length_(half_ ? key.length / 2 : key.length),
        transform_(complex_length_, key.kind == FftKind::complex
                                        ? key.inverse
                                        : key.kind == FftKind::complex_to_real),
        in_(static_cast<std::size_t>(complex_length_) + 1),
        out_(static_cast<std::size_t>(complex_length_) + 1) {
    if (!half_) return;
    for (std::int64_t k = 0; k <= complex_length_; ++k) {
      twiddles_.push_back(
          Complex<R>(unit(key.kind == FftKind::complex_to_real ? k : -k, key.length)));
    }
  }

  const PlanKey& key() const { return key_; }

  void run(const char* in, std::int64_t in_stride, std::int64_t in_count, char* out,
           std::int64_t out_stride, R scale) {
    std::int64_t n = key_.length;
    if (key_.kind == FftKind::real_to_complex) {
      load_real(in, in_stride, std::min(in_count, n));
      transform_.run(in_.data(), out_.data());
      if (half_) split_halves();
      store(out_.data(), out, out_stride, n / 2 + 1, scale);
      return;
    }
    if (key_.kind == FftKind::complex) {
      load(in, in_stride, std::min(in_count, n), n);
      transform_.run(in_.data(), out_.data());
      store(out_.data(), out, out_stride, n, scale);
      return;
    }
    load(in, in_stride, std::min(in_count, n / 2 + 1), n / 2 + 1);
    in_[0].imag(0);
    if (half_) {
      in_[static_cast<std::size_t>(n / 2)].imag(0);
      join_halves();
      transform_.run(in_.data(), out_.data());
      store(reinterpret_cast<const R*>(out_.data()), out, out_stride, n, scale);
    } else {
      for (auto k = static_cast<std::size_t>(n / 2); k > 0; --k) {
        in_[static_cast<std::size_t>(n) - k] = std::conj(in_[k]);
      }
      transform_.run(in_.data(), out_.data());
      for (std::int64_t k = 0; k < n; ++k, out += out_stride) {
        *reinterpret_cast<R*>(out) = out_[static_cast<std::size_t>(k)].real() * scale;
      }
    }
  }

 private:
  void load(const char* in, std::int64_t stride, std::int64_t count, std::int64_t length) {
    for (std::int64_t k = 0; k < count; ++k, in += stride) {
      in_[static_cast<std::size_t>(k)] = *reinterpret_cast<const Complex<R>*>(in);
    }
    std::fill(in_.begin() + count, in_.begin() + length, Complex<R>(0));
  }

  void load_real(const char* in, std::int64_t stride, std::int64_t count) {
    std::fill(in_.begin(), in_.end(), Complex<R>(0));
    R* values = reinterpret_cast<R*>(in_.data());
    std::int64_t step = half_ ? 1 : 2;
    for (std::int64_t k = 0; k < count; ++k, in += stride) {
      values[k * step] = *reinterpret_cast<const R*>(in);
    }
  }

  template <class T>
  static void store(const T* values, char* out, std::int64_t stride, std::int64_t count, R scale) {
    for (std::int64_t k = 0; k < count; ++k, out += stride) {
      *reinterpret_cast<T*>(out) = values[k] * scale;
    }
  }

  // out_: the transform z of pairs becomes the first half of the transform of what they are.
  void split_halves() {
    auto h = static_cast<std::size_t>(complex_length_);
    out_[h] = out_[0];
    for (std::size_t k = 0; 2 * k <= h; ++k) {
      Complex<R> z = out_[k], mirror = std::conj(out_[h - k]);
      Complex<R> even = (z + mirror) * R(0.5), odd = (z - mirror) * R(0.5);
      odd = Complex<R>(odd.imag(), -odd.real()) * twiddles_[k];
      out_[k] = even + odd;
      out_[h - k] = std::conj(even - odd);
    }
  }

  // in_: the other way round.
  void join_halves() {
    auto h = static_cast<std::size_t>(complex_length_);
    for (std::size_t k = 0; 2 * k <= h; ++k) {
      Complex<R> x = in_[k], mirror = std::conj(in_[h - k]);
      Complex<R> even = x + mirror, odd = (x - mirror) * twiddles_[k];
      odd = Complex<R>(-odd.imag(), odd.real());
      in_[k] = even + odd;
      in_[h - k] = std::conj(even - odd);
    }
  }

  PlanKey key_;
  bool half_;
  std::int64_t complex_length_;
  ComplexTransform<R> transform_;
  std::vector<Complex<R>> in_, out_, twiddles_;
};

// Calls f with this thread's transform for `key`; the last one is kept unless it is long.
template <class R, class F> void with_transform(const PlanKey& key, F f) {
  if (key.length > kKeptLength) {
    RowTransform<R> transform(key);
    f(transform);
    return;
  }
  thread_local std::unique_ptr<RowTransform<R>> last;
  if (!last || !(last->key() == key)) last = std::make_unique<RowTransform<R>>(key);
  f(*last);
}

// The view's axes but the last, as a view of where its rows begin.
ArrayView rows_of(ArrayView view) {
  view.shape.erase(view.ndim() - 1);
  view.strides.erase(view.strides.ndim() - 1);
  return view;
}

template <class R> void transform_rows(const Fft& op) {
  const ArrayView &in = op.in.view, &out = op.out.view;
  int last = out.ndim() - 1;
  ArrayView in_rows = rows_of(in), out_rows = rows_of(out);
  std::int64_t rows = out_rows.size();
  auto task = [&](std::int64_t begin, std::int64_t end) {
    with_transform<R>({op.kind, op.inverse, op.length}, [&](RowTransform<R>& transform) {
      for (std::int64_t i = begin; i < end; ++i) {
        transform.run(in.data + host::offset_of(in_rows, i), in.strides[last], in.shape[last],
                      out.data + host::offset_of(out_rows, i), out.strides[last],
                      static_cast<R>(op.scale));
      }
    });
  };
  // Of few long ones each is shared out.
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / op.length);
  if (op.length >= kLongLength && rows < num_threads()) grain = rows;
  parallel_for(rows, grain, task);
}

}  // namespace

void Fft::run_cpu() {
  if (out.view.size() == 0) return;
  bool wide = out.view.dtype == float64 || out.view.dtype == complex128;
  if (wide) transform_rows<double>(*this);
  else transform_rows<float>(*this);
}

}  // namespace rensa

#else

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

void Fft::run_cpu() {
  throw NotImplementedError(
      fmt::format("{}: this build of Rensa has no Fourier transforms for the CPU; build with "
                  "RENSA_FFT=ON (needs libkissfft-dev), or compute on a GPU",
                  name()));
}

}  // namespace rensa

#endif
