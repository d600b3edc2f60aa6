// FlatView: a C-contiguous array of any dtype, or a single number, as a kernel gets it.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

struct FlatView {
  char* data = nullptr;
  ElementType type;

  FlatView() = default;
  /// Elements are loaded as values of `compute`.
  explicit FlatView(const ArrayView& view, ComputeType compute = ComputeType::c128)
      : data(view.data), type(view.dtype, compute, false) {}

  FlatView from(std::int64_t i) const {
    FlatView rest = *this;
    rest.data += i << type.log2_size;
    return rest;
  }

#if defined(__CUDACC__)
  template <class T> __device__ __forceinline__ T* as() const { return reinterpret_cast<T*>(data); }
  template <class V> __device__ __forceinline__ V load(std::int64_t i) const {
    return load_any<V>(data + (i << type.log2_size), type);
  }
  __device__ __forceinline__ long long load_index(std::int64_t i) const {
    return load_integer(data + (i << type.log2_size), type.dtype);
  }
  template <class V> __device__ __forceinline__ void store(std::int64_t i, V value) const {
    store_any<V>(data + (i << type.log2_size), type.dtype, value);
  }
#endif
};

}  // namespace rensa::cuda
