// .npy files: whatever the bytes, an array, a text or a SerializationError, the same from memory
// and from a stream. What was read can be written and read again.
#include "rensa/array/npy.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "rensa/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  try {
    std::string text = parse_npy_text({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::string again = format_npy_text(text);
    if (parse_npy_text(again, "again") != text) std::abort();
  } catch (const SerializationError&) {}
  try {
    Array a = parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::string again = format_npy(a);
    Array b = parse_npy(again, "again");
    if (b.shape() != a.shape() || b.dtype() != a.dtype()) std::abort();
    std::istringstream stream(std::string(reinterpret_cast<const char*>(data), size));
    FileReader file(stream);
    if (format_npy(read_npy(file)) != again) std::abort();
  } catch (const SerializationError&) {
    std::istringstream stream(std::string(reinterpret_cast<const char*>(data), size));
    FileReader file(stream);
    try {
      read_npy(file);
      if (stream.peek() == std::istringstream::traits_type::eof()) std::abort();
    } catch (const SerializationError&) {}
  }
  return 0;
}
