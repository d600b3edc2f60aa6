// SVHN: street view house numbers.
#pragma once

#include "rensa/data/mnist.h"

namespace rensa::datasets {

/// SVHN's cropped digits: 73,257 and 26,032 colour images of 32 x 32 (Netzer et al., 2011), float32
/// in [0, scale], labels int32, 0 for the digit 0. `ndim` 3 gives (3, 32, 32), 1 gives rows of
/// 3072; without labels the datasets have one column. Read from train_32x32.mat and test_32x32.mat
/// in $RENSA_DATASET_ROOT/svhn, $RENSA_DATASET_ROOT and the user's cache, where they have to be the
/// published ones (SHA-256), else downloaded into that cache. Throws SerializationError saying
/// where it looked, or which file is damaged.
TrainTest get_svhn(bool withlabel = true, int ndim = 3, float scale = 1.f);

}  // namespace rensa::datasets
