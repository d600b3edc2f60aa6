// Fetching a file over the network, once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rensa {

/// What tells a file from every other.
struct FileIdentity {
  std::string sha256;  // 64 lower-case hexadecimal digits
  std::int64_t size;   // bytes
};

/// Whether a regular file of this size and digest stands at `path`.
bool is_file(const std::string& path, const FileIdentity& wanted);

/// Puts a file at `path`, from the first of `urls` that gives the one wanted, unless it stands
/// there already. No more than its size is fetched, redirects are followed to https alone, and it
/// is verified before it takes its name: it appears whole or not at all. A broken transfer
/// leaves "<path>.part", which the next one continues; of several threads and processes that want
/// the file one fetches it and the others wait. Throws SerializationError saying what each address
/// answered.
void download(std::span<const std::string> urls, const FileIdentity& wanted,
              const std::string& path);

}  // namespace rensa
