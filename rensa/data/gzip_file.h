// GzipFile: the content of a file that gzip packed.
#pragma once

#include <cstdint>
#include <string>

namespace rensa {

class GzipFile {
 public:
  /// Throws SerializationError where the file cannot be opened.
  explicit GzipFile(const std::string& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Reads up to `size` bytes; returns how many there were. Throws SerializationError for damaged
  /// data.
  std::int64_t read(void* out, std::int64_t size);

 private:
  std::string path_;
  void* file_;  // zlib's
};

}  // namespace rensa
