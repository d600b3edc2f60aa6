// L::, the layers of networks, and what all of them share.
#pragma once

#include "rensa/core/thread_state.h"
#include "rensa/links/any_link.h"
#include "rensa/links/classifier.h"
#include "rensa/links/convolution.h"
#include "rensa/links/initializers.h"
#include "rensa/links/linear.h"
#include "rensa/links/link.h"
#include "rensa/links/normalization_links.h"
#include "rensa/links/reporter.h"
#include "rensa/links/sequential.h"
