// Files named by the hash of their key, each with the hash of what it holds in front.
#include "rensa/kernel/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/fork.h"
#include "rensa/core/sha256.h"
#include "rensa/core/user_cache.h"

namespace rensa::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigest = 64;  // digits in front of the content

std::string digest(const std::string& bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex_digest();
}

/// The hash of the parts with their lengths: ("ab", "c") is not ("a", "bc").
std::string digest(const std::vector<std::string>& parts) {
  Sha256 hash;
  for (const std::string& part : parts) {
    std::string length = std::to_string(part.size()) + ":";
    hash.update(length.data(), length.size());
    hash.update(part.data(), part.size());
  }
  return hash.hex_digest();
}

/// A descriptor, closed at the end; -1 for none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

/// Whether nobody but the user and root can have put there what it holds.
bool is_trusted(const struct stat& s) {
  return (s.st_uid == geteuid() || s.st_uid == 0) && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void say_once(const std::string& text) {
  static auto& mutex = make_held_over_fork<std::mutex>();
  static auto& said = *new std::set<std::string>;
  std::lock_guard<std::mutex> hold(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "%s\n", text.c_str());
}

/// The folder and those above it, as far as they are missing: for the user alone.
void make_folders(const fs::path& path) {
  std::error_code failed;
  if (path.empty() || fs::exists(path, failed)) return;
  if (path.has_relative_path()) make_folders(path.parent_path());
  (void)mkdir(path.c_str(), 0700);
}

/// The cache's folder, held open: it is the one that was looked at, whoever renames what meanwhile.
class Folder {
 public:
  explicit Folder(const std::string& path) : descriptor_(open_checked(path)) {}
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

  /// The content of an entry; none where it is missing, damaged or not to be trusted.
  std::optional<std::string> read(const std::string& name) const {
    Descriptor file(
        openat(descriptor_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat s {};
    if (!file || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !is_trusted(s)) {
      return std::nullopt;
    }
    std::string bytes(static_cast<std::size_t>(s.st_size), '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
      ssize_t count = ::read(file.get(), bytes.data() + have, bytes.size() - have);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      have += static_cast<std::size_t>(count);
    }
    if (bytes.size() < kDigest) return std::nullopt;
    std::string content = bytes.substr(kDigest);
    if (bytes.compare(0, kDigest, digest(content)) != 0) return std::nullopt;
    return content;
  }

  /// The entries whose names begin so, the newest first.
  std::vector<std::string> find(const std::string& prefix) const {
    std::vector<std::pair<std::int64_t, std::string>> found;
    int copy = openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::unique_ptr<DIR, int (*)(DIR*)> list(copy < 0 ? nullptr : fdopendir(copy), closedir);
    while (const dirent* entry = list ? readdir(list.get()) : nullptr) {
      std::string name = entry->d_name;
      struct stat s {};
      if (!name.starts_with(prefix) || name.ends_with(kPart)) continue;
      if (fstatat(descriptor_.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
      found.emplace_back(-(s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec), name);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> names;
    for (auto& [time, name] : found) names.push_back(std::move(name));
    return names;
  }

  /// Puts an entry into place, as far as that can be done.
  void write(const std::string& name, const std::string& content) const {
    static std::atomic<int> count{0};
    std::string part = fmt::format("{}.{}.{}{}", name, getpid(), count++, kPart);
    unlinkat(descriptor_.get(), part.c_str(), 0);  // left by a process that had this number before
    Descriptor file(openat(descriptor_.get(), part.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    bool good = fchmod(file.get(), 0600) == 0 && write_all(file.get(), digest(content)) &&
                write_all(file.get(), content) &&
                renameat(descriptor_.get(), part.c_str(), descriptor_.get(), name.c_str()) == 0;
    if (!good) unlinkat(descriptor_.get(), part.c_str(), 0);
  }

  int descriptor() const { return descriptor_.get(); }

 private:
  static constexpr const char* kPart = ".part";

  static Descriptor open_checked(const std::string& path) {
    if (path.empty()) return Descriptor();
    make_folders(path);
    Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat s {};
    if (!folder || fstat(folder.get(), &s) != 0) return Descriptor();
    if (is_trusted(s)) return folder;
    say_once(fmt::format(
        "rensa: the kernel cache {} is not used, since others could put code into it (its owner is "
        "user {}, its mode {:o}); make it the user's own with mode 700, or let RENSA_KERNEL_CACHE "
        "name another folder",
        path, s.st_uid, s.st_mode & 07777));
    return Descriptor();
  }

  static bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  Descriptor descriptor_;
};

/// One process at a time for an entry: a byte of the file "lock", locked. The system takes the lock
/// back from a process that ends, however it does; one that is stopped is not waited for for ever.
class EntryLock {
 public:
  EntryLock(const Folder& folder, const std::string& name)
      : file_(openat(folder.descriptor(), "lock",
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)),
        byte_(static_cast<off_t>(std::stoull(name.substr(0, 15), nullptr, 16))) {
    if (!file_) return;
    using std::chrono::steady_clock, std::chrono::milliseconds;
    steady_clock::time_point limit = steady_clock::now() + std::chrono::minutes(1);
    milliseconds pause(2), longest(50);
    while (!set(F_WRLCK)) {
      if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || steady_clock::now() > limit) {
        return;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, longest);
    }
    held_ = true;
  }
  ~EntryLock() {
    if (held_) set(F_UNLCK);  // a fork may have the descriptor too
  }
  EntryLock(const EntryLock&) = delete;
  EntryLock& operator=(const EntryLock&) = delete;

 private:
  bool set(int type) const {
    struct flock lock {};
    lock.l_type = static_cast<short>(type);
    lock.l_whence = SEEK_SET;
    lock.l_start = byte_;
    lock.l_len = 1;
    return fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
  }

  Descriptor file_;
  off_t byte_;
  bool held_ = false;
};

/// Whether `load` took one of the entries.
bool load_kept(const Folder& folder, const std::vector<std::string>& names,
               const std::function<void(const std::string&)>& load) {
  for (const std::string& name : names) {
    std::optional<std::string> content = folder.read(name);
    if (!content) continue;
    try {
      load(*content);
      return true;
    } catch (const Error&) {  // of another system, say: it is made anew
    }
  }
  return false;
}

}  // namespace

std::string kernel_cache_folder() {
  if (environment::is_empty("RENSA_KERNEL_CACHE")) return {};
  if (auto folder = environment::text("RENSA_KERNEL_CACHE")) return *folder;
  std::string cache = user_cache_folder();
  return cache.empty() ? cache : (fs::path(cache) / "kernels").string();
}

void with_kernel_code(const KernelKey& key, const std::function<void(const std::string&)>& load,
                      const std::function<std::string()>& make) {
  Folder folder(kernel_cache_folder());
  if (!folder) return load(make());
  std::string prefix = digest(key.parts) + ".";
  if (!key.compiler) {
    if (!load_kept(folder, folder.find(prefix), load)) load(make());
    return;
  }
  std::string name = prefix + digest(*key.compiler).substr(0, 16);
  if (load_kept(folder, {name}, load)) return;
  EntryLock lock(folder, name);
  if (load_kept(folder, {name}, load)) return;
  std::string code = make();
  load(code);
  folder.write(name, code);
}

}  // namespace rensa::detail
