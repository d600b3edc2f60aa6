// Inputs of fuzz targets that read files.
#pragma once

#include <cstdint>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/core/memory_file.h"

namespace rensa::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Calls read(PATH) on a file of these bytes: it returns, or throws SerializationError.
template <class F> int read_file(const std::uint8_t* data, std::size_t size, F&& read) {
  MemoryFile file("fuzz", text(data, size));
  try {
    read(file.path());
  } catch (const SerializationError&) {}
  return 0;
}

}  // namespace rensa::fuzz
