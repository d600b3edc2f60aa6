// CRC-32C, Castagnoli's checksum (RFC 3720), which records of event files have.
#pragma once

#include <cstdint>
#include <string_view>

namespace rensa {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace rensa
