// Signatures of kernels ("T x, raw float32 y"), and the look for assignments in their operations:
// the first line is the one, the rest the other.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rensa/core/error.h"
#include "rensa/kernel/elementwise_source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  std::string text(reinterpret_cast<const char*>(data), size);
  std::size_t end = text.find('\n');
  std::string operation = end == text.npos ? std::string() : text.substr(end + 1);
  try {
    for (const auto& parameter : detail::parse_parameters("fuzz", text.substr(0, end))) {
      if (parameter.name.empty() || parameter.type.empty()) std::abort();
      detail::surely_assigned(operation, parameter.name);
    }
  } catch (const ValueError&) {}
  return 0;
}
