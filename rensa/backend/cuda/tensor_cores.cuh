// Tensor cores (mma.sync) and what brings them their operands: Ampere and later.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define RENSA_HAS_TENSOR_CORES 1
#else
#define RENSA_HAS_TENSOR_CORES 0
#endif

namespace rensa::cuda {

// What is multiplied: half_t, bfloat16_t, and float in two ways.
struct Tf32 {};         // rounded to TF32
struct BroughtTf32 {};  // likewise, by the boxes that bring it
struct SplitFloat {};   // as two TF32 numbers, of which three products are taken: see OperandWords

template <class E> struct StoredAs { using type = float; };
template <> struct StoredAs<half_t> { using type = half_t; };
template <> struct StoredAs<bfloat16_t> { using type = bfloat16_t; };
template <class E> using Stored = typename StoredAs<E>::type;
template <class E> inline constexpr bool is_16bit = sizeof(Stored<E>) == 2;

#if RENSA_HAS_TENSOR_CORES

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// 16 bytes from memory, or zeros where there are none (`from` is not read); they are there after
/// wait_for_copies and __syncthreads.
__device__ __forceinline__ void copy_chunk(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
/// The same with 4 bytes.
__device__ __forceinline__ void copy_word(void* to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
/// Makes a group of the thread's copies since the last one.
__device__ __forceinline__ void close_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for all groups but the newest.
__device__ __forceinline__ void wait_for_older_groups() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
}

// A thread's part of four matrices of 8 rows of 16 bytes, of which it says where row `lane % 8` of
// matrix `lane / 8` lies: the word lane % 4 of row lane / 4. Transposed, of 16-bit elements: those
// of rows 2 * (lane % 4) and the next in column lane / 4.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void load_transposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// c (16, 8) += a (16, K) @ b (K, 8), K = 16 of 16 bits each or 8 of TF32. With g = lane / 4, t =
/// lane % 4 the thread has, a word each,
///   a[0], a[1], a[2], a[3]: words t of rows g and g + 8, words t + 4 of rows g and g + 8;
///   b0, b1: words t and t + 4 of column g;
///   c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <class E>
__device__ __forceinline__ void multiply_words(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                               unsigned b1) {
#define RENSA_MULTIPLY(shape, types)                                                  \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." types                        \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<E, half_t>) RENSA_MULTIPLY("m16n8k16", "f16.f16");
  else if constexpr (std::is_same_v<E, bfloat16_t>) RENSA_MULTIPLY("m16n8k16", "bf16.bf16");
  else RENSA_MULTIPLY("m16n8k8", "tf32.tf32");
#undef RENSA_MULTIPLY
}

__device__ __forceinline__ unsigned to_tf32(float x) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return word;
}

/// Of how many products of tensor cores one is made.
template <class E> inline constexpr int kProducts = std::is_same_v<E, SplitFloat> ? 3 : 1;

// Which part of a's and of b's OperandWords product N takes: the small ones come first.
template <class E, int N> inline constexpr int kPartOfA = kProducts<E> == 3 && N == 0;
template <class E, int N> inline constexpr int kPartOfB = N == 1;

/// Four words of one operand as the tensor cores take them. A split float is its nearest TF32
/// number and, as the second, what that leaves: 12 bits, of which tensor cores read 11. So it is
/// taken for a number within 2^-23 of it, and the product that is left out, that of what both
/// leave, is within 2^-22 of the whole. Infinity leaves NaN, and so do the largest floats, which
/// have no nearest TF32 number.
template <class E> struct OperandWords {
  static constexpr int kParts = kProducts<E> == 3 ? 2 : 1;
  unsigned part[kParts][4];

  /// Of words as they are stored.
  __device__ __forceinline__ void set(const unsigned (&stored)[4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (is_16bit<E> || std::is_same_v<E, BroughtTf32>) {
        part[0][k] = stored[k];
      } else if constexpr (kParts == 1) {
        part[0][k] = to_tf32(__uint_as_float(stored[k]));
      } else {
        constexpr unsigned kHalf = 0x1000, kKept = 0xffffe000;
        part[0][k] = (stored[k] + kHalf) & kKept;
        float rest = __uint_as_float(stored[k]) - __uint_as_float(part[0][k]);
        part[1][k] = __float_as_uint(rest);
      }
    }
  }
};

/// Calls f.operator()<N>() for each N below kProducts, in their order.
template <class E, class F> __device__ __forceinline__ void for_each_product(F&& f) {
  f.template operator()<0>();
  if constexpr (kProducts<E> == 3) {
    f.template operator()<1>();
    f.template operator()<2>();
  }
}

/// Product N of the kProducts of c += a @ b, of b the words 2 * `half` and the next. Products of
/// one c wait for each other: others belong between them.
template <class E, int N>
__device__ __forceinline__ void multiply(float (&c)[4], const OperandWords<E>& a,
                                         const OperandWords<E>& b, int half) {
  const unsigned(&columns)[4] = b.part[kPartOfB<E, N>];
  multiply_words<E>(c, a.part[kPartOfA<E, N>], columns[2 * half], columns[2 * half + 1]);
}

#endif

}  // namespace rensa::cuda
