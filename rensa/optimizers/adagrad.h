// AdaGrad and AdaDelta.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct AdaGradOptions {
  double lr = 0.001;
  double eps = 1e-8;
  void fields(auto&& v) { v("lr", lr), v("eps", eps); }
};

/// Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic
/// optimization": h += grad^2; param -= lr * grad / (sqrt(h) + eps).
class AdaGrad : public Optimizer {
 public:
  explicit AdaGrad(const AdaGradOptions& options = {});
  explicit AdaGrad(double lr) : AdaGrad(AdaGradOptions{.lr = lr}) {}
  double& lr() const { return attribute("lr"); }
};

struct AdaDeltaOptions {
  double rho = 0.95;
  double eps = 1e-6;
  void fields(auto&& v) { v("rho", rho), v("eps", eps); }
};

/// Zeiler, "ADADELTA: an adaptive learning rate method": msg and msdx are the running means (rho)
/// of grad^2 and dx^2; dx = sqrt((msdx + eps) / (msg + eps)) * grad; param -= dx.
class AdaDelta : public Optimizer {
 public:
  explicit AdaDelta(const AdaDeltaOptions& options = {});
};

}  // namespace rensa::optimizers
