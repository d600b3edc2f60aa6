// Datasets, iterators and the way from batches to arrays.
#pragma once

#include "rensa/data/cifar.h"
#include "rensa/data/converter.h"
#include "rensa/data/dataset.h"
#include "rensa/data/iterator.h"
#include "rensa/data/mnist.h"
#include "rensa/data/sub_dataset.h"
