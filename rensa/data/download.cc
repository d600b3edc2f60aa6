// Downloads by libcurl.
#include "rensa/data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/sha256.h"

namespace rensa {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw SerializationError(fmt::format("cannot download {}: {}", path, std::strerror(error)));
}

/// The file that a transfer fills, held by one thread of one process at a time.
class PartFile {
 public:
  /// Waits for whoever holds it.
  explicit PartFile(std::string path) : path_(std::move(path)) {
    while (!open_and_lock()) {}
  }
  ~PartFile() { ::close(file_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::int64_t size() const {
    struct stat status {};
    if (::fstat(file_, &status) != 0) fail(path_, errno);
    return status.st_size;
  }
  /// Adds to its end; false, with errno, where the system does not take it.
  bool append(const char* bytes, std::size_t size) const {
    while (size > 0) {
      ssize_t count = ::write(file_, bytes, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      bytes += count;
      size -= static_cast<std::size_t>(count);
    }
    return true;
  }
  void clear() const {
    if (::ftruncate(file_, 0) != 0) fail(path_, errno);
  }
  void remove() const { ::unlink(path_.c_str()); }

  bool is(const FileIdentity& wanted) const {
    if (size() != wanted.size) return false;
    Sha256 hash;
    std::vector<char> buffer(1 << 16);
    for (off_t at = 0;;) {
      ssize_t count = ::pread(file_, buffer.data(), buffer.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(path_, errno);
      if (count == 0) return hash.hex_digest() == wanted.sha256;
      hash.update(buffer.data(), static_cast<std::size_t>(count));
      at += count;
    }
  }

  void become(const std::string& path) const {
    if (int error = detail::rename_flushed(file_, path_, path)) fail(path, error);
  }

 private:
  /// False where the file lost its name while this waited.
  bool open_and_lock() {
    // Nothing but a file of this name is taken: no link elsewhere, and no pipe is waited for.
    file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                   0666);
    if (file_ < 0) fail(path_, errno);
    struct stat held {
    }, named{};
    int error = 0;
    while (::flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      error = errno;
      break;
    }
    if (error == 0 && ::fstat(file_, &held) != 0) error = errno;
    if (error == 0 && !S_ISREG(held.st_mode)) error = EINVAL;
    bool same = error == 0 && ::lstat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
                held.st_dev == named.st_dev;
    if (same) return true;
    ::close(file_);
    if (error) fail(path_, error);
    return false;
  }

  std::string path_;
  int file_ = -1;
};

struct CurlCloser {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

struct Outcome {
  std::string problem;   // empty: the transfer came to its end
  bool refused = false;  // the server answered, and did not give what was asked for
};

/// Where a transfer's bytes go.
struct Receiver {
  const PartFile& part;
  std::int64_t room;  // bytes that may still come
  std::string problem = {};
  bool too_much = false;

  static std::size_t take(char* bytes, std::size_t one, std::size_t count, void* self) {
    auto& receiver = *static_cast<Receiver*>(self);
    std::size_t size = one * count;
    if (size > static_cast<std::size_t>(receiver.room)) {
      receiver.too_much = true;
    } else if (!receiver.part.append(bytes, size)) {
      receiver.problem = fmt::format("cannot write: {}", std::strerror(errno));
    } else {
      receiver.room -= static_cast<std::int64_t>(size);
      return size;
    }
    return 0;
  }
};

/// Appends what `url` has beyond the bytes in `part`, up to `size` in all.
Outcome fetch(const std::string& url, const PartFile& part, std::int64_t size) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURL, CurlCloser> handle(curl_easy_init());
  CURL* curl = handle.get();
  if (!curl) return {"libcurl cannot start"};
  std::int64_t there = part.size();
  Receiver receiver{part, size - there};
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Receiver::take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(size));
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http,file");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS,
                   static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP | CURLPROTO_FILE));
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);  // bytes per second,
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);     // for so many seconds
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(there));
  CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) return {};
  // Whichever saw it first: newer versions of libcurl count what has come as well.
  if (receiver.too_much || code == CURLE_FILESIZE_EXCEEDED) {
    return {"it sends more than the file has", true};
  }
  if (!receiver.problem.empty()) return {receiver.problem};
  return {reason[0] ? reason : curl_easy_strerror(code),
          code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_RANGE_ERROR};
}

}  // namespace

bool is_file(const std::string& path, const FileIdentity& wanted) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == wanted.size && sha256_of_file(path) == wanted.sha256;
}

void download(std::span<const std::string> urls, const FileIdentity& wanted,
              const std::string& path) {
  if (is_file(path, wanted)) return;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) fail(path, EISDIR);
  PartFile part(path + ".part");
  if (is_file(path, wanted)) {  // another one has fetched it meanwhile
    part.remove();
    return;
  }
  if (part.size() >= wanted.size) {
    if (part.is(wanted)) return part.become(path);
    part.clear();
  }
  std::string account;
  for (std::size_t i = 0; i < urls.size();) {
    bool resuming = part.size() > 0;
    Outcome outcome = fetch(urls[i], part, wanted.size);
    if (part.is(wanted)) return part.become(path);
    bool useless = outcome.problem.empty() || outcome.refused;
    if (useless) part.clear();
    // Once more without what was there already: it may be of another file.
    if (useless && resuming) continue;
    account += fmt::format(
        "\n  {}: {}", urls[i],
        outcome.problem.empty() ? "its SHA-256 is not " + wanted.sha256 : outcome.problem);
    ++i;
  }
  if (part.size() == 0) part.remove();
  throw SerializationError(fmt::format("cannot download {}:{}", path, account));
}

}  // namespace rensa
