// Zip archives, as far as npz files need them: stored and deflated entries, zip64.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/core/files.h"

namespace rensa {

/// Writes an archive. Throws SerializationError.
class ZipWriter {
 public:
  /// Entries go to `file`, which has to live as long and is not finished by this.
  explicit ZipWriter(FileWriter& file);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  /// Throws ValueError naming `operation` for names that an archive cannot hold: longer than 65,535
  /// bytes, not UTF-8, with a NUL, or there twice. To be asked before a file is opened.
  static void check_names(const char* operation, std::span<const std::string> names);

  /// An entry of the bytes of `pieces`, one after the other.
  void add(const std::string& name, std::initializer_list<std::string_view> pieces, bool compress);
  /// Writes the directory.
  void finish();

 private:
  struct Entry;
  void write(std::string_view bytes);

  FileWriter& file_;
  std::vector<Entry> entries_;
  std::uint64_t offset_ = 0;
};

/// Reads an archive. Sizes are believed only as far as the file bears them out.
class ZipReader {
 public:
  /// Reads all of `file`. Throws SerializationError naming it where it is no whole zip archive.
  explicit ZipReader(FileReader& file);
  /// Reads an archive that is in memory already; `name` stands in errors.
  ZipReader(std::string name, std::string bytes);
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  /// The entry's content, its checksum verified. Throws SerializationError.
  std::string read(const std::string& name) const;

 private:
  struct Entry {
    int method;
    std::uint32_t crc;
    std::uint64_t compressed_size, size, header_offset;
  };
  [[noreturn]] void fail(const std::string& what) const;
  std::uint64_t number(std::uint64_t offset, int bytes) const;
  void read_directory();
  Entry read_directory_entry(std::uint64_t* at, std::string* name) const;

  std::string path_;
  std::string bytes_;
  std::map<std::string, Entry> entries_;
};

}  // namespace rensa
