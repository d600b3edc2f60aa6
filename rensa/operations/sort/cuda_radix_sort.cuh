// The definitions of cuda_radix_sort.h, for the files that make them.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <utility>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/sort/cuda_radix_sort.h"

namespace rensa::cuda {

template <class Key>
void radix_sort_keys(const char* operation, const Key* in, Key* out, std::int64_t n, void* temp,
                     std::size_t& bytes, void* stream) {
  RENSA_CUDA_CHECK(operation, cub::DeviceRadixSort::SortKeys(temp, bytes, in, out, n, 0,
                                                             static_cast<int>(8 * sizeof(Key)),
                                                             static_cast<cudaStream_t>(stream)));
}

template <class Key>
void radix_sort_buffers(const char* operation, Key* (&keys)[2], std::int64_t n, int bits,
                        void* temp, std::size_t& bytes, void* stream) {
  cub::DoubleBuffer<Key> buffer(keys[0], keys[1]);
  RENSA_CUDA_CHECK(operation, cub::DeviceRadixSort::SortKeys(temp, bytes, buffer, n, 0, bits,
                                                             static_cast<cudaStream_t>(stream)));
  if (buffer.Current() != keys[0]) std::swap(keys[0], keys[1]);
}

template <class Key, class Value>
void radix_sort_pairs(const char* operation, Key* (&keys)[2], Value* (&values)[2], std::int64_t n,
                      int bits, void* temp, std::size_t& bytes, void* stream) {
  cub::DoubleBuffer<Key> key_buffer(keys[0], keys[1]);
  cub::DoubleBuffer<Value> value_buffer(values[0], values[1]);
  RENSA_CUDA_CHECK(
      operation, cub::DeviceRadixSort::SortPairs(temp, bytes, key_buffer, value_buffer, n, 0, bits,
                                                 static_cast<cudaStream_t>(stream)));
  if (key_buffer.Current() != keys[0]) std::swap(keys[0], keys[1]);
  if (value_buffer.Current() != values[0]) std::swap(values[0], values[1]);
}

#define RENSA_RADIX_KEYS(Key)                                                                     \
  template void radix_sort_keys(const char*, const Key*, Key*, std::int64_t, void*, std::size_t&, \
                                void*);
#define RENSA_RADIX_BUFFERS(Key)                                                      \
  template void radix_sort_buffers(const char*, Key*(&)[2], std::int64_t, int, void*, \
                                   std::size_t&, void*);
#define RENSA_RADIX_PAIRS(Key, Value)                                                             \
  template void radix_sort_pairs(const char*, Key*(&)[2], Value*(&)[2], std::int64_t, int, void*, \
                                 std::size_t&, void*);

}  // namespace rensa::cuda
