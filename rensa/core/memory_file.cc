// memfd_create.
#include "rensa/core/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "rensa/core/error.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace rensa {

namespace {

[[noreturn]] void fail(const std::string& name, const char* what) {
  std::string text = name + ": a file in memory cannot be " + what + ": " + std::strerror(errno);
  if (errno == ENOMEM || errno == ENOSPC) throw OutOfMemoryError(text);
  throw Error(text);
}

int create(const std::string& name) {
  // Newer systems want to be told that it may hold code; older ones do not know the word.
  int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_EXEC);
  if (descriptor < 0) descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) fail(name, "made");
  return descriptor;
}

/// Descriptors are handed out again, but "//" and "/./" lead where "/" does: the number of the file
/// in binary.
std::string path_of(int descriptor) {
  static std::atomic<std::uint64_t> files{0};
  std::string path = "/proc/self/fd/";
  for (std::uint64_t number = ++files; number != 0; number /= 2) path += number % 2 ? "./" : "/";
  return path + std::to_string(descriptor);
}

}  // namespace

MemoryFile::MemoryFile(const std::string& name, std::string_view content)
    : descriptor_(create(name)), path_(path_of(descriptor_)) {
  while (!content.empty()) {
    ssize_t count = write(descriptor_, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      int error = errno;
      close(descriptor_);
      errno = error;
      fail(name, "written");
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::contents() const {
  std::string bytes;
  char buffer[4096];
  for (;;) {
    ssize_t count = pread(descriptor_, buffer, sizeof(buffer), static_cast<off_t>(bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace rensa
