// Parameters that are cut over the ranks of a group.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/autograd/parameter.h"

namespace rensa::autograd {

/// The ranks each of which has a part of what is one parameter to them all: optimizers take the
/// norm of the whole. Null for a parameter that is whole here.
const Communicator* ranks_of_parts(const ParameterRef& parameter);
/// Says that it is cut over these; copies of it are, too.
void set_ranks_of_parts(const ParameterRef& parameter, const Communicator& ranks);

}  // namespace rensa::autograd
