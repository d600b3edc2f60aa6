// Archives of files: tar, gzip'd.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rensa {

/// Calls `file` with the name and the content of each regular file of a .tar.gz whose size is no
/// more than `most` bytes, in their order; others are passed over. Names are as they stand in the
/// archive ("cifar-10-batches-bin/test_batch.bin"). Throws SerializationError for a file that
/// cannot be opened, is damaged or truncated.
void each_file_of_tar_gz(const std::string& path, std::int64_t most,
                         const std::function<void(std::string_view, const std::string&)>& file);

}  // namespace rensa
