// .npz files: the zip's directory, its entries, and the .npy in each.
#include <cstdint>
#include <string>

#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  try {
    ZipReader zip("fuzz", std::string(reinterpret_cast<const char*>(data), size));
    for (const std::string& name : zip.names()) {
      try {
        parse_npy(zip.read(name), name);
      } catch (const SerializationError&) {}
    }
  } catch (const SerializationError&) {}
  return 0;
}
