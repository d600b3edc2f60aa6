// MNIST, sets that are laid out as it is, and a generated set of digits in its place.
#pragma once

#include <cstdint>
#include <string>

#include "rensa/data/dataset.h"

namespace rensa::datasets {

struct TrainTest {
  TupleDataset train, test;  // what to train with, and what to test with
};

/// MNIST: 60,000 and 10,000 digits of 28 x 28, float32 in [0, scale], labels int32. `ndim` 1 gives
/// rows of 784, 2 gives (28, 28), 3 gives (1, 28, 28); without labels the datasets have one column.
/// The four idx .gz files are looked for in $RENSA_DATASET_ROOT/mnist, $RENSA_DATASET_ROOT and the
/// user's cache ($XDG_CACHE_HOME/rensa/mnist, ~/.cache/rensa/mnist), where they have to be the
/// published ones (SHA-256), else downloaded into that cache. Throws SerializationError saying
/// where it looked, or which file is damaged.
TrainTest get_mnist(bool withlabel = true, int ndim = 1, float scale = 1.f);

/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) and Kuzushiji-MNIST (Clanuwat et al., 2018): as
/// get_mnist; their files are named alike and lie in folders "fashion-mnist" and "kuzushiji-mnist".
TrainTest get_fashion_mnist(bool withlabel = true, int ndim = 1, float scale = 1.f);
TrainTest get_kuzushiji_mnist(bool withlabel = true, int ndim = 1, float scale = 1.f);

/// The folder that get_mnist would read without a download; empty when there is none.
std::string find_mnist();

/// Digits drawn at run time: strokes, distorted by a random affine map, jitter, thickness and
/// noise. float32 in [0, 1], rows of 784, labels int32. The same numbers for one seed on any
/// machine with the same math library, however many threads draw.
TrainTest get_synthetic_digits(std::int64_t n_train = 60000, std::int64_t n_test = 10000,
                               std::uint64_t seed = 0);

}  // namespace rensa::datasets
