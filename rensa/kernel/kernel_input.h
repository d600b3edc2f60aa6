// KernelInput: what a kernel of the user's is called with.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

/// An array, a number, or any other value that can be copied as bytes: a struct, of at most 4000.
class KernelInput {
 public:
  KernelInput(const Array& a) : array_(a), is_array_(true) {}
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::derived_from<T, Array>)
      KernelInput(const T& value) {
    static_assert(sizeof(T) <= 4000,
                  "a kernel's arguments have 4 KiB; give larger values by an array");
    copy(&value, sizeof(T));
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, half_t> ||
                  std::same_as<T, bfloat16_t>) {
      scalar_ = Scalar(value), is_number_ = true;
    }
  }
  KernelInput(std::complex<float> value);
  KernelInput(std::complex<double> value);

  bool is_array() const { return is_array_; }       // whether it is an array
  bool is_number() const { return is_number_; }     // whether it is a number, with a dtype
  const Array& array() const { return array_; }     // where it is one
  const Scalar& scalar() const { return scalar_; }  // where it is a number
  /// The value, where it is no array.
  const std::byte* bytes() const;
  std::size_t size() const { return size_; }  // of the value, in bytes

 private:
  void copy(const void* value, std::size_t size);

  Array array_;
  Scalar scalar_;
  alignas(16) std::array<std::byte, 64> bytes_{};
  std::vector<std::byte> large_;  // what has no room there
  std::size_t size_ = 0;
  bool is_array_ = false, is_number_ = false;
};

}  // namespace rensa
