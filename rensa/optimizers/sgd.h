// SGD and its kin with momentum.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct SGDOptions {
  double lr = 0.01;
  void fields(auto&& v) { v("lr", lr); }
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
  void fields(auto&& v) { v("lr", lr), v("momentum", momentum); }
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

/// MomentumSGD whose velocity does not change with lr: v = momentum * v - grad; param += lr * v.
class CorrectedMomentumSGD : public Optimizer {
 public:
  explicit CorrectedMomentumSGD(const MomentumSGDOptions& options = {});
  explicit CorrectedMomentumSGD(double lr, double momentum = 0.9)
      : CorrectedMomentumSGD(MomentumSGDOptions{lr, momentum}) {}
  double& lr() const { return attribute("lr"); }
  double& momentum() const { return attribute("momentum"); }
};

/// Nesterov's accelerated gradient: v = momentum * v - lr * grad;
/// param += momentum * v - lr * grad.
class NesterovAG : public Optimizer {
 public:
  explicit NesterovAG(const MomentumSGDOptions& options = {});
  explicit NesterovAG(double lr, double momentum = 0.9)
      : NesterovAG(MomentumSGDOptions{lr, momentum}) {}
  double& lr() const { return attribute("lr"); }
  double& momentum() const { return attribute("momentum"); }
};

}  // namespace rensa::optimizers
