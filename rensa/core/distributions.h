// What the rows of distributions.def are called by.
#pragma once

namespace rensa {

enum class Distribution : unsigned char {
#define RENSA_DISTRIBUTION(name, expression) name,
#include "rensa/core/distributions.def"
#undef RENSA_DISTRIBUTION
};

}  // namespace rensa
