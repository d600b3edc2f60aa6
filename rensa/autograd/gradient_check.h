// Checks of a function's gradients against differences of its values, for tests of new functions.
#pragma once

#include <functional>

#include "rensa/autograd/function_node.h"
#include "rensa/autograd/parameter.h"

namespace rensa::gradient_check {

/// The function under test.
using Function = std::function<Variables(const Variables&)>;

struct Options {
  double eps = 1e-3;   // step of the differences
  double atol = 1e-5;  // |numerical - analytical| <= atol + rtol * |analytical|
  double rtol = 1e-4;  // as in `atol`'s line
};

/// Gradients of sum(f() * grad_outputs) by central differences, element by element: f reads
/// `inputs`, which are changed in place and restored. Throws ValueError for a broadcast one.
/// float64, on the host.
Arrays numerical_grad(const std::function<Arrays()>& f, const Arrays& inputs,
                      const Arrays& grad_outputs, double eps = 1e-3);

/// Compares the derivative of `f` at `inputs` that backward gives with a difference, along a random
/// direction of length 1. `grad_outputs` weigh the outputs; empty for ones. `params` are parameters
/// that f uses; inputs of other than floating dtypes are left alone. float64 inputs are advised.
/// Throws ValueError with both numbers where they differ.
void check_backward(const Function& f, const Arrays& inputs, const Arrays& grad_outputs = {},
                    const std::vector<ParameterRef>& params = {}, const Options& options = {});

/// check_backward of the gradients of `f` as functions of the inputs, the parameters and
/// grad_outputs.
void check_double_backward(const Function& f, const Arrays& inputs, const Arrays& grad_outputs = {},
                           const std::vector<ParameterRef>& params = {},
                           const Options& options = {});

}  // namespace rensa::gradient_check
