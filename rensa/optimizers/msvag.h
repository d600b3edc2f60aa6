// M-SVAG.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct MSVAGOptions {
  double lr = 0.1;               // learning rate
  double beta = 0.9;             // of the momentum
  double eta = 1;                // schedule multiplier
  double weight_decay_rate = 0;  // decoupled from the gradient
  void fields(auto&& v) {
    v("lr", lr), v("beta", beta), v("eta", eta), v("weight_decay_rate", weight_decay_rate);
  }
};

/// Balles and Hennig, "Dissecting Adam: the sign, magnitude and variance of stochastic gradients":
/// momentum whose elements are damped by an estimate of their gradients' variance.
class MSVAG : public Optimizer {
 public:
  explicit MSVAG(const MSVAGOptions& options = {});
  explicit MSVAG(double lr) : MSVAG(MSVAGOptions{.lr = lr}) {}
  double& lr() const { return attribute("lr"); }
};

}  // namespace rensa::optimizers
