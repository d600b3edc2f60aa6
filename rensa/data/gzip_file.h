// GzipFile: the content of a file that gzip packed.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "rensa/core/error.h"

namespace rensa {

class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw SerializationError(path + ": cannot be opened");
  }
  ~GzipFile() { gzclose(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Reads up to `size` bytes; returns how many there were.
  std::int64_t read(void* out, std::int64_t size) {
    std::int64_t done = 0;
    while (done < size) {
      auto piece = static_cast<unsigned>(std::min<std::int64_t>(size - done, 1 << 26));
      int got = gzread(file_, static_cast<char*>(out) + done, piece);
      if (got < 0) {
        int code = Z_OK;
        throw SerializationError(
            fmt::format("{}: damaged gzip data: {}", path_, gzerror(file_, &code)));
      }
      if (got == 0) break;
      done += got;
    }
    return done;
  }

 private:
  std::string path_;
  gzFile file_;
};

}  // namespace rensa
