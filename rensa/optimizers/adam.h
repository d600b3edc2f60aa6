// Adam.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct AdamOptions {
  double alpha = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double eta = 1;                // schedule multiplier, of Loshchilov and Hutter
  double weight_decay_rate = 0;  // decoupled from the gradient, as there
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", in the form that corrects the step
/// size: alpha_t = alpha * sqrt(1 - beta2^t) / (1 - beta1^t),
/// param -= eta * (alpha_t * m / (sqrt(v) + eps) + weight_decay_rate * param).
class Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
  explicit Adam(double alpha) : Adam(AdamOptions{.alpha = alpha}) {}
  double& alpha() const { return attribute("alpha"); }
};

}  // namespace rensa::optimizers
