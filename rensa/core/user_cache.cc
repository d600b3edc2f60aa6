// The XDG base directory specification's cache.
#include "rensa/core/user_cache.h"

#include <cstdlib>
#include <filesystem>

namespace rensa {

std::string user_cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache && *cache) folder = cache;
  else if (home && *home) folder = std::filesystem::path(home) / ".cache";
  else return {};
  return (folder / "rensa").string();
}

}  // namespace rensa
