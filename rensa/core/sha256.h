// SHA-256 (FIPS 180-4), to tell a whole download from a broken one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rensa {

class Sha256 {
 public:
  void update(const void* data, std::size_t size);
  /// 64 lower-case hexadecimal digits. Call once, after the last update.
  std::string hex_digest();

 private:
  void block(const unsigned char* bytes);
  std::uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t length_ = 0;
  unsigned char pending_[64] = {};
};

/// The digest of a file's bytes. Throws SerializationError when it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace rensa
