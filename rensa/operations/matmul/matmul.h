// Products of matrices.
#pragma once

#include <cstdint>

#include "rensa/core/use_tf32.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// What a product's last pass does to what it stores, after the bias: the function of that name,
/// bit for bit.
enum class Activation : std::uint8_t { none, relu, tanh };

/// c = alpha * a @ b (+ bias) (then the activation), or 0 where a `gate` is not positive: relu's
/// gradient, of which the gate is relu's result. a is (..., m, k), b (..., k, n), c (..., m, n),
/// one dtype, equal leading axes (stride 0 where broadcast); bias is (n,), the gate lies as c does.
/// The last two axes of a and b may be transposed views.
struct Matmul final : KindOf<Matmul> {
  Matmul() : KindOf("matmul") {}
  explicit Matmul(const char* name) : KindOf(name) {}
  double alpha = 1;
  Activation activation = Activation::none;  // tanh where takes_ends() says so
  UseTf32 tf32;                              // taken from Config when the operation is made
  bool autotune = false;
  bool gate_follows = false;  // what comes next is likely a gate: the plan is chosen for both
  Operand a, b, bias, gate, c;

  template <class V> void fields(V& v) {
    v.read(a, b, bias, gate), v.write(c),
        v.number(alpha, activation, tf32, tf32.is_x3(), gate_follows);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
  /// Whether tanh as the activation, of float32, or a gate saves a pass: where one kernel of ours
  /// computes the product.
  bool takes_ends() const;
  /// Whether one kernel of ours has whole rows of c, of a few floats, at a time: an operation may
  /// make something of them there.
  bool has_rows() const;
  /// Whether one kernel of ours does SGD's update with what it stores (cuda::SgdUpdate): no factor,
  /// bias, gate or activation follows the sums.
  bool takes_update() const;
  /// Whether a GPU adds up each sum in k's order, as that is short.
  bool adds_in_order() const;
};

}  // namespace rensa::operations
