// What the CUDA kernels of the library share: launches, vectors, index arithmetic, loads and stores
// of a dtype known at run time, and the report of bad values.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>

#include "rensa/backend/cuda/check.h"
#include "rensa/core/axes.h"
#include "rensa/core/scalar.h"
#include "rensa/device/error_word.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operation.h"
#include "rensa/portable/division.h"
#include "rensa/portable/element_types.h"
#include "rensa/portable/launch_plan.h"
#include "rensa/portable/pack.h"

namespace rensa::cuda {

// What launches is static: where the libraries are shared ones, each has a copy of the runtime,
// which knows the kernels of that library alone.

/// Whether the kernels of this file, of which `kernel` is any, run on the GPU as code for compute
/// capability kCapability (90 is 9.0) or later: such code has instructions that older code lacks.
template <int kCapability> static bool are_compiled_for(Device device, const void* kernel) {
  enum : signed char { unknown, no, yes };
  static std::array<std::atomic<signed char>, kMaxGpus> devices{};
  auto& known = devices[static_cast<std::size_t>(device.index)];
  signed char state = known.load(std::memory_order_relaxed);
  if (state == unknown) {
    cudaFuncAttributes attributes{};
    bool are = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
               attributes.ptxVersion >= kCapability && attributes.binaryVersion >= kCapability;
    (void)cudaGetLastError();  // the launch says what is wrong
    known.store(state = are ? yes : no, std::memory_order_relaxed);
  }
  return state == yes;
}

/// The part of launch_kernel that is no template.
static inline void launch_address(const char* operation, const LaunchContext& context,
                                  const void* kernel, dim3 grid, int block, void** args,
                                  std::size_t shared_bytes) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(block));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.handle);
  config.attrs = &early;
  config.numAttrs = are_compiled_for<90>(context.device, kernel) ? 1 : 0;
  RENSA_CUDA_CHECK(operation, cudaLaunchKernelExC(&config, kernel, args));
}

/// Bytes of shared memory that a block on `device` may have.
static inline int most_shared_memory(const char* operation, Device device) {
  int most = 0;
  RENSA_CUDA_CHECK(operation, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                                     device.index));
  return most;
}

/// Lets launches on `device`, the current one, give each block of `kernel` all the shared memory
/// that a block there may have; 48 KiB, with what the kernel has of its own, are free to all. Never
/// less than all: the limit is the kernel's, and another thread may be about to launch it with
/// more. Multiprocessors then have all the shared memory they can have, so that blocks of other
/// kernels find room beside.
static inline void allow_shared_memory(const char* operation, Device device, const void* kernel) {
  thread_local std::set<std::pair<int, const void*>> allowed;
  if (allowed.contains({device.index, kernel})) return;
  cudaFuncAttributes of_kernel{};
  RENSA_CUDA_CHECK(operation, cudaFuncGetAttributes(&of_kernel, kernel));
  auto set = [&](cudaFuncAttribute attribute, int value) {
    RENSA_CUDA_CHECK(operation, cudaFuncSetAttribute(kernel, attribute, value));
  };
  set(cudaFuncAttributeMaxDynamicSharedMemorySize,
      most_shared_memory(operation, device) - static_cast<int>(of_kernel.sharedSizeBytes));
  set(cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  allowed.insert({device.index, kernel});
}

/// Queues `kernel(args)`; every kernel here takes one struct by value, and calls
/// wait_for_previous() before it touches memory. Where the GPU can, it is brought to the processors
/// while the work before it ends (CUDA's programmatic dependent launch; in a graph, a programmatic
/// edge): kernels that wait for each other start up to a microsecond sooner, and the driver takes
/// half a microsecond less to launch one.
template <class Args>
static void launch_kernel(const char* operation, const LaunchContext& context, void (*kernel)(Args),
                          dim3 grid, int block, const Args& args, std::size_t shared_bytes = 0) {
  void* pointers[] = {const_cast<Args*>(&args)};
  launch_address(operation, context, reinterpret_cast<const void*>(kernel), grid, block, pointers,
                 shared_bytes);
}
template <class Args>
static void launch_kernel(const char* operation, const LaunchContext& context, void (*kernel)(Args),
                          std::int64_t grid, int block, const Args& args,
                          std::size_t shared_bytes = 0) {
  launch_kernel(operation, context, kernel, dim3(static_cast<unsigned>(grid)), block, args,
                shared_bytes);
}

// --- vectors ---

#if defined(__CUDACC__)

/// `left` elements (at most W are taken) from p, in one load where `vector` allows it; the rest of
/// the pack is `padding`.
template <class T, int W>
__device__ __forceinline__ Pack<T, W> load_pack(const T* p, std::int64_t left, bool vector,
                                                T padding) {
  Pack<T, W> pack;
  if (vector && left >= W) {
    pack = *reinterpret_cast<const Pack<T, W>*>(p);
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) pack.value[j] = j < left ? p[j] : padding;
  }
  return pack;
}

template <class T, int W>
__device__ __forceinline__ void store_pack(T* p, const Pack<T, W>& pack, std::int64_t left,
                                           bool vector) {
  if (vector && left >= W) {
    *reinterpret_cast<Pack<T, W>*>(p) = pack;
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) p[j] = pack.value[j];
    }
  }
}

/// W elements of T, 16 bytes of them unless told, that stay in registers of 32 bits until they are
/// used. Of small elements in a Pack the compiler makes a register each as soon as they are there,
/// and so waits for each load before the next.
template <class T, int Width = 16 / static_cast<int>(sizeof(T))> struct Vector {
  static constexpr int W = Width;
  Pack<unsigned, W* static_cast<int>(sizeof(T)) / 4> words = {};

  __device__ __forceinline__ void load(const T* aligned) {
    words = *reinterpret_cast<const decltype(words)*>(aligned);
  }
  __device__ __forceinline__ void set(const Pack<T, W>& pack) {
    memcpy(&words, &pack, sizeof(pack));
  }
  /// Called once all loads are on their way: from here on the words are numbers to the compiler.
  __device__ __forceinline__ void keep() {
#pragma unroll
    for (unsigned& word : words.value) asm("" : "+r"(word));
  }
  /// Element j as it is computed with.
  __device__ __forceinline__ ComputeOf<T> value(int j) const {
    if constexpr (std::is_same_v<T, bfloat16_t>) {  // the upper half of a float
      unsigned word = words.value[j / 2];
      return __uint_as_float(j % 2 ? word & 0xffff0000u : word << 16);
    } else if constexpr (std::is_same_v<T, half_t>) {
      half_t half;
      half.bits = static_cast<unsigned short>(words.value[j / 2] >> (j % 2 * 16));
      return static_cast<float>(half);
    } else {
      Pack<T, W> pack;
      memcpy(&pack, &words, sizeof(pack));
      return convert<ComputeOf<T>>(pack.value[j]);
    }
  }
};

/// Vectors of one row, `step` elements from one to the next; `left` elements of the row are there
/// from `first` on. A vector of which no element is there is not to be used; the rest of one that
/// is there in part is `padding`. All loads are under way before any of them is waited for.
/// `whole`: the vectors are aligned, and none is there in part.
template <class T, int W, int N>
__device__ __forceinline__ void load_vectors(Vector<T, W> (&vectors)[N], const T* first,
                                             std::int64_t left, int step, bool whole, T padding) {
  if (whole) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (k * step < left) vectors[k].load(first + k * step);
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      vectors[k].set(load_pack<T, W>(first + k * step, left - k * step, false, padding));
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) vectors[k].keep();
}

#endif

// --- index arithmetic ---

/// From a linear index over `ndim` axes, in C order, to byte offsets into N arrays.
template <int N> struct Indexer {
  int ndim = 0;
  FastDiv extent[kMaxNdim];
  std::int64_t stride[N][kMaxNdim] = {};

  void push_back(std::int64_t n, const std::int64_t (&strides)[N]) {
    extent[ndim] = FastDiv(n);
    for (int k = 0; k < N; ++k) stride[k][ndim] = strides[k];
    ++ndim;
  }
#if defined(__CUDACC__)
  /// Of the element at `index`, into the first K arrays.
  template <int K>
  __device__ __forceinline__ void offsets(unsigned index, std::int64_t (&offset)[K]) const {
    static_assert(K <= N);
#pragma unroll
    for (int k = 0; k < K; ++k) offset[k] = 0;
    for (int axis = ndim - 1; axis > 0; --axis) {
      unsigned quotient = extent[axis].divide(index);
      unsigned position = index - quotient * extent[axis].divisor;
#pragma unroll
      for (int k = 0; k < K; ++k) offset[k] += position * stride[k][axis];
      index = quotient;
    }
#pragma unroll
    for (int k = 0; k < K; ++k) offset[k] += index * stride[k][0];
  }
#endif
};

// --- conversions ---

/// The storage type of a vector type.
template <VectorType> struct StorageOf;
template <> struct StorageOf<VectorType::f32> { using type = float; };
template <> struct StorageOf<VectorType::f16> { using type = half_t; };
template <> struct StorageOf<VectorType::bf16> { using type = bfloat16_t; };
template <> struct StorageOf<VectorType::f64> { using type = double; };
template <> struct StorageOf<VectorType::i32> { using type = std::int32_t; };
template <> struct StorageOf<VectorType::i64> { using type = std::int64_t; };
template <> struct StorageOf<VectorType::b8> { using type = bool; };

/// `scalar` as the dtype `compute` would hold it, as a value of its compute type. Integers keep
/// what does not fit: comparisons with them stay right.
void make_number(const Scalar& scalar, Dtype compute, unsigned char (&number)[16]);

/// How the elements of an array of any dtype are read.
struct ElementType {
  Dtype dtype = Dtype::float32;
  unsigned char log2_size = 2;
  bool truth = false;  // read as 0 or 1

  ElementType() = default;
  /// For values of `compute`; real ones take the first half of a complex element.
  ElementType(Dtype d, ComputeType compute, bool as_truth) : dtype(d), truth(as_truth) {
    if (compute < ComputeType::c64) {
      if (d == Dtype::complex64) dtype = Dtype::float32;
      if (d == Dtype::complex128) dtype = Dtype::float64;
    }
    log2_size = 0;
    while ((std::int64_t{1} << log2_size) < itemsize(dtype)) ++log2_size;
  }
};

#if defined(__CUDACC__)

/// W elements of T on their way from memory to values.
template <class T, int W> struct Elements {
  Pack<T, W> pack;
  __device__ __forceinline__ void load(const char* p) {
    pack = *reinterpret_cast<const Pack<T, W>*>(p);
  }
  /// Element j, which has not been set before, is the one at p.
  __device__ __forceinline__ void set(int j, const char* p) {
    pack.value[j] = *reinterpret_cast<const T*>(p);
  }
  template <class V> __device__ __forceinline__ V get(int j) const {
    return convert<V>(pack.value[j]);
  }
  /// Called once all loads are on their way.
  __device__ __forceinline__ void keep() {}
};

/// Elements of 16 bits stay in pairs until they are used.
template <class T, int W>
requires is_16bit_float<T>
struct Elements<T, W> {
  Vector<T, W> vector;
  __device__ __forceinline__ void load(const char* p) {
    vector.load(reinterpret_cast<const T*>(p));
  }
  __device__ __forceinline__ void set(int j, const char* p) {
    unsigned bits = *reinterpret_cast<const unsigned short*>(p);
    vector.words.value[j / 2] |= bits << (j % 2 * 16);
  }
  template <class V> __device__ __forceinline__ V get(int j) const {
    return convert<V>(vector.value(j));
  }
  __device__ __forceinline__ void keep() { vector.keep(); }
};

/// The highest bit of every byte that is not 0.
__device__ __forceinline__ unsigned truth_marks(unsigned word) {
  return (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
}

/// A bool may be any byte; four of them stay in one register.
template <int W> struct Elements<bool, W> {
  static constexpr int kWords = (W + 3) / 4;
  unsigned word[kWords];
  __device__ __forceinline__ void load(const char* p) {
    if constexpr (W % 4 == 0) {
      auto pack = *reinterpret_cast<const Pack<unsigned, kWords>*>(p);
#pragma unroll
      for (int i = 0; i < kWords; ++i) word[i] = pack.value[i];
    } else {
      static_assert(W == 2);
      word[0] = *reinterpret_cast<const unsigned short*>(p);
    }
  }
  __device__ __forceinline__ void set(int j, const char* p) {
    word[j / 4] |= static_cast<unsigned>(static_cast<unsigned char>(*p)) << (j % 4 * 8);
  }
  template <class V> __device__ __forceinline__ V get(int j) const {
    return V((word[j / 4] >> (j % 4 * 8) & 0xffu) != 0 ? 1 : 0);
  }
  __device__ __forceinline__ void keep() {}
};

/// `left` elements (at most W) from p, in one load where `vector` allows it; the others are 0.
template <class T, int W>
__device__ __forceinline__ Elements<T, W> load_elements(const char* p, std::int64_t left,
                                                        bool vector) {
  Elements<T, W> elements = {};
  if (vector && left >= W) {
    elements.load(p);
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) elements.set(j, p + j * sizeof(T));
    }
  }
  return elements;
}

/// The bits of one element, loaded before it is known what they mean, so that several loads are in
/// flight.
template <class V> struct Raw { unsigned long long bits[m::is_complex<V>::value ? 2 : 1]; };

template <class V> __device__ __forceinline__ Raw<V> load_raw(const char* p, int log2_size) {
  Raw<V> raw;
  if (log2_size == 2) {
    raw.bits[0] = *reinterpret_cast<const unsigned*>(p);
  } else if (log2_size == 3) {
    raw.bits[0] = *reinterpret_cast<const unsigned long long*>(p);
  } else if (log2_size == 1) {
    raw.bits[0] = *reinterpret_cast<const unsigned short*>(p);
  } else if (log2_size == 0) {
    raw.bits[0] = *reinterpret_cast<const unsigned char*>(p);
  } else if constexpr (m::is_complex<V>::value) {
    raw.bits[0] = reinterpret_cast<const unsigned long long*>(p)[0];
    raw.bits[1] = reinterpret_cast<const unsigned long long*>(p)[1];
  }
  return raw;
}

template <class T, class V> __device__ __forceinline__ T raw_as(const Raw<V>& raw) {
  if constexpr (std::is_same_v<T, bool>) {
    return raw.bits[0] != 0;  // a bool may be any byte
  } else if constexpr (sizeof(T) <= sizeof(Raw<V>)) {
    T value;
    memcpy(&value, raw.bits, sizeof(T));
    return value;
  } else {
    return T(0);  // complex elements of real kernels: ElementType turns them away
  }
}

template <class V> __device__ __noinline__ V convert_any_raw(Raw<V> raw, Dtype dtype, bool truth) {
  switch (dtype) {
#define RENSA_CASE(d, T) \
  case Dtype::d:         \
    return truth ? V(convert<bool>(raw_as<T>(raw)) ? 1 : 0) : convert<V>(raw_as<T>(raw));
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
  return V(0);
}

template <class V>
__device__ __forceinline__ V convert_raw(const Raw<V>& raw, const ElementType& type) {
  if (type.dtype == value_dtype(compute_type_of<V>) && !type.truth) return raw_as<V>(raw);
  return convert_any_raw<V>(raw, type.dtype, type.truth);
}

template <class V> __device__ __forceinline__ V load_any(const char* p, const ElementType& type) {
  return convert_raw<V>(load_raw<V>(p, type.log2_size), type);
}

template <class V> __device__ __noinline__ void convert_and_store(char* p, Dtype dtype, V value) {
  switch (dtype) {
#define RENSA_CASE(d, T) \
  case Dtype::d: *reinterpret_cast<T*>(p) = convert<T>(value); break;
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
}

template <class V> __device__ __forceinline__ void store_any(char* p, Dtype dtype, V value) {
  if (dtype == value_dtype(compute_type_of<V>)) {
    *reinterpret_cast<V*>(p) = value;
  } else {
    convert_and_store<V>(p, dtype, value);
  }
}

/// An element of an integer array.
__device__ __forceinline__ long long load_integer(const char* p, Dtype dtype) {
  switch (dtype) {
    case Dtype::int64:
    case Dtype::uint64: return *reinterpret_cast<const long long*>(p);
    case Dtype::int32: return *reinterpret_cast<const std::int32_t*>(p);
    case Dtype::uint32: return *reinterpret_cast<const std::uint32_t*>(p);
    case Dtype::int16: return *reinterpret_cast<const std::int16_t*>(p);
    case Dtype::uint16: return *reinterpret_cast<const std::uint16_t*>(p);
    case Dtype::int8: return *reinterpret_cast<const std::int8_t*>(p);
    default: return *reinterpret_cast<const std::uint8_t*>(p);
  }
}

// --- what others are told ---

/// *word = value, for whoever may read it. Who sees the value sees what this thread has written
/// before, and what others had written when this thread came to a barrier with them. (A fence that
/// orders all accesses alike takes a microsecond or two more.)
__device__ __forceinline__ void store_release(unsigned* word, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ __forceinline__ void store_release(unsigned long long* word, unsigned long long value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

/// *word. What was written before that value was released is seen by what this thread reads later.
__device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* word) {
  unsigned long long value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// --- bad values ---

/// Where a kernel reports a value out of range.
struct ErrorSink {
  ErrorWord* word = nullptr;
  const char* operation = nullptr;

  ErrorSink() = default;
  ErrorSink(const char* name, const LaunchContext& context)
      : word(static_cast<ErrorWord*>(context.error_word)), operation(name) {}

  __device__ __forceinline__ void report(ReportedError error, long long value,
                                         long long bound) const {
    // Atomic among the GPU's kernels, which alone end `empty`; the host alone ends `written`.
    if (atomicCAS(&word->state, ErrorWord::empty, ErrorWord::busy) == ErrorWord::empty) {
      word->report = {error, operation, value, bound};
      store_release(&word->state, ErrorWord::written);
    }
  }
};

#endif  // __CUDACC__

}  // namespace rensa::cuda
