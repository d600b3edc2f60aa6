// SGD and momentum SGD.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct SGDOptions {
  double lr = 0.01;
};

/// param -= lr * grad.
class SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
  explicit SGD(double lr) : SGD(SGDOptions{lr}) {}
  double& lr() const { return attribute("lr"); }
};

struct MomentumSGDOptions {
  double lr = 0.01;
  double momentum = 0.9;
};

/// v = momentum * v - lr * grad; param += v.
class MomentumSGD : public Optimizer {
 public:
  explicit MomentumSGD(const MomentumSGDOptions& options = {});
  explicit MomentumSGD(double lr, double momentum = 0.9)
      : MomentumSGD(MomentumSGDOptions{lr, momentum}) {}
  double& lr() const { return attribute("lr"); }
  double& momentum() const { return attribute("momentum"); }
};

}  // namespace rensa::optimizers
