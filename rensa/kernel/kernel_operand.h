// Arguments of generated kernels: what they are, and as the bytes of the kernel's one struct.
#pragma once

#include <cstring>

#include "rensa/core/scalar.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"

namespace rensa::detail {

/// How an argument reaches a generated kernel.
enum class ArgumentKind : unsigned char {
  number,
  element,  // an array that broadcasts to the loop's shape: its element
  raw,      // an array as it is, indexed by the kernel
  kept,     // of a reduction: an array of the result's shape, read or written after reducing
};

/// One argument of a call.
struct KernelOperand {
  ArgumentKind kind = ArgumentKind::element;
  Dtype dtype = Dtype::float32;
  bool written = false;
  bool loaded = true;  // false: an output whose earlier values are not read
  Operand array;       // whoever makes the operand keeps it alive
  Scalar number;
};

/// Writes the struct of a generated kernel, member after member; numbers lie at multiples of 16.
class ArgumentWriter {
 public:
  explicit ArgumentWriter(operations::KernelArgument& argument) : argument_(argument) {}
  std::size_t size() const { return argument_.bytes.size(); }
  void pointer(const Operand& array, bool written) {
    argument_.pointers.push_back({size(), written, array});
    put(std::int64_t{0});
  }
  void integers(const Shape& values) {
    for (std::int64_t value : values) put(value);
  }
  template <class T> void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::size_t at = size();
    argument_.bytes.resize(at + sizeof(T));
    std::memcpy(argument_.bytes.data() + at, &value, sizeof(T));
  }
  void number(Scalar value, Dtype dtype) {
    align();
    visit_dtype(dtype, [&](auto zero) { put(value.as<decltype(zero)>()); });
  }
  void align(std::size_t to = 16) { argument_.bytes.resize((size() + to - 1) / to * to); }

 private:
  operations::KernelArgument& argument_;
};

}  // namespace rensa::detail
