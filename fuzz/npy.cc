// .npy files: whatever the bytes, an array or a SerializationError. What was read can be written
// and read again.
#include "rensa/array/npy.h"

#include <cstdint>
#include <cstdlib>

#include "rensa/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  try {
    Array a = parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::string again = format_npy(a);
    Array b = parse_npy(again, "again");
    if (b.shape() != a.shape() || b.dtype() != a.dtype()) std::abort();
  } catch (const SerializationError&) {}
  return 0;
}
