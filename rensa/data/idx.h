// The idx format of MNIST's files, gzip'd.
#pragma once

#include <string>

#include "rensa/array/array.h"

namespace rensa {

/// The uint8 array of an idx .gz file, of `ndim` dimensions. Memory is taken only for what the file
/// bears out. Throws SerializationError for a file that cannot be opened, with another magic
/// number, truncated, or longer than it declares; ValueError for an `ndim` that no array has.
Array read_idx_gz(const std::string& path, int ndim);

}  // namespace rensa
