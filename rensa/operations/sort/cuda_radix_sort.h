// CUB's radix sorts of a device, made for a few types in files of their own (cuda_radix_*.cu), as
// each takes long to compile. All are stable and ascending; `temp` null asks for the bytes of
// scratch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rensa::cuda {

/// out = `in` sorted; in is left as it is. float, double, and unsigned of 32 and 64 bits. Floats:
/// -0 equals 0, NaN with the sign set comes first, without it last.
template <class Key>
void radix_sort_keys(const char* operation, const Key* in, Key* out, std::int64_t n, void* temp,
                     std::size_t& bytes, void* stream);

/// Sorts keys[0] by the bits [0, bits); keys[1] is room. The result is in keys[0], which may have
/// been swapped. Unsigned of 32 and 64 bits.
template <class Key>
void radix_sort_buffers(const char* operation, Key* (&keys)[2], std::int64_t n, int bits,
                        void* temp, std::size_t& bytes, void* stream);

/// The same with a value to each key. Keys of 32 and 64 bits with values of 32 bits, 64 with 64.
template <class Key, class Value>
void radix_sort_pairs(const char* operation, Key* (&keys)[2], Value* (&values)[2], std::int64_t n,
                      int bits, void* temp, std::size_t& bytes, void* stream);

}  // namespace rensa::cuda
