// ONNX files: the messages, and what nodes say.
#include <cstdint>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/serializers/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  try {
    (void)serializers::parse_onnx({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const SerializationError&) {
  } catch (const NotImplementedError&) {}
  return 0;
}
