// KernelInput: what a kernel of the user's is called with.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "rensa/array/array.h"

namespace rensa {

/// An array, a number, or any other value that can be copied as bytes.
class KernelInput {
 public:
  KernelInput(const Array& a) : array_(a), is_array_(true) {}
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::derived_from<T, Array>)
      KernelInput(const T& value)
      : size_(sizeof(T)) {
    static_assert(sizeof(T) <= sizeof(bytes_), "give larger values by an array");
    std::memcpy(bytes_.data(), &value, sizeof(T));
    if constexpr (std::is_arithmetic_v<T>) scalar_ = Scalar(value), is_number_ = true;
  }
  KernelInput(std::complex<float> value) : KernelInput(Scalar(value), value) {}
  KernelInput(std::complex<double> value) : KernelInput(Scalar(value), value) {}

  bool is_array() const { return is_array_; }
  bool is_number() const { return is_number_; }
  const Array& array() const { return array_; }
  const Scalar& scalar() const { return scalar_; }
  const std::byte* bytes() const { return bytes_.data(); }
  std::size_t size() const { return size_; }

 private:
  template <class T>
  KernelInput(Scalar scalar, const T& value) : scalar_(scalar), size_(sizeof(T)) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
    is_number_ = true;
  }

  Array array_;
  Scalar scalar_;
  alignas(16) std::array<std::byte, 64> bytes_{};
  std::size_t size_ = 0;
  bool is_array_ = false, is_number_ = false;
};

}  // namespace rensa
