// The innermost part of Fourier transforms on the CPU: as many transforms of one length as a vector
// has lanes, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rensa/backend/cpu/instruction_sets.h"

namespace rensa::host {

/// A complex number that the kernels read: plain, so that no function of the standard library's is
/// compiled for their instructions.
template <class R> struct FftFactor { R re, im; };

/// exp(-2 pi i turns / n) for integers `turns` in [0, n].
class Turns {
 public:
  explicit Turns(std::int64_t n);
  FftFactor<double> operator()(std::int64_t turns) const;
  std::int64_t n() const { return n_; }

 private:
  std::int64_t n_;
  int bits_;                                      // of a turn's number that choose a fine one
  std::vector<FftFactor<double>> fine_, coarse_;  // of single turns, and of 2^bits_ at a time
};

inline constexpr int kMaxFftRadix = 64;

/// One pass of a mixed-radix transform (Stockham's): DFTs of `radix` values that lie
/// before * inner apart, each result but the first then turned.
struct FftPass {
  std::int64_t radix = 0, before = 0, inner = 0;  // radix * before * inner is the length
  std::int64_t turns = 0;                         // where its inner * (radix - 1) factors begin
  std::int64_t roots = 0;                         // where its radix-th roots of 1 begin, if odd
};

/// How to transform `length` values, whose prime factors are below kMaxFftRadix.
template <class R> struct FftPlan {
  explicit FftPlan(std::int64_t n);
  std::int64_t length;
  std::vector<FftPass> passes;
  std::vector<FftFactor<R>> factors;
};

/// One lane's values: `count` of them, value k at data + k * step, its imaginary part `part` bytes
/// behind.
struct FftLanes {
  static constexpr int kMax = 16;
  static constexpr std::int64_t kNone = -1;  // the part of real values
  char* data[kMax];
  int used = 0;
  std::int64_t step = 0, part = 0;
};

/// The kernels for one instruction set. A block holds values of `lanes` transforms: for each k the
/// real parts of all lanes, then the imaginary ones, 64-byte aligned.
template <class R> struct FftKernels {
  int lanes = 0;
  /// Values [0, count) of the lanes into `block`, the parts exchanged when `swap`; the rest of
  /// `length` is 0. `scratch` is as large as the block.
  void (*gather)(const FftLanes& from, std::int64_t count, std::int64_t length, bool swap, R* block,
                 R* scratch);
  /// The other way, times `scale`.
  void (*scatter)(const R* block, std::int64_t count, bool swap, R scale, const FftLanes& to,
                  R* scratch);
  /// The forward transforms of a plan; returns `block` or `scratch`, whichever holds them.
  R* (*run)(const FftPass* passes, std::size_t count, const FftFactor<R>* factors, R* block,
            R* scratch);
  /// Value k of lane j is turned by exp(-2 pi i k (first + j) / n).
  void (*turn)(const Turns& turns, std::int64_t first, std::int64_t count, R* block);
  /// Value k of every lane times factors[k], the parts exchanged before and after where asked for.
  void (*multiply)(const FftFactor<R>* factors, std::int64_t count, bool swap_before,
                   bool swap_after, R* block);
  /// The transforms of real values from those of their `half` pairs, half + 1 values, in place, and
  /// back (with the parts exchanged). `turns` holds exp(-2 pi i k / (2 half)).
  void (*split)(std::int64_t half, const FftFactor<R>* turns, R* block);
  void (*join)(std::int64_t half, const FftFactor<R>* turns, R* block);
};

/// For the best instruction set of this machine.
template <class R> const FftKernels<R>& fft_kernels();

RENSA_EACH_SET(void get_fft_kernels(FftKernels<float>&, FftKernels<double>&);)

}  // namespace rensa::host
