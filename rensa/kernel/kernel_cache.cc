// Files named by the hash of their key, each with the hash of what it holds in front.
#include "rensa/kernel/kernel_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

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

std::optional<std::string> read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad() || bytes.size() < kDigest) return std::nullopt;
  std::string content = bytes.substr(kDigest);
  if (digest(content) != bytes.substr(0, kDigest)) return std::nullopt;
  return content;
}

void write_whole(const fs::path& path, const std::string& content) {
  static std::atomic<int> count{0};
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::path partial = path;
  partial += "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".part";
  {
    std::ofstream file(partial, std::ios::binary);
    file << digest(content) << content;
    file.close();
    if (!file) {
      fs::remove(partial, failed);
      return;
    }
  }
  fs::rename(partial, path, failed);
  if (failed) fs::remove(partial, failed);
}

}  // namespace

std::string kernel_cache_folder() {
  if (const char* folder = std::getenv("RENSA_KERNEL_CACHE")) return folder;
  std::string cache = user_cache_folder();
  return cache.empty() ? cache : (fs::path(cache) / "kernels").string();
}

std::string cached(const std::vector<std::string>& key, const std::function<std::string()>& make) {
  std::string folder = kernel_cache_folder();
  if (folder.empty()) return make();
  fs::path path = fs::path(folder) / digest(key);
  if (auto content = read_whole(path)) return *content;
  std::string content = make();
  write_whole(path, content);
  return content;
}

}  // namespace rensa::detail
