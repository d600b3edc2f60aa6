// Everything: arrays, networks and training.
#pragma once

#include "rensa/array.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/autograd/parameter.h"
#include "rensa/autograd/variable.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
