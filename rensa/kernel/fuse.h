// fuse: a function of arrays as one kernel.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

namespace detail {

class FusedState;

/// Whether the thread is tracing: a fused function that is called then becomes part of the trace.
bool is_tracing();

/// Traces what the thread does from its construction to finish().
class FusedCall {
 public:
  explicit FusedCall(FusedState& state);
  ~FusedCall();
  FusedCall(const FusedCall&) = delete;
  FusedCall& operator=(const FusedCall&) = delete;
  /// Runs what was traced, as far as `results` need it, and gives them their values.
  void finish(const std::vector<Array*>& results);
  /// The CUDA C++ of the kernels that finish() would launch.
  std::vector<std::string> sources(const std::vector<Array*>& results);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::shared_ptr<FusedState> make_fused_state();
int kernels_of(const FusedState& state);

inline void collect(Array& a, std::vector<Array*>& arrays) { arrays.push_back(&a); }
template <class T> void collect(std::vector<T>& list, std::vector<Array*>& arrays) {
  for (T& a : list) collect(a, arrays);
}
template <class T, std::size_t N>
void collect(std::array<T, N>& list, std::vector<Array*>& arrays) {
  for (T& a : list) collect(a, arrays);
}
template <class... T> void collect(std::tuple<T...>& list, std::vector<Array*>& arrays) {
  std::apply([&](T&... a) { (collect(a, arrays), ...); }, list);
}
template <class A, class B> void collect(std::pair<A, B>& list, std::vector<Array*>& arrays) {
  collect(list.first, arrays);
  collect(list.second, arrays);
}

}  // namespace detail

/// What fuse() gives.
template <class F> class Fused {
 public:
  explicit Fused(F f) : f_(std::move(f)), state_(detail::make_fused_state()) {}

  /// What `f` gives. Throws what `f` does; NotImplementedError for an operation that cannot be
  /// fused, naming it; CompileError.
  template <class... A> auto operator()(A&&... arguments) const {
    if (detail::is_tracing()) return f_(std::forward<A>(arguments)...);
    detail::FusedCall call(*state_);
    auto result = f_(std::forward<A>(arguments)...);
    std::vector<Array*> arrays;
    detail::collect(result, arrays);
    call.finish(arrays);
    return result;
  }
  /// The kernels that the latest call launched.
  int kernels() const { return detail::kernels_of(*state_); }
  /// The CUDA C++ of a call's kernels, wherever its arrays are; compiles and runs nothing.
  template <class... A> std::vector<std::string> sources(A&&... arguments) const {
    detail::FusedCall call(*state_);
    auto result = f_(std::forward<A>(arguments)...);
    std::vector<Array*> arrays;
    detail::collect(result, arrays);
    return call.sources(arrays);
  }

 private:
  F f_;
  std::shared_ptr<detail::FusedState> state_;
};

/// CuPy's fuse: `auto fast = fuse(softplus);` is softplus as one kernel instead of one
/// per operation:
///   Array softplus(const Array& x) {
///     return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
///   }
/// `f` takes arrays and numbers (and whatever else) and returns an array, or a tuple, pair, array
/// or vector of arrays. Each call runs `f` on the host: what it reads, shapes and numbers and
/// arrays of its own, counts as it is then. Its operations are not run but gathered, and the
/// kernels that they make are compiled at the first call for operations, dtypes and layouts.
/// Elementwise routines, operators, astype, and sum, prod, mean, max, min, any and all may be used,
/// with views, broadcasting and full arrays; the results equal the plain call's, bit for bit
/// (float16 and bfloat16 round after each operation as they do there); but for sums of floats over
/// arrays that are not C-contiguous, which may be added in another order, and on the CPU for the
/// last bits of libm's functions, of which the machine's compiler takes what it likes. One kernel
/// takes elementwise work, a reduction, and elementwise work on its result; what needs more becomes
/// several kernels, see kernels(); long functions are cut into kernels of some tens of operations,
/// which are compiled side by side. Asking for values (item, to_vector, str, get), writing into an
/// argument, and other routines throw NotImplementedError. An array that is kept from within `f` by
/// other ways than its result has no values: to use it later throws ValueError. A fused function
/// called inside another is part of it. Works for arrays on the CPU where the machine has a C++
/// compiler.
template <class F> Fused<std::decay_t<F>> fuse(F&& f) {
  return Fused<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace rensa
