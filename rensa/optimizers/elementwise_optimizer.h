// ElementwiseOptimizer: an optimizer as text, compiled when the program runs.
#pragma once

#include <string>

#include "rensa/optimizers/optimizer.h"

namespace rensa::optimizers {

/// What an ElementwiseOptimizer does to one element.
struct UpdateText {
  std::string name;             // a C name, for errors and timelines
  std::string states;           // "m = 0, v = 0": arrays, and what they start from
  std::string hyperparameters;  // "lr = 0.001, beta = 0.9"
  std::string operation;        // statements, as below
  std::string preamble = {};    // in front of the kernel: functions that it calls
};

/// An optimizer of the user's own:
///
///   optimizers::ElementwiseOptimizer lion({
///       .name = "Lion",
///       .states = "m = 0",
///       .hyperparameters = "lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0",
///       .operation = R"(
///         V c = beta1 * m + (1 - beta1) * grad;
///         param -= lr * (V((c > 0) - (c < 0)) + weight_decay * param);
///         m = beta2 * m + (1 - beta2) * grad;
///       )"});
///
/// The statements change `param` and the states, by `grad`, the hyperparameters and `t`, the number
/// of the parameter's update (1 is the first); all are of the type V: float for float16, bfloat16
/// and float32, else double. Compiled like an ElementwiseKernel: one launch per parameter, after
/// one for the numbers of all. Captured steps, hooks, files, values of a parameter's own and
/// float32 copies work as with the optimizers of the library. Throws ValueError for text that
/// cannot be read, CompileError at the first update.
class ElementwiseOptimizer : public Optimizer {
 public:
  explicit ElementwiseOptimizer(const UpdateText& text);
};

}  // namespace rensa::optimizers
