// The functors of update_rules.def. Read by the host compiler and nvcc.
#pragma once

#include "rensa/core/functors.h"
#include "rensa/core/update_rule_ids.h"

namespace rensa {

namespace update {

/// How many names there are in "mem = 1, g = 0".
constexpr int count_names(const char* text) {
  int count = *text != '\0';
  for (; *text != '\0'; ++text) count += *text == ',';
  return count;
}

#define RENSA_NAMES(...) #__VA_ARGS__
#define RENSA_MEMBERS(...) __VA_OPT__(V __VA_ARGS__;)
// A rule for one element: its states and hyperparameters, one value after the other, and the
// statements, which see them by their names.
#define RENSA_UPDATE_RULE(rule, what, states, hyperparameters, ...)                             \
  template <class V> struct rule {                                                              \
    RENSA_MEMBERS states RENSA_MEMBERS hyperparameters static constexpr UpdateChanges changes = \
        UpdateChanges::what;                                                                    \
    static constexpr int num_states = count_names(RENSA_NAMES states);                          \
    static constexpr int num_hyperparameters = count_names(RENSA_NAMES hyperparameters);        \
    RENSA_FN void apply([[maybe_unused]] V& param, [[maybe_unused]] V& grad) { __VA_ARGS__ }    \
  };
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
#undef RENSA_MEMBERS
#undef RENSA_NAMES

/// The states and hyperparameters of a rule as an array.
template <template <class> class Rule, class V> RENSA_FN V* values_of(Rule<V>& rule) {
  static_assert(sizeof(Rule<V>) ==
                sizeof(V) * (Rule<V>::num_states + Rule<V>::num_hyperparameters));
  return reinterpret_cast<V*>(&rule);
}

}  // namespace update

}  // namespace rensa
