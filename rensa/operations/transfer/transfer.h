// Copies between devices.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = in between two devices, or host and device; both C-contiguous, one dtype and size. Host
/// memory that is not pinned makes the copy wait (counted).
struct Transfer final : KindOf<Transfer> {
  explicit Transfer(const char* name = "copyto") : KindOf(name) {}
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), v.write(out); }
  bool is_between_devices() const override { return true; }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
