// The version of the library, as its own headers had it.
#include <fmt/format.h>

#include <string>

#include "rensa/core/version.h"

namespace rensa {

const char* version() {
  static const std::string text =
      fmt::format("{}.{}.{}", RENSA_VERSION_MAJOR, RENSA_VERSION_MINOR, RENSA_VERSION_PATCH);
  return text.c_str();
}

}  // namespace rensa
