// Files of MNIST: the first byte says of how many dimensions; what is not gzip'd is read as it is.
#include "rensa/data/idx.h"
#include "fuzz/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  return rensa::fuzz::read_file(
      rensa::fuzz::text(data + 1, size - 1),
      [&](const std::string& path) { (void)rensa::read_idx_gz(path, 1 + data[0] % 3); });
}
