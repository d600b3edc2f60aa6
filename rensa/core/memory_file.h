// MemoryFile: a file that lies in memory alone.
#pragma once

#include <string>
#include <string_view>

namespace rensa {

/// For what takes a file by its path or descriptor: needs no folder and no disk, and is gone with
/// the object and whoever has it open or mapped.
class MemoryFile {
 public:
  /// `name` stands in /proc/self/maps. Throws OutOfMemoryError, and Error where the system has no
  /// such files.
  explicit MemoryFile(const std::string& name, std::string_view content = {});
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// A path below /proc that leads to it in this process; no two files are ever given the same one,
  /// for the loader takes equal paths for the same library.
  const std::string& path() const { return path_; }
  /// All that was written.
  std::string contents() const;

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace rensa
