// CIFAR-10 and CIFAR-100.
#pragma once

#include "rensa/data/mnist.h"

namespace rensa::datasets {

/// CIFAR-10: 50,000 and 10,000 colour images of 32 x 32 in 10 classes (Krizhevsky, 2009), float32
/// in [0, scale], labels int32. `ndim` 3 gives (3, 32, 32), 1 gives rows of 3072; without labels
/// the datasets have one column. Read from what the published archive of the "binary version"
/// unpacks to (data_batch_1.bin and so on, all of them), or from the archive,
/// cifar-10-binary.tar.gz, in $RENSA_DATASET_ROOT/cifar10, $RENSA_DATASET_ROOT and the user's
/// cache, where it has to be the published one (SHA-256), else downloaded into that cache. Throws
/// SerializationError saying where it looked, or which file is damaged.
TrainTest get_cifar10(bool withlabel = true, int ndim = 3, float scale = 1.f);
/// CIFAR-100, in 100 classes: train.bin and test.bin of cifar-100-binary.tar.gz, in folders named
/// cifar100 (or, unpacked, cifar-100-binary) alone.
TrainTest get_cifar100(bool withlabel = true, int ndim = 3, float scale = 1.f);

}  // namespace rensa::datasets
