// What loss functions share.
#pragma once

#include <string_view>

#include "rensa/autograd/autocast.h"

namespace rensa::functions {

/// Throws ShapeError, naming `function` and both, unless `a` and `b` have one shape; losses do not
/// broadcast.
void check_one_shape(const char* function, const char* name_of_a, const Variable& a,
                     const char* name_of_b, const Variable& b);

/// `losses` reduced as `reduce` says: "sum", "mean", or as they are ("no"). Throws ValueError,
/// naming `function`, for any other word.
Variable reduced(const char* function, const Variable& losses, std::string_view reduce);
/// Whether `reduce` is "mean", otherwise "no". Throws ValueError as reduced() does.
bool is_mean(const char* function, std::string_view reduce);
/// The sum of all, divided by `count`, a number or a 0-d array; what comes between is float32 at
/// least.
Variable sum_over(const Variable& losses, double count);
Variable sum_over(const Variable& losses, const Array& count);

/// The inputs of a loss that is made of several functions, as Autocast has them for it; the
/// functions take what they are given while it lives.
struct LossInputs {
  LossInputs(const char* function, const Variables& given)
      : x(autograd::autocast(function, given)), off(none) {}
  Variables x;
  Autocast off;
};

/// As constants of x's dtype: labels, targets.
Variable constant_like(const Variable& x, const Array& values);

}  // namespace rensa::functions
