// Comparisons of arrays with a tolerance, in one pass.
#pragma once

#include "rensa/core/closeness.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[i] = whether a[i] and b[i] are close. a and b have out's shape (stride 0 where broadcast)
/// and any real dtype; out is a C-contiguous bool array.
struct IsClose final : KindOf<IsClose> {
  explicit IsClose(const char* name = "isclose") : KindOf(name) {}
  Closeness closeness;
  Operand a, b, out;

  template <class V> void fields(V& v) {
    v.read(a, b), v.write(out);
    v.number(closeness.rtol, closeness.atol, closeness.equal_nan);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out = whether all elements of a and b are close, or with `bits`, equal bit by bit. a and b are
/// C-contiguous, of one size and one dtype, a real floating one but for `bits`; out is one bool.
struct AllClose final : KindOf<AllClose> {
  explicit AllClose(const char* name) : KindOf(name) {}
  Closeness closeness;
  bool bits = false;
  Operand a, b, out;

  template <class V> void fields(V& v) {
    v.read(a, b), v.write(out);
    v.number(closeness.rtol, closeness.atol, closeness.equal_nan, bits);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
