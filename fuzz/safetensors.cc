// safetensors files.
#include "rensa/serializers/safetensors.h"

#include "fuzz/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rensa::fuzz::read_file(rensa::fuzz::text(data, size), [](const std::string& path) {
    (void)rensa::serializers::load_safetensors(path);
  });
}
