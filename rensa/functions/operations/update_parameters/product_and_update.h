// A product that gives a parameter's gradient, and SGD's update with it, in one pass.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

/// The product, then the update of one parameter, bit for bit: SGD's, of float32, whose gradient is
/// the product's c. A GPU has one kernel for both where the product takes_update(); capture then
/// makes this of them, and no launch follows the last gradient.
struct ProductAndUpdate final : KindOf<ProductAndUpdate> {
  /// `target` is one of those of `of_all`, where it is to be taken out.
  ProductAndUpdate(const Matmul& gradient, const UpdateParameters& of_all,
                   const UpdateTarget& target);
  Matmul product;
  UpdateParameters update;  // of the target alone, with its set of hyperparameters alone

  template <class V> void fields(V& v) {
    product.fields(v);
    v.update(update.targets[0].parameter);
    for (HostScalar& number : update.hyperparameters) v.scalar(number);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;

 private:
  /// Has the update find what the product writes.
  void connect() { update.targets[0].gradient = product.c; }
};

}  // namespace rensa::operations
