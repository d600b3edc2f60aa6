// Where a user's programs keep what can be had again.
#pragma once

#include <string>

namespace rensa {

/// $XDG_CACHE_HOME/rensa, else $HOME/.cache/rensa; empty when neither variable is an absolute path.
std::string user_cache_folder();

}  // namespace rensa
