// The XDG base directory specification's cache.
#include "rensa/core/user_cache.h"

#include <cstdlib>

namespace rensa {

std::string user_cache_folder() {
  // Relative paths are ignored, as the specification has it: a program that is started in somebody
  // else's folder must not find its cache there.
  auto absolute = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value == '/' ? std::string(value) : std::string();
  };
  if (std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/rensa";
  if (std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/rensa";
  return {};
}

}  // namespace rensa
