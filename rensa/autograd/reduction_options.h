// The keywords of functions that reduce axes: F::sum(x, {.axis = {0, 2}, .keepdims = true}).
#pragma once

#include "rensa/array/options.h"

namespace rensa::functions {

struct ReduceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};         // all when left out
  bool keepdims = false;  // the reduced axes stay, of extent 1
};

/// The keywords of var and std.
struct VarianceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};         // all when left out
  double ddof = 0;        // what is taken off the count that the squares are divided by
  bool keepdims = false;  // the reduced axes stay, of extent 1
};

}  // namespace rensa::functions
