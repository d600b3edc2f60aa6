// Zip archives, as far as npz files need them: stored and deflated entries, zip64.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rensa {

/// Writes an archive to a temporary file beside `path`, renamed over `path` by finish(), so that
/// what was there stays whole until the new file is. Throws SerializationError.
class ZipWriter {
 public:
  explicit ZipWriter(std::string path);
  ~ZipWriter();  // without finish() the temporary file is removed
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void add(const std::string& name, std::string_view content, bool compress);
  void finish();

 private:
  struct File;
  struct Entry;
  void write(std::string_view bytes);

  std::string path_, temporary_;
  std::unique_ptr<File> file_;
  std::vector<Entry> entries_;
  std::uint64_t offset_ = 0;
};

/// Reads an archive. Sizes are believed only as far as the file bears them out.
class ZipReader {
 public:
  /// Throws SerializationError, naming `path`, for a file that is not a whole zip archive.
  explicit ZipReader(std::string path);
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
