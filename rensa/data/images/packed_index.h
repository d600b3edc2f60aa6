// The layout of files of packed pictures. Numbers are little-endian.
//
//   16 bytes      "RENSAIMG", the version (uint32), 0 (uint32)
//   the pictures  whole JPEG or PNG files behind one another
//   the index     of each picture 32 bytes: offset and size (uint64), label (int64), CRC-32 of its
//                 bytes (uint32), 0 (uint32); then of each class its name: size (uint32), bytes
//   48 bytes      the index's offset and the number of pictures (uint64); the number of classes, of
//                 this file among those of a set, whether it is the last, the CRC-32 of the index,
//                 that of these 48 bytes without it and what follows, 0 (uint32); "RENSAIMG"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rensa::datasets {

inline constexpr std::uint32_t kPackedVersion = 1;

struct PackedIndex {
  struct Entry {
    std::uint64_t offset, size;
    std::int64_t label;
    std::uint32_t sum;
  };
  std::vector<Entry> entries;
  std::vector<std::string> classes;
  std::uint32_t number = 0;  // of the file, from 0
  bool is_last = true;
};

/// What stands before the pictures.
std::string packed_header();
/// What stands behind them, from byte `offset` on.
std::string packed_end(const PackedIndex& index, std::uint64_t offset);

/// The index of a whole file; every entry lies within it. Throws SerializationError naming the
/// file, the byte and what is wrong there.
PackedIndex read_packed_index(std::string_view file, const std::string& name);

/// Bytes of one entry. Throws SerializationError where they are not those that were packed.
std::string_view packed_picture(std::string_view file, const PackedIndex::Entry& entry,
                                const std::string& name);

/// CRC-32, as zlib's.
std::uint32_t packed_sum(std::string_view bytes);

}  // namespace rensa::datasets
