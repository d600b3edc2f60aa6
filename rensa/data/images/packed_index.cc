// Reading and writing the index of packed pictures.
#include "rensa/data/images/packed_index.h"

#include <fmt/format.h>
#include <zlib.h>

#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa::datasets {

namespace {

constexpr std::string_view kMagic = "RENSAIMG";
constexpr std::size_t kHeader = 16, kEntry = 32, kEnd = 48, kChecked = 32;

template <class T> void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

template <class T> T get(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return static_cast<T>(value);
}

[[noreturn]] void fail(const std::string& name, std::uint64_t at, const std::string& what) {
  throw SerializationError(
      fmt::format("{}: no whole file of packed pictures: byte {}: {}", name, at, what));
}

/// The classes' names, which take up all of `bytes`, that begin at `at` of the file.
std::vector<std::string> read_classes(std::string_view bytes, std::uint32_t count, std::uint64_t at,
                                      const std::string& name) {
  if (count > bytes.size() / 4) fail(name, at, fmt::format("no room for {} classes", count));
  std::vector<std::string> classes;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t size = bytes.size() < 4 ? 0 : get<std::uint32_t>(bytes, 0);
    if (bytes.size() < 4 || size > bytes.size() - 4) {
      fail(name, at, fmt::format("the name of class {} goes beyond the index", i));
    }
    classes.emplace_back(bytes.substr(4, size));
    bytes.remove_prefix(4 + size);
    at += 4 + size;
  }
  if (!bytes.empty()) fail(name, at, "more than the classes' names");
  return classes;
}

void check_entry(const PackedIndex& index, const PackedIndex::Entry& entry, std::uint64_t at,
                 std::uint64_t pictures_end, const std::string& name) {
  if (entry.offset < kHeader || entry.offset > pictures_end || entry.size < 1 ||
      entry.size > pictures_end - entry.offset) {
    fail(name, at,
         fmt::format("picture {} has {} bytes at {}, outside of the pictures", index.entries.size(),
                     entry.size, entry.offset));
  }
  auto classes = static_cast<std::int64_t>(index.classes.size());
  if (classes > 0 && (entry.label < 0 || entry.label >= classes)) {
    fail(name, at,
         fmt::format("picture {} has the label {}, of {} classes", index.entries.size(),
                     entry.label, classes));
  }
}

}  // namespace

std::uint32_t packed_sum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string packed_header() {
  std::string header(kMagic);
  put(header, kPackedVersion);
  put(header, std::uint32_t{0});
  return header;
}

std::string packed_end(const PackedIndex& index, std::uint64_t offset) {
  std::string table;
  for (const PackedIndex::Entry& entry : index.entries) {
    put(table, entry.offset);
    put(table, entry.size);
    put(table, entry.label);
    put(table, entry.sum);
    put(table, std::uint32_t{0});
  }
  for (const std::string& name : index.classes) {
    put(table, static_cast<std::uint32_t>(name.size()));
    table += name;
  }
  std::string end;
  put(end, offset);
  put(end, std::uint64_t{index.entries.size()});
  put(end, static_cast<std::uint32_t>(index.classes.size()));
  put(end, index.number);
  put(end, std::uint32_t{index.is_last});
  put(end, packed_sum(table));
  put(end, packed_sum(end));
  put(end, std::uint32_t{0});
  end += kMagic;
  return table + end;
}

PackedIndex read_packed_index(std::string_view file, const std::string& name) {
  if (!file.starts_with(kMagic)) fail(name, 0, "it does not begin as one");
  if (file.size() < kHeader + kEnd) fail(name, file.size(), "the file ends too early");
  if (auto version = get<std::uint32_t>(file, kMagic.size()); version != kPackedVersion) {
    fail(name, kMagic.size(),
         fmt::format("version {}; this build of Rensa reads version {}", version, kPackedVersion));
  }
  const std::size_t end_at = file.size() - kEnd;
  std::string_view end = file.substr(end_at);
  if (!end.ends_with(kMagic)) fail(name, end_at, "no end: it may have been cut short");
  if (get<std::uint32_t>(end, kChecked) != packed_sum(end.substr(0, kChecked))) {
    fail(name, end_at, "the end's checksum does not match");
  }
  const auto index_at = get<std::uint64_t>(end, 0), count = get<std::uint64_t>(end, 8);
  if (index_at < kHeader || index_at > end_at) {
    fail(name, end_at, fmt::format("an index at byte {} of {}", index_at, file.size()));
  }
  std::string_view table = file.substr(index_at, end_at - index_at);
  if (get<std::uint32_t>(end, 28) != packed_sum(table)) {
    fail(name, index_at, "the index's checksum does not match");
  }
  if (count > table.size() / kEntry) {
    fail(name, index_at, fmt::format("no room for {} pictures in the index", count));
  }
  return with_host_memory("PackedImageDataset", [&] {
    PackedIndex index;
    const std::size_t entries_size = count * kEntry;
    index.classes = read_classes(table.substr(entries_size), get<std::uint32_t>(end, 16),
                                 index_at + entries_size, name);
    index.number = get<std::uint32_t>(end, 20);
    index.is_last = get<std::uint32_t>(end, 24) != 0;
    index.entries.reserve(count);
    for (std::size_t at = 0; at < entries_size; at += kEntry) {
      PackedIndex::Entry entry{get<std::uint64_t>(table, at), get<std::uint64_t>(table, at + 8),
                               get<std::int64_t>(table, at + 16),
                               get<std::uint32_t>(table, at + 24)};
      check_entry(index, entry, index_at + at, index_at, name);
      index.entries.push_back(entry);
    }
    return index;
  });
}

std::string_view packed_picture(std::string_view file, const PackedIndex::Entry& entry,
                                const std::string& name) {
  std::string_view bytes = file.substr(entry.offset, entry.size);
  if (packed_sum(bytes) == entry.sum) return bytes;
  throw SerializationError(
      fmt::format("{}: the {} bytes from byte {} on are not the picture that was packed: their "
                  "checksum does not match",
                  name, entry.size, entry.offset));
}

}  // namespace rensa::datasets
