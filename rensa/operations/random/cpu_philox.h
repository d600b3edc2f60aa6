// What the CPU's random numbers share. What element i gets follows from i alone (core/philox.h), so
// the chunks and threads leave no trace.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/philox.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/host_scalar.h"
#include "rensa/operations/random/cpu_kernels.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

inline constexpr std::int64_t kRandomGrain = 8 * kChunk;  // elements worth waking a thread for

/// Calls f(begin, n, words) for chunks of [0, size): words[0] is the first word of element `begin`,
/// `per_element` words belong to each.
template <class F>
void for_each_chunk(std::int64_t size, int per_element, const HostScalar& seed,
                    const HostScalar& offset, const F& f) {
  parallel_for(size, kRandomGrain, [&](std::int64_t begin, std::int64_t end) {
    std::uint32_t words[4 * kChunk];
    for (; begin < end; begin += kChunk) {
      std::int64_t n = std::min(kChunk, end - begin);
      // kChunk is a multiple of four: a chunk starts at the first word of a counter.
      random_kernels().philox(
          static_cast<unsigned long long>(seed.integer),
          static_cast<unsigned long long>(offset.integer + begin * per_element / 4),
          (n * per_element + 3) / 4, words);
      f(begin, n, words);
    }
  });
}

/// The least word, shifted by 8 bits, of which uniform_float is `ratio` or more. (A comparison of
/// integers becomes one of vectors on every machine.)
inline std::int32_t least_kept(float ratio) {
  return static_cast<std::int32_t>(std::ceil(ratio * 16777216.0f));
}
inline bool is_kept(std::uint32_t word, std::int32_t least) {
  return static_cast<std::int32_t>(word >> 8) >= least;
}

template <class V> V uniform_value(const std::uint32_t* words, std::int64_t i) {
  if constexpr (sizeof(V) == 8) return uniform_double(words[2 * i], words[2 * i + 1]);
  else return uniform_float(words[i]);
}

/// Stores a chunk of values into a C-contiguous array of any dtype.
template <class V>
void store_chunk(const ArrayView& out, std::int64_t begin, std::int64_t n, const V* v) {
  std::int64_t size = itemsize(out.dtype);
  kernels().store_of(out.dtype, compute_type_of<V>)(n, v, out.data + begin * size, size);
}

}  // namespace rensa::host
