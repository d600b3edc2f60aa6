// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and what
// is made of its words. Element i of a call comes from counter offset + i / 4, word i % 4, whatever
// the grid or the vector width, so integers and uniforms are bit-equal on every device. Includes
// nothing but half.h: read by the host compiler, nvcc and NVRTC.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

struct PhiloxWords {
  unsigned int word[4];  // random bits, 128 in all
};

/// a * b in full. (ptxas spends an addition of zero on a 64-bit product of widened factors.)
RENSA_FN unsigned long long wide_product(unsigned int a, unsigned int b) {
#if defined(__CUDA_ARCH__)
  unsigned long long product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
#else
  return (unsigned long long)a * b;
#endif
}

/// `block` is the counter's upper half: what a sampler that needs more words for one element
/// counts.
RENSA_FN PhiloxWords philox(unsigned long long seed, unsigned long long counter,
                            unsigned long long block = 0) {
  unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)(counter >> 32);
  unsigned int c2 = (unsigned int)block, c3 = (unsigned int)(block >> 32);
  unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    unsigned long long p0 = wide_product(0xD2511F53u, c0), p1 = wide_product(0xCD9E8D57u, c2);
    c0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
    c1 = (unsigned int)p1;
    c2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
    c3 = (unsigned int)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Uniform in [0, 1) with 24 bits.
RENSA_FN float uniform_float(unsigned int word) {
  return (float)(word >> 8) * 5.9604644775390625e-8f;
}
/// Uniform in [0, 1) with 53 bits, as NumPy combines two words.
RENSA_FN double uniform_double(unsigned int high, unsigned int low) {
  return ((double)(high >> 5) * 67108864.0 + (double)(low >> 6)) * 1.1102230246251565e-16;
}

/// Uniform in (0, 1), symmetric about 1/2, with 23 and 52 bits: what logarithms are taken of.
RENSA_FN float open_float(unsigned int word) {
  return ((float)(word >> 9) + 0.5f) * 1.1920928955078125e-7f;
}
RENSA_FN double open_double(unsigned int high, unsigned int low) {
  return ((double)(high >> 6) * 67108864.0 + (double)(low >> 6) + 0.5) * 2.220446049250313e-16;
}

}  // namespace rensa
