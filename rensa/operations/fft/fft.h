// Discrete Fourier transforms.
#pragma once

#include <cstdint>

#include "rensa/device/kind.h"

namespace rensa::operations {

enum class FftKind : unsigned char {
  complex,          // complex in and out
  real_to_complex,  // the n / 2 + 1 first values of a real signal's transform
  complex_to_real,  // back: the real signal of those
};

/// out = scale * the transform of `in` along its last axis, with exp(-2 pi i ...) or, `inverse`,
/// exp(+2 pi i ...); the other axes are equal. The length of the transform is `length`: elements
/// of `in` beyond it (beyond length / 2 + 1 for complex_to_real) are left out, missing ones are 0.
///
/// On a GPU both are C-contiguous, `in` has all its elements, `scale` is 1, and the transform runs
/// over the last `rank` (up to 3) axes at once, of which `length` is the last one's. For
/// complex_to_real `rank` is 1, the spectrum's ends have to be real, and `in` may be overwritten.
/// On the CPU `rank` is 1.
struct Fft final : KindOf<Fft> {
  Fft(const char* name, FftKind k) : KindOf(name), kind(k) {}
  FftKind kind;
  bool inverse = false;
  int rank = 1;
  std::int64_t length = 0;
  double scale = 1;
  Operand in, out;

  template <class V> void fields(V& v) {
    kind == FftKind::complex_to_real ? v.write(in) : v.read(in);
    v.write(out);
    v.number(kind, inverse, rank, length, scale);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
