// Conversion of stored elements to values and back, and fills, for one instruction set.
#include "rensa/backend/cpu/convert_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host::RENSA_SET {

namespace {

/// Reads a stored element; a bool may be any byte.
template <class T> RENSA_FN T load_element(const char* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const unsigned char*>(p) != 0;
  } else {
    return *reinterpret_cast<const T*>(p);
  }
}

template <class T, class V>
void load(std::int64_t n, const char* src, std::int64_t stride, void* dst) {
  V* out = static_cast<V*>(dst);
  if (stride == static_cast<std::int64_t>(sizeof(T))) {
    RENSA_IVDEP
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = convert<V>(load_element<T>(src + i * static_cast<std::int64_t>(sizeof(T))));
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<V>(load_element<T>(src + i * stride));
  }
}

// out[i] = in[i], by the processor's instruction where it has one, but for the last few: returns
// how many. The instruction keeps what it can of a NaN's bits, and half_t has one NaN of each sign.
std::int64_t store_halves(std::int64_t n, const float* in, half_t* out) {
  std::int64_t i = 0;
#if defined(__F16C__)
  constexpr std::int64_t kStep = 32;
  for (; i + kStep <= n; i += kStep) {
    __m256 x[kStep / 8];
    for (int k = 0; k < kStep / 8; ++k) x[k] = _mm256_loadu_ps(in + i + 8 * k);
    __m256 is_nan = _mm256_or_ps(_mm256_cmp_ps(x[0], x[1], _CMP_UNORD_Q),
                                 _mm256_cmp_ps(x[2], x[3], _CMP_UNORD_Q));
    for (int k = 0; k < kStep / 8; ++k) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i + 8 * k),
                       _mm256_cvtps_ph(x[k], _MM_FROUND_TO_NEAREST_INT));
    }
    if (_mm256_movemask_ps(is_nan) == 0) continue;
    for (std::int64_t k = i; k < i + kStep; ++k) out[k] = half_t(in[k]);
  }
#else
  (void)n, (void)in, (void)out;
#endif
  return i;
}

template <class T, class V>
void store(std::int64_t n, const void* src, char* dst, std::int64_t stride) {
  const V* in = static_cast<const V*>(src);
  if (stride == static_cast<std::int64_t>(sizeof(T))) {
    T* out = reinterpret_cast<T*>(dst);
    std::int64_t done = 0;
    if constexpr (std::is_same_v<T, half_t> && std::is_same_v<V, float>) {
      done = store_halves(n, in, out);
    }
    RENSA_IVDEP
    for (std::int64_t i = done; i < n; ++i) out[i] = convert<T>(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(dst + i * stride) = convert<T>(in[i]);
    }
  }
}

// out[i] = the one element that `value` points to
template <class T> void fill_of(std::int64_t n, const void* value, void* out) {
  T element;
  std::memcpy(&element, value, sizeof(T));
  char* at = static_cast<char*>(out);
  for (std::int64_t i = 0; i < n; ++i, at += sizeof(T)) std::memcpy(at, &element, sizeof(T));
}
void fill(std::int64_t n, const void* value, std::int64_t size, void* out) {
  switch (size) {
    case 1: return fill_of<std::uint8_t>(n, value, out);
    case 2: return fill_of<std::uint16_t>(n, value, out);
    case 4: return fill_of<std::uint32_t>(n, value, out);
    case 8: return fill_of<std::uint64_t>(n, value, out);
    default: return fill_of<complex_t<double>>(n, value, out);
  }
}

template <class V> void add(KernelTable& table) {
  constexpr int type = static_cast<int>(compute_type_of<V>);
#define RENSA_STORAGE(d, T)                                  \
  table.load[static_cast<int>(Dtype::d)][type] = load<T, V>; \
  table.store[static_cast<int>(Dtype::d)][type] = store<T, V>;
  RENSA_STORAGE_TYPES(RENSA_STORAGE)
#undef RENSA_STORAGE
}

}  // namespace

void add_conversions(KernelTable& table) {
  each_value_type([&]<class V>() { add<V>(table); });
  table.fill = fill;
}

}  // namespace rensa::host::RENSA_SET
