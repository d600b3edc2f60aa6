// A product and SGD's update with what it gives, on a GPU.
#include "rensa/functions/operations/update_parameters/product_and_update.h"
#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::operations {

std::size_t ProductAndUpdate::workspace_bytes() const { return product.workspace_bytes(); }

void ProductAndUpdate::run_cuda(const cuda::LaunchContext& context) {
  const HostScalar& lr = update.hyperparameters[0];
  cuda::SgdUpdate sgd{reinterpret_cast<float*>(update.targets[0].parameter.view.data), lr.real,
                      static_cast<const double*>(lr.device)};
  if (cuda::run_with_update(product, sgd, context)) return;
  // The plan, or an address, is another one than when they were joined.
  connect();
  product.run_cuda(context);
  update.run_cuda(context);
}

}  // namespace rensa::operations
