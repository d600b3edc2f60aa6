// optimizers::, the algorithms that train a model.
#pragma once

#include "rensa/optimizers/adagrad.h"
#include "rensa/optimizers/adam.h"
#include "rensa/optimizers/elementwise_optimizer.h"
#include "rensa/optimizers/hooks.h"
#include "rensa/optimizers/msvag.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/optimizer.h"
#include "rensa/optimizers/parameter_group.h"
#include "rensa/optimizers/rmsprop.h"
#include "rensa/optimizers/sgd.h"
