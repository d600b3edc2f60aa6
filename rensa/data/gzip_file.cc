// Reading through zlib.
#include "rensa/data/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "rensa/core/error.h"

namespace rensa {

GzipFile::GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
  if (!file_) throw SerializationError(path + ": cannot be opened");
}

GzipFile::~GzipFile() { gzclose(static_cast<gzFile>(file_)); }

std::int64_t GzipFile::read(void* out, std::int64_t size) {
  auto* file = static_cast<gzFile>(file_);
  std::int64_t done = 0;
  while (done < size) {
    auto piece = static_cast<unsigned>(std::min<std::int64_t>(size - done, 1 << 26));
    int got = gzread(file, static_cast<char*>(out) + done, piece);
    int code = Z_OK;
    const char* what = got > 0 ? "" : gzerror(file, &code);
    if (got < 0 || code < 0) {  // at the end, too: one that comes too early
      throw SerializationError(fmt::format("{}: damaged gzip data: {}", path_, what));
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace rensa
