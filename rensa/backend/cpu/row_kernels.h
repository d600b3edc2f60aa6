// The loops that work on rows is made of (softmax, the normalizations of rows, attention): over n
// contiguous float or double. Outputs may be inputs.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/instruction_sets.h"

namespace rensa::host {

template <class V> struct RowKernels {
  /// out = x - by
  void (*subtract)(std::int64_t n, const V* x, V by, V* out);
  /// out = x * by
  void (*multiply)(std::int64_t n, const V* x, V by, V* out);
  /// out = x * by / divisor
  void (*scale)(std::int64_t n, const V* x, V by, V divisor, V* out);
  /// out += x
  void (*add)(std::int64_t n, const V* x, V* out);
  /// The sum of a * b, added up as reductions do.
  V (*dot)(std::int64_t n, const V* a, const V* b);
  /// out = weights * (x - by)
  void (*weigh)(std::int64_t n, const V* weights, const V* x, V by, V* out);
  /// out = x - weights * by
  void (*subtract_weighted)(std::int64_t n, const V* x, const V* weights, V by, V* out);

  /// The sum of (x - mean)^2, added up as reductions do.
  V (*squares)(std::int64_t n, const V* x, V mean);
  /// out = (x - mean) * scale * gamma + beta
  void (*normalize)(std::int64_t n, const V* x, V mean, V scale, const V* gamma, const V* beta,
                    V* out);
  /// With g = gamma * gy and x_hat = (x - mean) * scale,
  ///   out = scale * (g - (sum(g) + x_hat * sum(g * x_hat)) / n)
  /// where the sum of g counts only if `centered`.
  void (*normalize_grad)(std::int64_t n, const V* x, const V* gy, V mean, V scale, const V* gamma,
                         bool centered, V* out);
  /// sums += gy, products += gy * ((x - mean) * scale)
  void (*add_normalized)(std::int64_t n, const V* x, const V* gy, V mean, V scale, V* sums,
                         V* products);
};

/// The kernels for best_instruction_set().
template <class V> const RowKernels<V>& row_kernels();

RENSA_EACH_SET(void get_row_kernels(RowKernels<float>& f, RowKernels<double>& d);)

}  // namespace rensa::host
