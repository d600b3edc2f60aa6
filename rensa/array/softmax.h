// Softmax along an axis.
#pragma once

#include "rensa/array/array.h"

namespace rensa::xp {

/// exp(a) / sum(exp(a)) along `axis`, computed from a - max(a) so that it does not overflow.
/// Floating dtypes give their own, others floating_dtype's. Throws DtypeError for complex numbers,
/// IndexError for an axis that is not there.
[[nodiscard]] Array softmax(const Array& a, int axis = -1);
/// The logarithm of softmax: a - max(a) - log(sum(exp(a - max(a)))).
[[nodiscard]] Array log_softmax(const Array& a, int axis = -1);

}  // namespace rensa::xp
