// Where a user's programs keep what can be had again.
#pragma once

#include <string>

namespace rensa {

/// $XDG_CACHE_HOME/rensa, else ~/.cache/rensa; empty when no variable says where that is.
std::string user_cache_folder();

}  // namespace rensa
