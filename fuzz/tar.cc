// Archives of data sets; what is not gzip'd is read as it is.
#include "rensa/data/tar.h"
#include "fuzz/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rensa::fuzz::read_file(data, size, [](const std::string& path) {
    rensa::read_tar_gz(path, [](std::string_view name) { return !name.empty(); });
  });
}
