// FlatView: a C-contiguous array of any dtype, or a single number, as a kernel gets it.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

#if defined(__CUDACC__)
// load_any and load_integer as functions, so that what is loaded without them has little code.
template <class V> __device__ __noinline__ V load_converted(const char* p, ElementType type) {
  return load_any<V>(p, type);
}
static __device__ __noinline__ long long load_rare_integer(const char* p, Dtype dtype) {
  return load_integer(p, dtype);
}
#endif

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
    const char* p = data + (i << type.log2_size);
    bool same = type.dtype == value_dtype(compute_type_of<V>) && !type.truth;
    return same ? *reinterpret_cast<const V*>(p) : load_converted<V>(p, type);
  }
  __device__ __forceinline__ long long load_index(std::int64_t i) const {
    const char* p = data + (i << type.log2_size);
    if (type.dtype == Dtype::int32) return *reinterpret_cast<const std::int32_t*>(p);
    if (type.dtype == Dtype::int64) return *reinterpret_cast<const long long*>(p);
    return load_rare_integer(p, type.dtype);
  }
  template <class V> __device__ __forceinline__ void store(std::int64_t i, V value) const {
    store_any<V>(data + (i << type.log2_size), type.dtype, value);
  }
#endif
};

}  // namespace rensa::cuda
