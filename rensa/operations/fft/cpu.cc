// Fourier transforms on the CPU: as many rows side by side as a vector has lanes, or, of few rows,
// each by itself, taken apart into short transforms that go side by side. A length with a large
// prime factor, in which the passes are quadratic, goes through Bluestein's convolution.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/fft/cpu_kernels.h"
#include "rensa/operations/fft/fft.h"

namespace rensa::operations {

namespace {

using host::fft_kernels;
using host::FftFactor;
using host::FftKernels;
using host::FftLanes;
using host::FftPlan;
using host::Turns;

constexpr std::int64_t kGrain = 1 << 14;       // values that are worth a task
constexpr std::int64_t kSplitGrain = 1 << 12;  // the same of one transform that is taken apart
constexpr std::int64_t kLongLength = 1 << 15;  // worth more than one thread
constexpr std::int64_t kSideBySide = 1 << 12;  // the longest rows whose blocks fit the cache
constexpr std::int64_t kLeastLength = 64;      // worth taking apart
constexpr std::int64_t kKeptLength = 1 << 20;  // plans up to here stay with their thread

template <class R> using Complex = std::complex<R>;

std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

// Whether a plan can be made.
bool is_smooth(std::int64_t n) { return largest_prime_factor(n) < host::kMaxFftRadix; }

// The length of factors 2, 3 and 5 from `n` on whose transform takes least: values times passes
// over them, of which one takes three twos, one three or one five.
std::int64_t smooth_length(std::int64_t n) {
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

// The divisor of n nearest below its square root.
std::int64_t balanced_divisor(std::int64_t n) {
  auto divisor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % divisor != 0) --divisor;
  return divisor;
}

// This thread's two blocks of `length` values for every lane.
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

// The forward transforms of `block`. Returns the block that holds them, `block` or `other`; the
// other one is `*rest`.
template <class R> R* run_plan(const FftPlan<R>& plan, R* block, R* other, R** rest) {
  R* result = fft_kernels<R>().run(plan.passes.data(), plan.passes.size(), plan.factors.data(),
                                   block, other);
  *rest = result == block ? other : block;
  return result;
}

// `used` lanes of complex values from `data` on, `apart` values from each other, their values
// `step` from each other.
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

// One transform by all threads: n = rows * columns, transforms of the columns, a turn of every
// value, transforms of the rows. Both parts go over neighbours side by side. With one row it is one
// transform, in a lane alone.
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
    return std::max<std::int64_t>(1, kSplitGrain / (length * lanes)) * lanes;
  }

  std::int64_t rows_, columns_;
  bool inverse_;
  FftPlan<R> of_columns_, of_rows_;
  Turns turns_;
  std::vector<Complex<R>> middle_;
};

// Of factors below kMaxFftRadix.
template <class R>
std::unique_ptr<SplitTransform<R>> split_transform(std::int64_t n, bool inverse) {
  std::int64_t rows = n >= kLeastLength ? balanced_divisor(n) : 1;
  return std::make_unique<SplitTransform<R>>(n, rows < 4 ? 1 : rows, inverse);
}

// A transform of any length as a convolution with exp(i pi k^2 / n): what it multiplies by.
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

// out[k] = in[k] * factors[k]
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

// A complex transform from contiguous values to others. For one thread at a time.
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

// What distinguishes transforms of one precision.
struct PlanKey {
  FftKind kind;
  bool inverse;
  std::int64_t length;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;

  // Real signals of even length go as complex ones of half of it, the even values with the odd.
  bool in_pairs() const { return kind != FftKind::complex && length % 2 == 0; }
  std::int64_t complex_length() const { return in_pairs() ? length / 2 : length; }
};

// What takes the transform of pairs to that of what they are, for the first half of it.
template <class R> std::vector<FftFactor<R>> pair_turns(const PlanKey& key) {
  std::vector<FftFactor<R>> turns;
  if (!key.in_pairs()) return turns;
  Turns unit(key.length);
  for (std::int64_t k = 0; 4 * k <= key.length; ++k) {
    FftFactor<double> value = unit(k);
    turns.push_back({static_cast<R>(value.re), static_cast<R>(value.im)});
  }
  return turns;
}

// A view's rows: its axes but the last one.
struct Rows {
  explicit Rows(const ArrayView& view)
      : begins(view), stride(view.strides[view.ndim() - 1]), extent(view.shape[view.ndim() - 1]) {
    begins.shape.erase(view.ndim() - 1);
    begins.strides.erase(view.ndim() - 1);
  }
  char* operator[](std::int64_t i) const { return begins.data + host::offset_of(begins, i); }

  ArrayView begins;
  std::int64_t stride, extent;
};

// One row after the other.
template <class R> class RowTransform {
 public:
  explicit RowTransform(const PlanKey& key)
      : key_(key),
        count_(key.complex_length()),
        transform_(count_, key.kind == FftKind::complex ? key.inverse
                                                        : key.kind == FftKind::complex_to_real),
        turns_(pair_turns<R>(key)) {}

  const PlanKey& key() const { return key_; }

  void run(const Rows& from, const Rows& to, std::int64_t begin, std::int64_t end, R scale) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (key_.kind == FftKind::complex_to_real) to_real(from[i], from, to[i], to, scale);
      else to_complex(from[i], from, to[i], to, scale);
    }
  }

 private:
  static constexpr std::int64_t kReal = sizeof(R), kComplex = 2 * sizeof(R);

  void to_complex(const char* in, const Rows& from, char* out, const Rows& to, R scale) {
    bool real = key_.kind == FftKind::real_to_complex;
    std::int64_t n = key_.length, have = std::min(from.extent, n);
    std::int64_t results = real ? n / 2 + 1 : n;
    // Where the rows will do as they are, they are not copied.
    bool ready =
        have == n && from.stride == (real ? kReal : kComplex) && (!real || key_.in_pairs());
    bool direct = to.stride == kComplex && results >= count_;
    const auto* source = reinterpret_cast<const Complex<R>*>(in);
    auto* result = direct ? reinterpret_cast<Complex<R>*>(out) : room(out_);
    if (!ready) {
      if (real) load_real(in, from.stride, have);
      else load(in, from.stride, have, n);
      source = in_.data();
    }
    transform_.run(source, result, scale);
    if (real && key_.in_pairs()) split(result);
    if (!direct) store(result, out, to.stride, results);
  }

  void to_real(const char* in, const Rows& from, char* out, const Rows& to, R scale) {
    std::int64_t n = key_.length;
    load(in, from.stride, std::min(from.extent, n / 2 + 1), n / 2 + 1);
    in_[0].imag(0);
    if (key_.in_pairs()) {
      in_[static_cast<std::size_t>(count_)].imag(0);
      join();
      bool direct = to.stride == kReal;
      auto* result = direct ? reinterpret_cast<Complex<R>*>(out) : room(out_);
      transform_.run(in_.data(), result, scale);
      if (!direct) store(reinterpret_cast<const R*>(result), out, to.stride, n);
      return;
    }
    for (auto k = static_cast<std::size_t>(n / 2); k > 0; --k) {
      in_[static_cast<std::size_t>(n) - k] = std::conj(in_[k]);
    }
    const Complex<R>* result = room(out_);
    transform_.run(in_.data(), out_.data(), scale);
    for (std::int64_t k = 0; k < n; ++k, out += to.stride) {
      *reinterpret_cast<R*>(out) = result[k].real();
    }
  }

  // The buffer, made large enough; contiguous rows need none.
  Complex<R>* room(std::vector<Complex<R>>& buffer) const {
    buffer.resize(static_cast<std::size_t>(count_) + 1);
    return buffer.data();
  }

  void load(const char* in, std::int64_t stride, std::int64_t count, std::int64_t length) {
    room(in_);
    for (std::int64_t k = 0; k < count; ++k, in += stride) {
      in_[static_cast<std::size_t>(k)] = *reinterpret_cast<const Complex<R>*>(in);
    }
    std::fill(in_.begin() + count, in_.begin() + length, Complex<R>(0));
  }

  void load_real(const char* in, std::int64_t stride, std::int64_t count) {
    room(in_);
    std::fill(in_.begin(), in_.end(), Complex<R>(0));
    R* values = reinterpret_cast<R*>(in_.data());
    std::int64_t step = key_.in_pairs() ? 1 : 2;
    for (std::int64_t k = 0; k < count; ++k, in += stride) {
      values[k * step] = *reinterpret_cast<const R*>(in);
    }
  }

  template <class T>
  static void store(const T* values, char* out, std::int64_t stride, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k, out += stride) *reinterpret_cast<T*>(out) = values[k];
  }

  // The transform z of pairs becomes the first half of the transform of what they are.
  void split(Complex<R>* z) const {
    z[count_] = z[0];
    for (std::int64_t k = 0; 2 * k <= count_; ++k) {
      Complex<R> a = z[k], mirror = std::conj(z[count_ - k]);
      Complex<R> even = (a + mirror) * R(0.5), odd = (a - mirror) * R(0.5);
      odd = Complex<R>(odd.imag(), -odd.real()) * turn(k);
      z[k] = even + odd;
      z[count_ - k] = std::conj(even - odd);
    }
  }

  // in_: the other way round.
  void join() {
    for (std::int64_t k = 0; 2 * k <= count_; ++k) {
      Complex<R>&x = in_[static_cast<std::size_t>(k)],
      &y = in_[static_cast<std::size_t>(count_ - k)];
      Complex<R> mirror = std::conj(y);
      Complex<R> even = x + mirror, odd = (x - mirror) * std::conj(turn(k));
      odd = Complex<R>(-odd.imag(), odd.real());
      x = even + odd;
      y = std::conj(even - odd);
    }
  }

  Complex<R> turn(std::int64_t k) const {
    const FftFactor<R>& value = turns_[static_cast<std::size_t>(k)];
    return {value.re, value.im};
  }

  PlanKey key_;
  std::int64_t count_;
  ComplexTransform<R> transform_;
  std::vector<Complex<R>> in_, out_;
  std::vector<FftFactor<R>> turns_;
};

// The forward transforms of a block, of any length: the passes of a plan or, where a prime factor
// is too large for that, Bluestein's convolution.
template <class R> class BlockTransform {
 public:
  explicit BlockTransform(std::int64_t n) : length_(n), plan_(plan_length(n)) {
    if (!is_smooth(n)) chirp_ = std::make_unique<Chirp<R>>(n, false);
  }

  /// Of the plan that transforms `n` values.
  static std::int64_t plan_length(std::int64_t n) {
    return is_smooth(n) ? n : smooth_length(2 * n - 1);
  }
  std::int64_t length() const { return length_; }
  /// What the blocks have to hold.
  std::int64_t room() const { return std::max(length_ + 1, plan_.length); }

  /// As run_plan.
  R* run(const Blocks<R>& blocks, R** rest) const {
    if (!chirp_) return run_plan(plan_, blocks.first, blocks.second, rest);
    const FftKernels<R>& kernels = fft_kernels<R>();
    kernels.multiply(chirp_->factors.data(), length_, false, false, blocks.first);
    std::int64_t values = 2 * kernels.lanes;
    std::fill(blocks.first + length_ * values, blocks.first + plan_.length * values, R(0));
    R* result = run_plan(plan_, blocks.first, blocks.second, rest);
    // With the parts exchanged it is the transform back.
    kernels.multiply(chirp_->spectrum.data(), plan_.length, false, true, result);
    result = run_plan(plan_, result, *rest, rest);
    kernels.multiply(chirp_->factors.data(), length_, true, false, result);
    return result;
  }

 private:
  std::int64_t length_;
  FftPlan<R> plan_;
  std::unique_ptr<Chirp<R>> chirp_;
};

// A row in each lane.
template <class R> class LaneTransform {
 public:
  explicit LaneTransform(const PlanKey& key)
      : key_(key), transform_(key.complex_length()), turns_(pair_turns<R>(key)) {}

  const PlanKey& key() const { return key_; }

  void run(const Rows& from, const Rows& to, std::int64_t begin, std::int64_t end, R scale) {
    for (std::int64_t i = begin; i < end; i += kernels_.lanes) {
      FftLanes in, out;
      in.used = out.used = static_cast<int>(std::min<std::int64_t>(kernels_.lanes, end - i));
      for (int l = 0; l < in.used; ++l) {
        in.data[l] = from[i + l];
        out.data[l] = to[i + l];
      }
      Blocks<R> blocks(transform_.room());
      if (key_.kind == FftKind::complex) complex(in, from, out, to, scale, blocks);
      else if (key_.kind == FftKind::real_to_complex) to_complex(in, from, out, to, scale, blocks);
      else to_real(in, from, out, to, scale, blocks);
    }
  }

 private:
  static void set_complex(FftLanes& lanes, const Rows& rows) {
    lanes.step = rows.stride;
    lanes.part = sizeof(R);
  }
  void set_real(FftLanes& lanes, const Rows& rows) const {
    lanes.step = key_.in_pairs() ? 2 * rows.stride : rows.stride;
    lanes.part = key_.in_pairs() ? rows.stride : FftLanes::kNone;
  }

  void complex(FftLanes& in, const Rows& from, FftLanes& out, const Rows& to, R scale,
               const Blocks<R>& blocks) const {
    set_complex(in, from);
    set_complex(out, to);
    std::int64_t n = key_.length;
    kernels_.gather(in, std::min(from.extent, n), n, key_.inverse, blocks.first, blocks.second);
    R *rest, *result = transform_.run(blocks, &rest);
    kernels_.scatter(result, n, key_.inverse, scale, out, rest);
  }

  void to_complex(FftLanes& in, const Rows& from, FftLanes& out, const Rows& to, R scale,
                  const Blocks<R>& blocks) const {
    set_real(in, from);
    set_complex(out, to);
    std::int64_t n = key_.length, have = std::min(from.extent, n);
    std::int64_t whole = key_.in_pairs() ? have / 2 : have;
    kernels_.gather(in, whole, transform_.length(), false, blocks.first, blocks.second);
    if (key_.in_pairs() && have % 2 != 0) {  // half a pair
      for (int l = 0; l < in.used; ++l) {
        blocks.first[whole * 2 * kernels_.lanes + l] =
            *reinterpret_cast<const R*>(in.data[l] + (have - 1) * from.stride);
      }
    }
    R *rest, *result = transform_.run(blocks, &rest);
    if (key_.in_pairs()) kernels_.split(transform_.length(), turns_.data(), result);
    kernels_.scatter(result, n / 2 + 1, false, scale, out, rest);
  }

  void to_real(FftLanes& in, const Rows& from, FftLanes& out, const Rows& to, R scale,
               const Blocks<R>& blocks) const {
    set_complex(in, from);
    set_real(out, to);
    std::int64_t half = key_.length / 2, lanes = kernels_.lanes;
    R* block = blocks.first;
    kernels_.gather(in, std::min(from.extent, half + 1), half + 1, false, block, blocks.second);
    std::fill_n(block + lanes, lanes, R(0));  // the spectrum's ends are real
    if (key_.in_pairs()) {
      std::fill_n(block + half * 2 * lanes + lanes, lanes, R(0));
      kernels_.join(half, turns_.data(), block);
    } else {
      // The spectrum turned round: its forward transform has the real part that is wanted.
      for (std::int64_t k = 1; k <= half; ++k) {
        R *low = block + k * 2 * lanes, *high = block + (key_.length - k) * 2 * lanes;
        for (std::int64_t l = 0; l < lanes; ++l) {
          high[l] = low[l];
          high[lanes + l] = low[lanes + l];
          low[lanes + l] = -low[lanes + l];
        }
      }
    }
    R *rest, *result = transform_.run(blocks, &rest);
    kernels_.scatter(result, transform_.length(), key_.in_pairs(), scale, out, rest);
  }

  PlanKey key_;
  const FftKernels<R>& kernels_ = fft_kernels<R>();
  BlockTransform<R> transform_;
  std::vector<FftFactor<R>> turns_;
};

// Calls f with this thread's transform for `key`; the last one is kept unless it is long.
template <class Transform, class F> void with_transform(const PlanKey& key, F f) {
  if (key.length > kKeptLength) {
    Transform transform(key);
    f(transform);
    return;
  }
  thread_local std::unique_ptr<Transform> last;
  if (!last || !(last->key() == key)) last = std::make_unique<Transform>(key);
  f(*last);
}

template <class R> void transform_rows(const Fft& op) {
  Rows from(op.in.view), to(op.out.view);
  std::int64_t rows = to.begins.size(), lanes = fft_kernels<R>().lanes;
  PlanKey key{op.kind, op.inverse, op.length};
  std::int64_t n = key.complex_length();
  auto run = [&]<class Transform>(std::type_identity<Transform>, std::int64_t grain) {
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      with_transform<Transform>(key, [&](Transform& transform) {
        transform.run(from, to, begin, end, static_cast<R>(op.scale));
      });
    });
  };
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / op.length);
  bool side_by_side = BlockTransform<R>::plan_length(n) <= kSideBySide;
  if (side_by_side && (2 * rows >= lanes || n < kLeastLength)) {
    run(std::type_identity<LaneTransform<R>>{}, (grain + lanes - 1) / lanes * lanes);
  } else {
    // Of few long ones each is shared out.
    if (op.length >= kLongLength && rows < get_num_threads()) grain = rows;
    run(std::type_identity<RowTransform<R>>{}, grain);
  }
}

}  // namespace

void Fft::run_cpu() {
  if (out.view.size() == 0) return;
  bool wide = out.view.dtype == float64 || out.view.dtype == complex128;
  if (wide) transform_rows<double>(*this);
  else transform_rows<float>(*this);
}

}  // namespace rensa::operations
