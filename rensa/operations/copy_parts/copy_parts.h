// Copies of several arrays at once.
#pragma once

#include <vector>

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = in for every pair, each of one shape and one dtype. No `in` may share memory with any
/// `out`. On a GPU small pairs go in few launches: what concatenate, roll and insert are made of.
struct CopyParts final : KindOf<CopyParts> {
  struct Part {
    Operand in, out;
  };
  explicit CopyParts(const char* name) : KindOf(name) {}
  std::vector<Part> parts;

  template <class V> void fields(V& v) {
    for (Part& part : parts) v.read(part.in);
    for (Part& part : parts) v.write(part.out);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
