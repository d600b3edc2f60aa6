// The kernels of Fourier transforms, for one instruction set.
#include "rensa/operations/fft/cpu_kernels.h"

namespace rensa::host::RENSA_SET {

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class R> struct Lanes {
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(R));
  typedef R Vector __attribute__((vector_size(kVectorBytes), may_alias));
  Vector re, im;
};

#define RENSA_INLINE inline __attribute__((always_inline))

template <class R> RENSA_INLINE void add(Lanes<R>& out, const Lanes<R>& a, const Lanes<R>& b) {
  out.re = a.re + b.re;
  out.im = a.im + b.im;
}
template <class R> RENSA_INLINE void subtract(Lanes<R>& out, const Lanes<R>& a, const Lanes<R>& b) {
  out.re = a.re - b.re;
  out.im = a.im - b.im;
}
// out = -i (a - b)
template <class R>
RENSA_INLINE void subtract_turned(Lanes<R>& out, const Lanes<R>& a, const Lanes<R>& b) {
  typename Lanes<R>::Vector re = a.im - b.im;
  out.im = b.re - a.re;
  out.re = re;
}
template <class R> RENSA_INLINE void multiply(Lanes<R>& out, const Lanes<R>& a, R re, R im) {
  typename Lanes<R>::Vector x = a.re * re - a.im * im;
  out.im = a.re * im + a.im * re;
  out.re = x;
}

template <class R> RENSA_INLINE void transform_2(Lanes<R>* x) {
  Lanes<R> a = x[0];
  add(x[0], a, x[1]);
  subtract(x[1], a, x[1]);
}

template <class R>
RENSA_INLINE void transform_4(Lanes<R>& x0, Lanes<R>& x1, Lanes<R>& x2, Lanes<R>& x3) {
  Lanes<R> a, b, c, d;
  add(a, x0, x2);
  subtract(b, x0, x2);
  add(c, x1, x3);
  subtract_turned(d, x1, x3);
  add(x0, a, c);
  add(x1, b, d);
  subtract(x2, a, c);
  subtract(x3, b, d);
}

template <class R> RENSA_INLINE void transform_8(Lanes<R>* x) {
  constexpr R kHalf = static_cast<R>(0.70710678118654752440);  // sqrt(1/2)
  transform_4(x[0], x[2], x[4], x[6]);
  transform_4(x[1], x[3], x[5], x[7]);
  // The odd half by eighths of a turn.
  Lanes<R> a, b, c;
  a.re = (x[3].re + x[3].im) * kHalf;
  a.im = (x[3].im - x[3].re) * kHalf;
  b.re = x[5].im;
  b.im = -x[5].re;
  c.re = (x[7].im - x[7].re) * kHalf;
  c.im = (x[7].re + x[7].im) * -kHalf;
  Lanes<R> e0 = x[0], e1 = x[2], e2 = x[4], e3 = x[6], o0 = x[1];
  add(x[0], e0, o0);
  subtract(x[4], e0, o0);
  add(x[1], e1, a);
  subtract(x[5], e1, a);
  add(x[2], e2, b);
  subtract(x[6], e2, b);
  add(x[3], e3, c);
  subtract(x[7], e3, c);
}

// An odd number of values: the sums and differences of x[j] and x[p - j] go with the cosines and
// the sines. `roots` holds exp(-2 pi i j / p).
template <class R> RENSA_INLINE void transform_odd(Lanes<R>* x, int p, const FftFactor<R>* roots) {
  int half = p / 2;
  Lanes<R> first = x[0];
  for (int j = 1; j <= half; ++j) {
    Lanes<R> a = x[j];
    add(x[j], a, x[p - j]);
    subtract(x[p - j], a, x[p - j]);
    add(x[0], x[0], x[j]);
  }
  Lanes<R> results[kMaxFftRadix];
  for (int q = 1; q <= half; ++q) {
    Lanes<R> even = first, odd;
    odd.re = odd.im = typename Lanes<R>::Vector{};
    for (int j = 1, turns = q; j <= half; ++j) {
      R c = roots[turns].re, s = roots[turns].im;
      even.re += x[j].re * c;
      even.im += x[j].im * c;
      odd.re += x[p - j].re * s;
      odd.im += x[p - j].im * s;
      turns += q;
      if (turns >= p) turns -= p;
    }
    // even + i odd, and even - i odd
    results[q].re = even.re - odd.im;
    results[q].im = even.im + odd.re;
    results[p - q].re = even.re + odd.im;
    results[p - q].im = even.im - odd.re;
  }
  for (int q = 1; q < p; ++q) x[q] = results[q];
}

// kRadix: 0 for any odd one.
template <int kRadix, bool kTurned, class R>
void run_pass(const FftPass& pass, const FftFactor<R>* factors, const Lanes<R>* in, Lanes<R>* out) {
  const int radix = kRadix ? kRadix : static_cast<int>(pass.radix);
  const FftFactor<R>* roots = factors + pass.roots;
  const std::int64_t inner = pass.inner, apart = inner * pass.before;
  for (std::int64_t k = 0; k < pass.before; ++k) {
    const Lanes<R>* from = in + inner * radix * k;
    Lanes<R>* to = out + inner * k;
    const FftFactor<R>* turn = factors + pass.turns;
    for (std::int64_t i = 0; i < inner; ++i) {
      Lanes<R> x[kRadix ? kRadix : kMaxFftRadix];
#pragma GCC unroll 8
      for (int j = 0; j < radix; ++j) x[j] = from[i + inner * j];
      if constexpr (kRadix == 2) transform_2(x);
      else if constexpr (kRadix == 4) transform_4(x[0], x[1], x[2], x[3]);
      else if constexpr (kRadix == 8) transform_8(x);
      else transform_odd(x, radix, roots);
      to[i] = x[0];
#pragma GCC unroll 8
      for (int j = 1; j < radix; ++j, ++turn) {
        if constexpr (kTurned) multiply(x[j], x[j], turn->re, turn->im);
        to[i + apart * j] = x[j];
      }
    }
  }
}

template <int kRadix, class R>
void run_radix(const FftPass& pass, const FftFactor<R>* factors, const Lanes<R>* in,
               Lanes<R>* out) {
  if (pass.inner > 1) run_pass<kRadix, true>(pass, factors, in, out);
  else run_pass<kRadix, false>(pass, factors, in, out);
}

template <class R>
R* fft_run(const FftPass* passes, std::size_t count, const FftFactor<R>* factors, R* block,
           R* scratch) {
  Lanes<R>*in = reinterpret_cast<Lanes<R>*>(block), *out = reinterpret_cast<Lanes<R>*>(scratch);
  for (std::size_t i = 0; i < count; ++i) {
    const FftPass& pass = passes[i];
    switch (pass.radix) {
      case 2: run_radix<2>(pass, factors, in, out); break;
      case 3: run_radix<3>(pass, factors, in, out); break;
      case 4: run_radix<4>(pass, factors, in, out); break;
      case 5: run_radix<5>(pass, factors, in, out); break;
      case 8: run_radix<8>(pass, factors, in, out); break;
      default: run_radix<0>(pass, factors, in, out); break;
    }
    Lanes<R>* result = out;
    out = in;
    in = result;
  }
  return reinterpret_cast<R*>(in);
}

// Between pairs in every lane and parts of all lanes: the even and the odd elements of two vectors,
// and their elements in turns.
template <class V, int... I>
RENSA_INLINE void take_apart(const V& a, const V& b, V& even, V& odd,
                             std::integer_sequence<int, I...>) {
  even = __builtin_shufflevector(a, b, (2 * I)...);
  odd = __builtin_shufflevector(a, b, (2 * I + 1)...);
}
template <class V, int... I>
RENSA_INLINE void put_together(const V& even, const V& odd, V& a, V& b,
                               std::integer_sequence<int, I...>) {
  constexpr int kCount = sizeof...(I);
  a = __builtin_shufflevector(even, odd, (I / 2 + I % 2 * kCount)...);
  b = __builtin_shufflevector(even, odd, ((I + kCount) / 2 + I % 2 * kCount)...);
}

template <class R> void separate(const R* pairs, std::int64_t count, bool swap, R* block) {
  const Lanes<R>* in = reinterpret_cast<const Lanes<R>*>(pairs);
  Lanes<R>* out = reinterpret_cast<Lanes<R>*>(block);
  std::make_integer_sequence<int, Lanes<R>::kCount> all;
  for (std::int64_t k = 0; k < count; ++k) {
    typename Lanes<R>::Vector even, odd;
    take_apart(in[k].re, in[k].im, even, odd, all);
    out[k].re = swap ? odd : even;
    out[k].im = swap ? even : odd;
  }
}

template <class R> void combine(const R* block, std::int64_t count, bool swap, R scale, R* pairs) {
  const Lanes<R>* in = reinterpret_cast<const Lanes<R>*>(block);
  Lanes<R>* out = reinterpret_cast<Lanes<R>*>(pairs);
  std::make_integer_sequence<int, Lanes<R>::kCount> all;
  for (std::int64_t k = 0; k < count; ++k) {
    typename Lanes<R>::Vector re = in[k].re * scale, im = in[k].im * scale;
    put_together(swap ? im : re, swap ? re : im, out[k].re, out[k].im, all);
  }
}

// As many vectors as they have elements, taken for a matrix, become its transpose: blocks of kApart
// rows and columns are exchanged across the diagonal, then those of half the size within them.
template <int kApart, class V, int... I>
RENSA_INLINE void exchange(V& x, V& y, std::integer_sequence<int, I...>) {
  constexpr int kCount = sizeof...(I);
  V upper = __builtin_shufflevector(x, y, ((I & kApart) != 0 ? kCount + I - kApart : I)...);
  y = __builtin_shufflevector(x, y, ((I & kApart) != 0 ? kCount + I : I + kApart)...);
  x = upper;
}
template <class R, int kApart = Lanes<R>::kCount / 2>
RENSA_INLINE void transpose(typename Lanes<R>::Vector* rows) {
  constexpr int kCount = Lanes<R>::kCount;
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    if ((i & kApart) != 0) continue;
    exchange<kApart>(rows[i], rows[i + kApart], std::make_integer_sequence<int, kCount>());
  }
  if constexpr (kApart > 1) transpose<R, kApart / 2>(rows);
}

// Whether each lane's values lie one behind the other, as vectors of them are moved.
template <class R> bool are_rows(const FftLanes& lanes) {
  return lanes.step == 2 * sizeof(R) && lanes.part == sizeof(R);
}

// Lanes that are rows, into a block: a vector of each lane's parts, transposed, is a vector of each
// part of all lanes. Returns the count of values that make whole vectors.
template <class R>
std::int64_t gather_rows(const FftLanes& from, std::int64_t count, bool swap, R* block) {
  constexpr int kCount = Lanes<R>::kCount, kValues = kCount / 2;
  typedef typename Lanes<R>::Vector Vector;
  Vector* out = reinterpret_cast<Vector*>(block);
  std::int64_t k = 0;
  for (; k + kValues <= count; k += kValues, out += kCount) {
    Vector v[kCount];
#pragma GCC unroll 16
    for (int l = 0; l < kCount; ++l) {
      const char* row = from.data[l < from.used ? l : 0];
      __builtin_memcpy(&v[l], row + k * from.step, sizeof(Vector));
    }
    transpose<R>(v);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) out[i ^ (swap ? 1 : 0)] = v[i];
  }
  return k;
}
template <class R>
std::int64_t scatter_rows(const R* block, std::int64_t count, bool swap, R scale,
                          const FftLanes& to) {
  constexpr int kCount = Lanes<R>::kCount, kValues = kCount / 2;
  typedef typename Lanes<R>::Vector Vector;
  const Vector* in = reinterpret_cast<const Vector*>(block);
  std::int64_t k = 0;
  for (; k + kValues <= count; k += kValues, in += kCount) {
    Vector v[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) v[i] = in[i ^ (swap ? 1 : 0)] * scale;
    transpose<R>(v);
#pragma GCC unroll 16
    for (int l = 0; l < kCount; ++l) {
      if (l < to.used) __builtin_memcpy(to.data[l] + k * to.step, &v[l], sizeof(Vector));
    }
  }
  return k;
}

// Whether the lanes' values lie beside each other, so that those of all lanes are one piece.
template <class R> bool are_neighbours(const FftLanes& lanes) {
  if (lanes.used < Lanes<R>::kCount || lanes.part != sizeof(R)) return false;
  for (int l = 1; l < lanes.used; ++l) {
    if (lanes.data[l] - lanes.data[l - 1] != 2 * sizeof(R)) return false;
  }
  return true;
}

constexpr std::int64_t kRun = 16;  // values of a lane moved at a time: some lines of the cache

template <class R>
void fft_gather(const FftLanes& from, std::int64_t count, std::int64_t length, bool swap, R* block,
                R* scratch) {
  constexpr int kCount = Lanes<R>::kCount;
  constexpr std::size_t kSize = sizeof(R);
  std::int64_t step = from.step, part = from.part;
  std::int64_t done = are_rows<R>(from) ? gather_rows(from, count, swap, block) : 0;
  if (are_neighbours<R>(from)) {
    for (std::int64_t k = done; k < count; ++k) {
      __builtin_memcpy(scratch + k * 2 * kCount, from.data[0] + k * step, 2 * kCount * kSize);
    }
  } else {
    for (std::int64_t begin = done; begin < count; begin += kRun) {
      std::int64_t end = begin + kRun < count ? begin + kRun : count;
      for (int l = 0; l < kCount; ++l) {
        const char* p = from.data[l < from.used ? l : 0] + begin * step;
        R* to = scratch + begin * 2 * kCount + 2 * l;
        for (std::int64_t k = begin; k < end; ++k, p += step, to += 2 * kCount) {
          if (part == static_cast<std::int64_t>(kSize)) {
            __builtin_memcpy(to, p, 2 * kSize);
          } else {
            __builtin_memcpy(to, p, kSize);
            if (part == FftLanes::kNone) to[1] = 0;
            else __builtin_memcpy(to + 1, p + part, kSize);
          }
        }
      }
    }
  }
  separate(scratch + done * 2 * kCount, count - done, swap, block + done * 2 * kCount);
  std::int64_t rest = (length - count) * 2 * kCount;
  if (rest > 0)
    __builtin_memset(block + count * 2 * kCount, 0, static_cast<std::size_t>(rest) * kSize);
}

template <class R>
void fft_scatter(const R* block, std::int64_t count, bool swap, R scale, const FftLanes& to,
                 R* scratch) {
  constexpr int kCount = Lanes<R>::kCount;
  constexpr std::size_t kSize = sizeof(R);
  std::int64_t done = are_rows<R>(to) ? scatter_rows(block, count, swap, scale, to) : 0;
  combine(block + done * 2 * kCount, count - done, swap, scale, scratch + done * 2 * kCount);
  std::int64_t step = to.step, part = to.part;
  if (are_neighbours<R>(to)) {
    for (std::int64_t k = done; k < count; ++k) {
      __builtin_memcpy(to.data[0] + k * step, scratch + k * 2 * kCount, 2 * kCount * kSize);
    }
    return;
  }
  for (std::int64_t begin = done; begin < count; begin += kRun) {
    std::int64_t end = begin + kRun < count ? begin + kRun : count;
    for (int l = 0; l < to.used; ++l) {
      char* p = to.data[l] + begin * step;
      const R* from = scratch + begin * 2 * kCount + 2 * l;
      for (std::int64_t k = begin; k < end; ++k, p += step, from += 2 * kCount) {
        if (part == static_cast<std::int64_t>(kSize)) {
          __builtin_memcpy(p, from, 2 * kSize);
        } else {
          __builtin_memcpy(p, from, kSize);
          if (part != FftLanes::kNone) __builtin_memcpy(p + part, from + 1, kSize);
        }
      }
    }
  }
}

// exp(-2 pi i k (first + j) / n) is made of two factors, for k modulo kSteps and for the rest.
template <class R>
void fft_turn(const Turns& turns, std::int64_t first, std::int64_t count, R* block) {
  constexpr int kCount = Lanes<R>::kCount;
  constexpr std::int64_t kSteps = 32;
  auto fill = [&](std::int64_t k, Lanes<R>& factor) {
    R re[kCount], im[kCount];
    for (int j = 0; j < kCount; ++j) {
      std::int64_t turn = k * (first + j);  // a lane that is not used may be beyond n
      FftFactor<double> value = turns(turn < turns.n() ? turn : turn % turns.n());
      re[j] = static_cast<R>(value.re);
      im[j] = static_cast<R>(value.im);
    }
    __builtin_memcpy(&factor.re, re, sizeof(re));
    __builtin_memcpy(&factor.im, im, sizeof(im));
  };
  Lanes<R> low[kSteps], high;
  for (std::int64_t k = 0; k < kSteps && k < count; ++k) fill(k, low[k]);
  Lanes<R>* values = reinterpret_cast<Lanes<R>*>(block);
  for (std::int64_t begin = 0; begin < count; begin += kSteps) {
    fill(begin, high);
    for (std::int64_t k = begin; k < begin + kSteps && k < count; ++k) {
      const Lanes<R>& a = low[k - begin];
      typename Lanes<R>::Vector re = a.re * high.re - a.im * high.im,
                                im = a.re * high.im + a.im * high.re;
      typename Lanes<R>::Vector x = values[k].re * re - values[k].im * im;
      values[k].im = values[k].re * im + values[k].im * re;
      values[k].re = x;
    }
  }
}

template <class R>
void fft_multiply(const FftFactor<R>* factors, std::int64_t count, bool swap_before,
                  bool swap_after, R* block) {
  Lanes<R>* values = reinterpret_cast<Lanes<R>*>(block);
  for (std::int64_t k = 0; k < count; ++k) {
    Lanes<R> x = values[k], y;
    R re = factors[k].re, im = factors[k].im;
    if (swap_before) y = x, x.re = y.im, x.im = y.re;
    multiply(y, x, re, im);
    values[k].re = swap_after ? y.im : y.re;
    values[k].im = swap_after ? y.re : y.im;
  }
}

template <class R> void fft_split(std::int64_t half, const FftFactor<R>* turns, R* block) {
  Lanes<R>* values = reinterpret_cast<Lanes<R>*>(block);
  values[half] = values[0];
  for (std::int64_t k = 0; 2 * k <= half; ++k) {
    Lanes<R> z = values[k], mirror = values[half - k], odd;
    R c = turns[k].re * R(0.5), s = turns[k].im * R(0.5);
    // even = (z + mirror*) / 2, odd = (z - mirror*) / 2i, turned
    typename Lanes<R>::Vector even_re = (z.re + mirror.re) * R(0.5),
                              even_im = (z.im - mirror.im) * R(0.5), odd_re = z.im + mirror.im,
                              odd_im = mirror.re - z.re;
    odd.re = odd_re * c - odd_im * s;
    odd.im = odd_re * s + odd_im * c;
    values[k].re = even_re + odd.re;
    values[k].im = even_im + odd.im;
    values[half - k].re = even_re - odd.re;
    values[half - k].im = odd.im - even_im;
  }
}

template <class R> void fft_join(std::int64_t half, const FftFactor<R>* turns, R* block) {
  Lanes<R>* values = reinterpret_cast<Lanes<R>*>(block);
  for (std::int64_t k = 0; 2 * k <= half; ++k) {
    Lanes<R> x = values[k], mirror = values[half - k];
    R c = turns[k].re, s = -turns[k].im;
    // even = x + mirror*, odd = i (x - mirror*), turned back
    typename Lanes<R>::Vector even_re = x.re + mirror.re, even_im = x.im - mirror.im,
                              re = x.re - mirror.re, im = x.im + mirror.im;
    typename Lanes<R>::Vector odd_re = -(re * s + im * c), odd_im = re * c - im * s;
    // the parts exchanged
    values[k].im = even_re + odd_re;
    values[k].re = even_im + odd_im;
    values[half - k].im = even_re - odd_re;
    values[half - k].re = odd_im - even_im;
  }
}

template <class R> FftKernels<R> make_fft_kernels() {
  return {Lanes<R>::kCount, fft_gather<R>,   fft_scatter<R>, fft_run<R>,
          fft_turn<R>,      fft_multiply<R>, fft_split<R>,   fft_join<R>};
}

#undef RENSA_INLINE

}  // namespace

void get_fft_kernels(FftKernels<float>& f, FftKernels<double>& d) {
  f = make_fft_kernels<float>();
  d = make_fft_kernels<double>();
}

}  // namespace rensa::host::RENSA_SET
