// Whole files, in and out.
#pragma once

#include <string>
#include <string_view>

namespace rensa::detail {

/// Throws SerializationError naming `path`.
std::string read_whole_file(const std::string& path);

/// Writes to a temporary file beside `path` and renames it, so that the file appears whole or not
/// at all. Throws SerializationError.
void write_whole_file(const std::string& path, std::string_view content);

}  // namespace rensa::detail
