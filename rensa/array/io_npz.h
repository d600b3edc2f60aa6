// Archives of arrays, as xp::savez and the serializers write them.
#pragma once

#include <span>

#include "rensa/array/io.h"
#include "rensa/core/files.h"

namespace rensa::detail {

/// Throws ValueError naming `operation` for names that an .npz cannot hold
/// (ZipWriter::check_names). To be asked before the file is opened.
void check_npz_names(const char* operation, std::span<const xp::NamedArray> arrays);

/// Writes the arrays, copied to the host, as an .npz to `file` and finishes it. One that is not
/// defined is written as None.
void write_npz(FileWriter& file, std::span<const xp::NamedArray> arrays, bool compress);

}  // namespace rensa::detail
