// F::, the functions of networks.
#pragma once

#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/convolution.h"
#include "rensa/functions/evaluation.h"
#include "rensa/functions/image_functions.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/linalg_functions.h"
#include "rensa/functions/loss.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/reduction_functions.h"
#include "rensa/functions/rnn.h"
#include "rensa/functions/sequence_loss.h"
#include "rensa/functions/special_functions.h"
