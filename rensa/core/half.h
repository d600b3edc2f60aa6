// float16 and bfloat16 as storage types: 16 bits, converted to float to compute. The header
// includes nothing, so that the host compiler, nvcc and NVRTC read the same text; the arithmetic is
// done on float, rounding to nearest even on the way back.
#pragma once

// In front of a function for the host and for devices; for programs too.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define RENSA_FN __host__ __device__ __forceinline__
#else
#define RENSA_FN inline __attribute__((always_inline))
#endif

#if defined(__CUDACC_RTC__)  // what NVRTC does not know of GCC's functions
#define __builtin_huge_valf() __int_as_float(0x7f800000)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#endif

namespace rensa {

namespace detail {
template <class To, class From> RENSA_FN To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
#if defined(__CUDACC_RTC__)
  memcpy(&to, &from, sizeof(to));
#else
  __builtin_memcpy(&to, &from, sizeof(to));
#endif
  return to;
}

RENSA_FN float half_bits_to_float(unsigned short h) {
#if defined(__CUDA_ARCH__)
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
#else
  // Exponent and mantissa moved to float's place and scaled by 2^112 turn normals and subnormals
  // right alike; infinity and NaN then need float's full exponent.
  unsigned int magnitude = (h & 0x7fffu) << 13;
  float f = bit_cast<float>(magnitude) * bit_cast<float>(0x77800000u);
  unsigned int bits = bit_cast<unsigned int>(f);
  bits = (h & 0x7c00u) == 0x7c00u ? (magnitude | 0x7f800000u) : bits;
  return bit_cast<float>(bits | ((h & 0x8000u) << 16));
#endif
}

RENSA_FN unsigned short float_to_half_bits(float f) {
#if defined(__CUDA_ARCH__)
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
#else
  unsigned int bits = bit_cast<unsigned int>(f);
  unsigned int sign = (bits >> 16) & 0x8000u;
  unsigned int magnitude = bits & 0x7fffffffu;
  // Subnormal halves: adding 0.5 lines the float's last bits up with a half's and rounds.
  unsigned int subnormal = bit_cast<unsigned int>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  // Normal halves: rebias by -112 and round to nearest even in integers.
  unsigned int normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  unsigned int h = magnitude < 0x38800000u ? subnormal : normal;
  h = magnitude >= 0x47800000u ? 0x7c00u : h;
  h = magnitude > 0x7f800000u ? 0x7e00u : h;
  return static_cast<unsigned short>(h | sign);
#endif
}

RENSA_FN float bfloat16_bits_to_float(unsigned short b) {
  return bit_cast<float>(static_cast<unsigned int>(b) << 16);
}

RENSA_FN unsigned short float_to_bfloat16_bits(float f) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900  // its NaN is 0x7fff
  unsigned short b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f));
  return b;
#else
  unsigned int bits = bit_cast<unsigned int>(f);
  unsigned int rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<unsigned short>(nan ? 0x7fc0u : rounded);
#endif
}
}  // namespace detail

/// IEEE 754 binary16.
struct half_t {
  unsigned short bits;  // as they lie in memory
  half_t() = default;
  RENSA_FN explicit half_t(float f) : bits(detail::float_to_half_bits(f)) {}
  RENSA_FN operator float() const { return detail::half_bits_to_float(bits); }
};

/// bfloat16: the upper half of a float.
struct bfloat16_t {
  unsigned short bits;  // as they lie in memory
  bfloat16_t() = default;
  RENSA_FN explicit bfloat16_t(float f) : bits(detail::float_to_bfloat16_bits(f)) {}
  RENSA_FN operator float() const { return detail::bfloat16_bits_to_float(bits); }
};

}  // namespace rensa
