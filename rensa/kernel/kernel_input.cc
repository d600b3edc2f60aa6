#include "rensa/kernel/kernel_input.h"

#include <cstring>

namespace rensa {

KernelInput::KernelInput(std::complex<float> value) : scalar_(value), is_number_(true) {
  copy(&value, sizeof value);
}
KernelInput::KernelInput(std::complex<double> value) : scalar_(value), is_number_(true) {
  copy(&value, sizeof value);
}

const std::byte* KernelInput::bytes() const {
  return size_ > bytes_.size() ? large_.data() : bytes_.data();
}

void KernelInput::copy(const void* value, std::size_t size) {
  size_ = size;
  if (size > bytes_.size()) large_.resize(size);
  std::memcpy(size > bytes_.size() ? large_.data() : bytes_.data(), value, size);
}

}  // namespace rensa
