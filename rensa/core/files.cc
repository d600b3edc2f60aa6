// Files by the system's calls: what iostreams and stdio cannot say (exclusively, without following
// links, flushed, why not) matters here.
#include "rensa/core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <istream>
#include <ostream>
#include <system_error>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // what one call of the system moves at most
constexpr std::size_t kRandomDigits = 16;  // in the names of temporary files, which end so:
constexpr std::string_view kTemporary = ".tmp";
constexpr std::size_t kBuffered = std::size_t{1} << 16;  // small writes are put together up to this

/// A path with a NUL in it would be cut there, and mean another file.
void check_path(const char* verb, const std::string& path) {
  if (path.empty()) throw SerializationError(fmt::format("cannot {} a file without a name", verb));
  if (path.find('\0') != path.npos) {
    throw SerializationError(fmt::format("cannot {} {}: a NUL stands in the name", verb,
                                         path.substr(0, path.find('\0'))));
  }
}

int open_file(const std::string& path, int flags, mode_t mode = 0) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (file < 0 && errno == EINTR);
  return file;
}

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

/// The path of the file that `path` leads to, which need not be there: its last component is no
/// symbolic link.
std::string without_links(std::string path) {
  for (int links = 0; links < 40; ++links) {
    char link[4096];
    ssize_t size = ::readlink(path.c_str(), link, sizeof(link));
    if (size < 0) break;
    std::string there(link, static_cast<std::size_t>(size));
    path = there.starts_with('/') ? there : folder_of(path) + "/" + there;
  }
  return path;
}

std::string random_digits() {
  unsigned char bytes[kRandomDigits / 2];
  if (::getentropy(bytes, sizeof(bytes)) != 0) {
    throw SerializationError(
        fmt::format("no random name for a temporary file: {}", std::strerror(errno)));
  }
  std::string digits;
  for (unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

/// 0, or the error that left `bytes` written in part.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), std::min(bytes.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// Locks a file for as long as it is open. Not by flock(), which those who then read the file may
/// use as well (HDF5 does).
bool lock(int file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/// Locks a temporary file, so that who removes those of processes that have ended knows it to be in
/// use. False where one was quicker. Where files have no locks none are removed.
bool holds(int file) {
  if (!lock(file)) return errno != EAGAIN && errno != EACCES;
  struct stat status {};
  return ::fstat(file, &status) != 0 || status.st_nlink > 0;
}

/// 0, or the error with which `file` could not be brought to the disk. What cannot be flushed at
/// all (of some network file systems) is not an error.
int flush_to_disk(int file) {
  while (::fsync(file) != 0) {
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return 0;
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

// --- reading ---

FileReader::FileReader(std::string path) : name_(std::move(path)) {
  check_path("open", name_);
  file_ = open_file(name_, O_RDONLY);
  if (file_ < 0) fail("open", errno);
  struct stat status {};
  if (::fstat(file_, &status) == 0 && !S_ISDIR(status.st_mode)) {
    if (S_ISREG(status.st_mode)) size_ = status.st_size;
    return;
  }
  int error = S_ISDIR(status.st_mode) ? EISDIR : errno;
  ::close(file_);
  fail("read", error);
}

FileReader::FileReader(std::istream& stream) : name_("the stream"), stream_(&stream) {
  if (!stream) throw SerializationError("cannot read the stream: it has failed before");
}

FileReader::~FileReader() {
  if (file_ >= 0) ::close(file_);
}

void FileReader::fail(const char* what, int error) const {
  throw SerializationError(fmt::format("cannot {} {}: {}", what, name_, std::strerror(error)));
}

std::optional<std::int64_t> FileReader::remaining() const {
  // Files that the system makes as they are read say that they hold nothing.
  if (size_ <= 0) return std::nullopt;
  return std::max<std::int64_t>(size_ - at_, 0);
}

std::size_t FileReader::read(void* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    std::size_t piece = std::min(size - done, kPiece), got = 0;
    char* to = static_cast<char*>(out) + done;
    if (stream_) {
      stream_->read(to, static_cast<std::streamsize>(piece));
      got = static_cast<std::size_t>(stream_->gcount());
      if (stream_->bad()) throw SerializationError("cannot read the stream: it fails");
    } else {
      ssize_t count = ::read(file_, to, piece);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("read", errno);
      got = static_cast<std::size_t>(count);
    }
    if (got == 0) break;
    done += got;
  }
  at_ += static_cast<std::int64_t>(done);
  return done;
}

std::string FileReader::read(std::size_t most) {
  std::string bytes;
  // A byte more than a regular file has left, so that the end shows without another turn.
  std::size_t room = remaining() ? static_cast<std::size_t>(*remaining()) + 1 : kBuffered;
  with_host_memory(name_.c_str(), [&] {
    while (bytes.size() < most) {
      std::size_t old = bytes.size();
      bytes.resize(std::min(most, std::max(old + room, 2 * old)));
      std::size_t got = read(bytes.data() + old, bytes.size() - old);
      bool whole = old + got == bytes.size();
      bytes.resize(old + got);
      if (!whole) break;
      room = kBuffered;
    }
  });
  return bytes;
}

std::int64_t FileReader::skip(std::int64_t size) {
  if (auto left = remaining()) {
    size = std::min(size, *left);
    if (::lseek(file_, size, SEEK_CUR) < 0) fail("read", errno);
    at_ += size;
    return size;
  }
  std::int64_t done = 0;
  char passed[4096];
  while (done < size) {
    auto piece = static_cast<std::size_t>(
        std::min<std::int64_t>(size - done, static_cast<std::int64_t>(sizeof(passed))));
    std::size_t got = read(passed, piece);
    done += static_cast<std::int64_t>(got);
    if (got < piece) break;
  }
  return done;
}

std::string detail::read_whole_file(const std::string& path) {
  return FileReader(path).read_rest();
}

// --- writing ---

FileWriter::FileWriter(std::string path) : name_(std::move(path)) {
  check_path("write", name_);
  // Opened as it stands, which changes nothing: so the system says whether it may be written.
  int there = open_file(name_, O_WRONLY);
  if (there < 0 && errno != ENOENT) fail(errno);
  if (there >= 0) {
    struct stat status {};
    int error = ::fstat(there, &status) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(status.st_mode)) {
      file_ = there;
      return;
    }
    ::close(there);
    if (error) fail(error);
    replaces_ = true;
    mode_ = status.st_mode & 07777;
    owner_ = status.st_uid;
    group_ = status.st_gid;
  }
  target_ = without_links(name_);
  open_temporary();
}

FileWriter::FileWriter(std::ostream& stream) : name_("the stream"), stream_(&stream) {
  if (!stream) throw SerializationError("cannot write the stream: it has failed before");
}

FileWriter::~FileWriter() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void FileWriter::fail(int error) const {
  throw SerializationError(fmt::format("cannot write {}: {}", name_, std::strerror(error)));
}

void FileWriter::open_temporary() {
  std::size_t slash = target_.rfind('/');
  std::size_t start = slash == target_.npos ? 0 : slash + 1;
  // A name may have 255 bytes.
  std::string begin = target_.substr(0, start) + target_.substr(start, 200) + ".";
  // Nobody else may read what will stand in a file of a narrower mode.
  mode_t mode = replaces_ ? 0600 : 0666;
  for (int tries = 0;; ++tries) {
    std::string name = begin + random_digits() + std::string(kTemporary);
    file_ = open_file(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (file_ < 0 && (errno != EEXIST || tries == 100)) fail(errno);
    if (file_ < 0) continue;
    if (holds(file_)) {
      temporary_ = std::move(name);
      return;
    }
    // Somebody took it for one that was left behind.
    ::close(std::exchange(file_, -1));
  }
}

void FileWriter::write_out(std::string_view bytes) {
  if (stream_) {
    stream_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!*stream_) throw SerializationError("cannot write the stream: it fails");
    return;
  }
  if (int error = write_all(file_, bytes)) fail(error);
}

void FileWriter::write(std::string_view bytes) {
  if (pending_.size() + bytes.size() >= kBuffered) {
    write_out(pending_);
    pending_.clear();
    if (bytes.size() >= kBuffered) return write_out(bytes);
  }
  pending_ += bytes;
}

void FileWriter::keep_mode() const {
  // The owner of what is replaced may be given by root only, the group by its members: where it
  // cannot be kept, bits that lend its rights to others are not kept either.
  bool kept = ::fchown(file_, owner_, group_) == 0;
  bool group_kept = kept || ::fchown(file_, static_cast<uid_t>(-1), group_) == 0;
  struct stat now {};
  if (::fstat(file_, &now) != 0) fail(errno);
  mode_t mode = mode_;
  if (now.st_uid != owner_) mode &= ~static_cast<mode_t>(S_ISUID);
  if (!group_kept && now.st_gid != group_) mode &= ~static_cast<mode_t>(S_ISGID);
  if (::fchmod(file_, mode) != 0) fail(errno);
}

void FileWriter::finish() {
  write_out(pending_);
  pending_.clear();
  if (stream_) {
    stream_->flush();
    if (!*stream_) throw SerializationError("cannot write the stream: it fails");
    return;
  }
  if (!temporary_.empty()) {
    if (replaces_) keep_mode();
    if (int error = detail::rename_flushed(file_, temporary_, target_)) fail(error);
    temporary_.clear();
  }
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) fail(errno);
}

int detail::rename_flushed(int file, const std::string& from, const std::string& to) {
  if (int error = flush_to_disk(file)) return error;
  if (std::rename(from.c_str(), to.c_str()) != 0) return errno;
  // A folder that may not be read cannot be opened to be flushed.
  int folder = open_file(folder_of(to), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return 0;
  int error = flush_to_disk(folder);
  ::close(folder);
  return error;
}

void detail::write_whole_file(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.finish();
}

int detail::remove_abandoned(const std::string& folder,
                             const std::function<bool(std::string_view)>& is_target) {
  int removed = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::string path = at->path().string(), name = at->path().filename().string();
    std::string_view target = name;
    if (!target.ends_with(kTemporary)) continue;
    target.remove_suffix(kTemporary.size());
    std::size_t dot = target.rfind('.');
    if (dot == target.npos || target.size() - dot - 1 != kRandomDigits) continue;
    if (target.find_first_not_of("0123456789abcdef", dot + 1) != target.npos) continue;
    if (!is_target(target.substr(0, dot))) continue;
    int file = open_file(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    struct stat status {};
    bool is_left = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && lock(file);
    removed += is_left && ::unlink(path.c_str()) == 0;
    ::close(file);
  }
  return removed;
}

void detail::make_folders(const std::string& path) {
  check_path("make", path);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  bool there = !error && std::filesystem::is_directory(path, error);
  if (there) return;
  throw SerializationError(fmt::format("cannot make the folder {}: {}", path,
                                       error ? error.message() : std::strerror(ENOTDIR)));
}

// --- appending ---

namespace {

[[noreturn]] void fail_to_append(const std::string& name, int error) {
  throw SerializationError(fmt::format("cannot append to {}: {}", name, std::strerror(error)));
}

}  // namespace

FileAppender::FileAppender(std::string path) : name_(std::move(path)) {
  check_path("append to", name_);
  file_ = open_file(name_, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file_ < 0) fail_to_append(name_, errno);
}

FileAppender::~FileAppender() { ::close(file_); }

void FileAppender::append(std::string_view bytes) {
  struct stat status {};
  bool regular = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  int error = write_all(file_, bytes);
  if (!error) return;
  if (regular && ::ftruncate(file_, status.st_size) != 0) {
    throw SerializationError(fmt::format("cannot append to {}: {}, and what was written remains",
                                         name_, std::strerror(error)));
  }
  fail_to_append(name_, error);
}

// --- mapping ---

FileMapping::FileMapping(const std::string& path, Mode mode) {
  check_path("map", path);
  auto fail = [&](int error) {
    throw SerializationError(fmt::format("cannot map {}: {}", path, std::strerror(error)));
  };
  // What is no regular file is refused, and a pipe is not waited for.
  int file = open_file(path, (mode == Mode::read_write ? O_RDWR : O_RDONLY) | O_NONBLOCK);
  if (file < 0) fail(errno);
  struct stat status {};
  int error = ::fstat(file, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : ENODEV;
  if (error == 0 && status.st_size > 0) {
    size_ = static_cast<std::size_t>(status.st_size);
    int access = mode == Mode::read ? PROT_READ : PROT_READ | PROT_WRITE;
    int sharing = mode == Mode::copy ? MAP_PRIVATE : MAP_SHARED;
    void* memory = ::mmap(nullptr, size_, access, sharing, file, 0);
    error = memory == MAP_FAILED ? errno : 0;
    if (!error) data_ = static_cast<char*>(memory);
  }
  ::close(file);
  if (error) fail(error);
}

FileMapping::~FileMapping() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace rensa
