// Fourier transforms on the CPU: as many rows side by side as a vector has lanes, or, of few rows,
// each by itself (cpu_transform.h).
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/fft/cpu_transform.h"
#include "rensa/operations/fft/fft.h"

namespace rensa::operations {

namespace {

using host::fft_kernels;
using host::FftFactor;
using host::FftKernels;
using host::FftLanes;
using host::FftPlan;
using host::Turns;
using host::fft::Blocks;
using host::fft::Chirp;
using host::fft::Complex;
using host::fft::ComplexTransform;
using host::fft::is_smooth;
using host::fft::kLeastLength;
using host::fft::run_plan;
using host::fft::smooth_length;

constexpr std::int64_t kGrain = 1 << 14;       // values that are worth a task
constexpr std::int64_t kLongLength = 1 << 15;  // worth more than one thread
constexpr std::int64_t kSideBySide = 1 << 12;  // the longest rows whose blocks fit the cache
constexpr std::int64_t kKeptLength = 1 << 20;  // plans up to here stay with their thread

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
