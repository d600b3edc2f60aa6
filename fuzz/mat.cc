// Files of MATLAB.
#include "fuzz/files.h"
#include "rensa/data/mat_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rensa::fuzz::read_file(rensa::fuzz::text(data, size),
                                [](const std::string& path) { rensa::read_mat(path); });
}
