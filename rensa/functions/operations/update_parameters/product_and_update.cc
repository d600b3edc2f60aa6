// A product and one parameter's update, taken from a product and the update of many.
#include "rensa/functions/operations/update_parameters/product_and_update.h"

namespace rensa::operations {

ProductAndUpdate::ProductAndUpdate(const Matmul& gradient, const UpdateParameters& of_all,
                                   const UpdateTarget& target)
    : KindOf("product_and_update"), product(gradient), update(of_all.name(), of_all.rule) {
  update.set_size = of_all.set_size;
  auto first = of_all.hyperparameters.begin() + target.set * of_all.set_size;
  update.hyperparameters.assign(first, first + of_all.set_size);
  update.targets.push_back(target);
  update.targets[0].set = 0;
}

void ProductAndUpdate::run_cpu() {
  connect();
  product.run_cpu();
  update.run_cpu();
}

}  // namespace rensa::operations
