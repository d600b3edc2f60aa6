// The loops of updates, for one instruction set.
#include "rensa/functions/operations/update_parameters/cpu_kernels.h"

// clang-format off
#include "rensa/backend/cpu/kernel_sources.h"  // before update_functors.h, which calls what it declares
#include "rensa/core/update_functors.h"
// clang-format on

namespace rensa::host::RENSA_SET {

namespace {

template <template <class> class Rule, class V>
void update_all(std::int64_t n, void* parameter, void* gradient, void* const* states,
                const double* hyperparameters) {
  using R = Rule<V>;
  constexpr int S = R::num_states;
  R rule{};
  V* values = update::values_of(rule);
  for (int k = 0; k < R::num_hyperparameters; ++k) {
    values[S + k] = static_cast<V>(hyperparameters[k]);
  }
  const R constants = rule;
  V* p = static_cast<V*>(parameter);
  V* g = static_cast<V*>(gradient);
  V* s[S + 1];
  for (int k = 0; k < S; ++k) s[k] = static_cast<V*>(states[k]);
  RENSA_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    R one = constants;
    V* state = update::values_of(one);
    for (int k = 0; k < S; ++k) state[k] = s[k][i];
    V param = p[i], grad = g[i];
    one.apply(param, grad);
    if constexpr (R::changes == UpdateChanges::gradient) {
      g[i] = grad;
    } else {
      p[i] = param;
      for (int k = 0; k < S; ++k) s[k][i] = state[k];
    }
  }
}

// In lanes that are joined pairwise, each in double.
template <class V> double sum_squares(std::int64_t n, const void* values) {
  constexpr int kLanes = 16;
  const V* x = static_cast<const V*>(values);
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      double value = static_cast<double>(x[i + l]);
      lanes[l] += value * value;
    }
  }
  for (int l = 0; i + l < n; ++l) {
    double value = static_cast<double>(x[i + l]);
    lanes[l] += value * value;
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

template <class V> UpdateKernels make_update_kernels() {
  return {{
#define RENSA_UPDATE_RULE(name, ...) update_all<update::name, V>,
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
          },
          sum_squares<V>};
}

}  // namespace

void get_update_kernels(UpdateKernels& f, UpdateKernels& d) {
  f = make_update_kernels<float>();
  d = make_update_kernels<double>();
}

}  // namespace rensa::host::RENSA_SET
