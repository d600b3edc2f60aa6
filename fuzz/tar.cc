// Archives of data sets; what is not gzip'd is read as it is. As given, and with the sums of
// headers put right.
#include "rensa/data/tar.h"

#include <cstdio>

#include "fuzz/files.h"

namespace {

constexpr std::size_t kBlock = 512, kSum = 148, kSumSize = 8;

/// Every block may be a header.
std::string with_sums(std::string archive) {
  for (std::size_t block = 0; block + kBlock <= archive.size(); block += kBlock) {
    char* header = archive.data() + block;
    if (std::count(header, header + kBlock, '\0') == kBlock) continue;
    std::fill_n(header + kSum, kSumSize, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(header[i]);
    std::snprintf(header + kSum, kSumSize, "%06o", sum);
  }
  return archive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string given(rensa::fuzz::text(data, size));
  for (const std::string& archive : {given, with_sums(given)}) {
    rensa::fuzz::read_file(archive, [](const std::string& path) {
      rensa::read_tar_gz(path, [](std::string_view name) { return !name.empty(); });
    });
  }
  return 0;
}
