// Files and streams: what is read, and what replaces a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace rensa {

/// Bytes that come one after the other, from a file (a device or a pipe may stand there) or from a
/// stream. All throw SerializationError naming the file.
class FileReader {
 public:
  explicit FileReader(std::string path);
  /// Reads `stream` from where it stands; it has to live as long.
  explicit FileReader(std::istream& stream);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// The path, or "the stream": what errors say.
  const std::string& name() const { return name_; }
  /// Bytes from here to the end, where it is known: of a regular file.
  std::optional<std::int64_t> remaining() const;
  /// Reads up to `size` bytes; fewer only where the end comes first.
  std::size_t read(void* out, std::size_t size);
  /// The next `most` bytes, or those up to the end. Takes memory as the bytes come, however many
  /// are asked for. Throws OutOfMemoryError.
  std::string read(std::size_t most);
  /// All up to the end.
  std::string read_rest() { return read(static_cast<std::size_t>(-1)); }
  /// Passes over `size` bytes; returns over how many, fewer where the end comes first.
  std::int64_t skip(std::int64_t size);

 private:
  [[noreturn]] void fail(const char* what, int error) const;
  std::string name_;
  std::istream* stream_ = nullptr;
  int file_ = -1;
  std::int64_t size_ = -1;  // of a regular file
  std::int64_t at_ = 0;
};

/// How files are written, but for those that grow (FileAppender). Where a file stands already, or
/// none, the bytes go to a temporary file beside it, which finish() flushes to the disk and
/// renames: whoever opens the path sees all of the old file or all of the new one, also when
/// several write it at once. The new file has the old one's mode (and owner, where that may be
/// given); a symbolic link stays and its target is replaced. Devices and pipes are written to. A
/// file that may not be opened for writing is refused, as open() refuses it. All throw
/// SerializationError naming the file and the reason.
class FileWriter {
 public:
  explicit FileWriter(std::string path);
  /// Writes to `stream`, which has to live as long.
  explicit FileWriter(std::ostream& stream);
  /// Without finish() the temporary file goes and what stood at the path stays.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// The path, or "the stream": what errors say.
  const std::string& name() const { return name_; }
  void write(std::string_view bytes);
  void finish();

 private:
  [[noreturn]] void fail(int error) const;
  void open_temporary();
  void write_out(std::string_view bytes);
  void keep_mode() const;

  std::string name_;
  std::ostream* stream_ = nullptr;
  int file_ = -1;
  std::string target_, temporary_;  // of what is replaced; empty: written to directly
  bool replaces_ = false;           // a file was there, of this mode and owner
  unsigned mode_ = 0, owner_ = 0, group_ = 0;
  std::string pending_;
};

/// A file that others read while it grows, made where there is none. What is in it stays. A device
/// or a pipe is written to. All throw SerializationError naming the file and the reason.
class FileAppender {
 public:
  explicit FileAppender(std::string path);
  ~FileAppender();
  FileAppender(const FileAppender&) = delete;
  FileAppender& operator=(const FileAppender&) = delete;
  const std::string& name() const { return name_; }
  /// Where not all of `bytes` can be written, a regular file ends as it did before.
  void append(std::string_view bytes);

 private:
  std::string name_;
  int file_ = -1;
};

namespace detail {

/// All that a file holds. Throws SerializationError, OutOfMemoryError.
std::string read_whole_file(const std::string& path);
/// Makes `content` what stands at `path`, as FileWriter does.
void write_whole_file(const std::string& path, std::string_view content);

/// Gives `file`, which is at `from`, the name `to` once it is on the disk, and the name after it.
/// Returns 0 or the system's error.
int rename_flushed(int file, const std::string& from, const std::string& to);

/// Removes what processes that were killed have left in a folder: the temporary files of those
/// targets whose writers are gone. Returns how many; 0 where the folder cannot be read.
int remove_abandoned(const std::string& folder,
                     const std::function<bool(std::string_view)>& is_target);

/// A folder, with those above it, there already or made now. Throws SerializationError.
void make_folders(const std::string& path);

}  // namespace detail

/// A file's bytes as memory, read as they are touched. A file that is made shorter meanwhile ends
/// the program (SIGBUS) where the missing part is touched.
class FileMapping {
 public:
  enum class Mode {
    read,        // the memory cannot be written
    copy,        // what is written stays with this process
    read_write,  // what is written goes to the file
  };
  /// Throws SerializationError for what is no regular file or cannot be opened so.
  FileMapping(const std::string& path, Mode mode);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rensa
