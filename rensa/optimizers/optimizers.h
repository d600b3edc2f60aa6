// optimizers::, the algorithms that train a model.
#pragma once

#include "rensa/optimizers/adam.h"
#include "rensa/optimizers/optimizer.h"
#include "rensa/optimizers/sgd.h"
