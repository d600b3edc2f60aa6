// What the files of xp::random share: checks of parameters, and their way into a result.
#pragma once

#include <initializer_list>

#include "rensa/array/random.h"

namespace rensa::xp::random::detail {

/// What a parameter may be.
enum class Domain { any, non_negative, positive, probability, above_one };

/// Throws ValueError naming `operation` and the parameter unless a number lies in the domain;
/// arrays pass.
void check_number(const char* operation, const char* parameter, const Parameter& value,
                  Domain domain);

/// Throws DtypeError naming `operation` unless `dtype` is a floating one.
void check_floating(const char* operation, Dtype dtype);

/// What `shape` and the parameter broadcast to.
Shape joint_shape(const char* operation, const Shape& shape, const Parameter& parameter);

/// `size`, to which `shape` has to broadcast, or `shape` where none is given.
Shape fit_size(const char* operation, const Shape& shape, const Size& size);

/// out = ufunc(out, parameter), in place.
void combine(const char* operation, Ufunc ufunc, const Array& out, const Parameter& parameter);

/// The stable order of keys (uint64, one-dimensional).
Array order_of(const Array& keys);

}  // namespace rensa::xp::random::detail
