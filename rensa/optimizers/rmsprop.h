// RMSprop, Graves' form of it, and SMORMS3.
#pragma once

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

struct RMSpropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  bool eps_inside_sqrt = false;
  void fields(auto&& v) { v("lr", lr), v("alpha", alpha), v("eps", eps); }
};

/// Tieleman and Hinton: ms = alpha * ms + (1 - alpha) * grad^2;
/// param -= lr * grad / (sqrt(ms) + eps), or / sqrt(ms + eps) with eps_inside_sqrt.
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
  explicit RMSprop(double lr) : RMSprop(RMSpropOptions{.lr = lr}) {}
  double& lr() const { return attribute("lr"); }
};

struct RMSpropGravesOptions {
  double lr = 1e-4;
  double alpha = 0.95;
  double momentum = 0.9;
  double eps = 1e-4;
  void fields(auto&& v) { v("lr", lr), v("alpha", alpha), v("momentum", momentum), v("eps", eps); }
};

/// Graves, "Generating sequences with recurrent neural networks": n and g are the running means
/// (alpha) of grad^2 and grad; delta = momentum * delta - lr * grad / sqrt(n - g^2 + eps);
/// param += delta.
class RMSpropGraves : public Optimizer {
 public:
  explicit RMSpropGraves(const RMSpropGravesOptions& options = {});
  double& lr() const { return attribute("lr"); }
};

struct SMORMS3Options {
  double lr = 0.001;
  double eps = 1e-16;
  void fields(auto&& v) { v("lr", lr), v("eps", eps); }
};

/// Simon Funk's SMORMS3, "squared mean over root mean squared cubed": r = 1 / (mem + 1), g and g2
/// are the running means (1 - r) of grad and grad^2, x = g^2 / (g2 + eps),
/// mem = 1 + mem * (1 - x); param -= grad * min(lr, x) / (sqrt(g2) + eps).
class SMORMS3 : public Optimizer {
 public:
  explicit SMORMS3(const SMORMS3Options& options = {});
  explicit SMORMS3(double lr) : SMORMS3(SMORMS3Options{.lr = lr}) {}
  double& lr() const { return attribute("lr"); }
};

}  // namespace rensa::optimizers
