// Files of MATLAB, as far as arrays of numbers go.
#pragma once

#include <map>
#include <string>

#include "rensa/array/array.h"

namespace rensa {

/// The real numeric arrays of a MAT-file of level 5 (MATLAB's -v6 and -v7), by their names, on the
/// CPU: in the dtype and with the axes that they have in MATLAB. Others (texts, cells, structures,
/// sparse and complex ones) are passed over. Throws SerializationError for what is no such file, is
/// damaged or truncated, OutOfMemoryError. Source: "MAT-File Format", The MathWorks.
std::map<std::string, Array> read_mat(const std::string& path);

}  // namespace rensa
