// The disk cache of compiled kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rensa::detail {

/// Where compiled kernels are kept: $RENSA_KERNEL_CACHE, else $XDG_CACHE_HOME/rensa/kernels, else
/// ~/.cache/rensa/kernels; empty where none of these is set or RENSA_KERNEL_CACHE is.
std::string kernel_cache_folder();

/// What `make()` gives for a key, of this run or an earlier one. The key is everything that the
/// result depends on; its parts are told apart. A file is written whole and then moved into place,
/// so processes that start at once do not see each other's halves; one that is damaged is made
/// anew. A cache that cannot be written is none.
std::string cached(const std::vector<std::string>& key, const std::function<std::string()>& make);

}  // namespace rensa::detail
