// Datasets, iterators and the way from batches to arrays.
#pragma once

#include "rensa/data/cifar.h"
#include "rensa/data/converter.h"
#include "rensa/data/dataset.h"
#include "rensa/data/images/image_datasets.h"
#include "rensa/data/images/image_transforms.h"
#include "rensa/data/images/packed_images.h"
#include "rensa/data/images/write_image.h"
#include "rensa/data/iterator.h"
#include "rensa/data/mnist.h"
#include "rensa/data/multithread_iterator.h"
#include "rensa/data/order_sampler.h"
#include "rensa/data/ptb.h"
#include "rensa/data/random_stream.h"
#include "rensa/data/sub_dataset.h"
#include "rensa/data/svhn.h"
#include "rensa/data/text_datasets.h"
