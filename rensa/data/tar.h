// Archives of files: tar, gzip'd.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace rensa {

/// The contents of those regular files of a .tar.gz whose names are `wanted`, by their names, which
/// are as they stand in the archive ("cifar-10-batches-bin/test_batch.bin"). Takes memory as the
/// bytes come, whatever the archive says. Throws SerializationError for a file that cannot be
/// opened, is damaged or truncated, OutOfMemoryError.
std::map<std::string, std::string> read_tar_gz(const std::string& path,
                                               const std::function<bool(std::string_view)>& wanted);

}  // namespace rensa
