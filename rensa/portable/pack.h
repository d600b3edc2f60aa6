// Elements that move together. Read by the host's compiler, by nvcc and by NVRTC.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

/// W elements that move in one load or store where they lie at a multiple of their size.
template <class T, int W> struct alignas(sizeof(T) * W) Pack {
  T value[W];

  /// Sets all elements.
  RENSA_FN void fill(T element) {
    for (int i = 0; i < W; ++i) value[i] = element;
  }
  /// The pack number `index` of those at `data`, or, where `count` is less than W, its first
  /// `count` elements: one after the other, and the rest stay as they are.
  RENSA_FN void load(const char* data, long long index, int count) {
    const T* from = reinterpret_cast<const T*>(data) + index * W;
    if (count == W) {
      *this = *reinterpret_cast<const Pack*>(from);
    } else {
      for (int i = 0; i < count; ++i) value[i] = from[i];
    }
  }
  /// The other way.
  RENSA_FN void store(char* data, long long index, int count) const {
    T* to = reinterpret_cast<T*>(data) + index * W;
    if (count == W) {
      *reinterpret_cast<Pack*>(to) = *this;
    } else {
      for (int i = 0; i < count; ++i) to[i] = value[i];
    }
  }
};

}  // namespace rensa
