// Inputs of fuzz targets that read files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/core/memory_file.h"

namespace rensa::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Calls read(PATH) on a file of these bytes: it returns, or throws SerializationError.
template <class F> int read_file(std::string_view bytes, F&& read) {
  MemoryFile file("fuzz", bytes);
  try {
    read(file.path());
  } catch (const SerializationError&) {}
  return 0;
}

/// An input from its first byte to its last, of which a target makes a file: sums, lengths and
/// names that an input would hardly hit are then right.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(text(data, size)) {}
  bool empty() const { return left_.empty(); }
  /// 0 behind the end.
  std::uint8_t byte() {
    std::string_view next = bytes(1);
    return next.empty() ? 0 : static_cast<std::uint8_t>(next[0]);
  }
  /// Of two bytes.
  std::size_t number() {
    std::size_t low = byte();
    return low + 256U * byte();
  }
  /// The next `most`, or those up to the end.
  std::string_view bytes(std::size_t most) {
    std::string_view next = left_.substr(0, most);
    left_.remove_prefix(next.size());
    return next;
  }

 private:
  std::string_view left_;
};

/// Puts a number into a file, little-endian.
inline void put(std::string& file, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace rensa::fuzz
