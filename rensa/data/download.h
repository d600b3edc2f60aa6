// Fetching a file over the network, once.
#pragma once

#include <span>
#include <string>

namespace rensa {

/// Puts a file at `path`, from the first of `urls` that gives one whose SHA-256 is `sha256`. What a
/// broken transfer left is gone on with ("<path>.part"); the file appears whole or not at all.
/// Throws SerializationError saying what each address answered.
void download(std::span<const std::string> urls, const std::string& sha256,
              const std::string& path);

}  // namespace rensa
