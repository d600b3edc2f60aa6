// Adam and its kin.
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
  bool amsgrad = false;          // AMSGrad: the greatest v so far instead of v
  bool adabound = false;         // AdaBound: the step of each element within bounds
  double final_lr = 0.1;         // what the bounds approach, as alpha is now against at first
  double gamma = 0.001;          // how fast they do
  void fields(auto&& v) {
    v("alpha", alpha), v("beta1", beta1), v("beta2", beta2), v("eps", eps), v("eta", eta);
    v("weight_decay_rate", weight_decay_rate), v("final_lr", final_lr), v("gamma", gamma);
  }
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

/// Loshchilov and Hutter, "Decoupled weight decay regularization": Adam that is to be given a
/// weight_decay_rate (and eta, as a schedule).
class AdamW : public Adam {
 public:
  explicit AdamW(const AdamOptions& options = {}) : Adam(options) {}
};

/// Reddi, Kale and Kumar, "On the convergence of Adam and beyond": Adam with .amsgrad.
class AMSGrad : public Adam {
 public:
  explicit AMSGrad(AdamOptions options = {}) : Adam((options.amsgrad = true, options)) {}
};

/// Luo et al., "Adaptive gradient methods with dynamic bound of learning rate": Adam with
/// .adabound: each element's step lies within final_lr * (1 -+ 1 / (gamma * t (+ 1))), final_lr
/// times as much as alpha has changed since the optimizer was made.
class AdaBound : public Adam {
 public:
  explicit AdaBound(AdamOptions options = {}) : Adam((options.adabound = true, options)) {}
};

/// AdaBound with .amsgrad.
class AMSBound : public Adam {
 public:
  explicit AMSBound(AdamOptions options = {})
      : Adam((options.adabound = options.amsgrad = true, options)) {}
};

}  // namespace rensa::optimizers
