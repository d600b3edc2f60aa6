// The disk cache of compiled kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rensa::detail {

/// Where compiled kernels are kept: $RENSA_KERNEL_CACHE, else $XDG_CACHE_HOME/rensa/kernels, else
/// ~/.cache/rensa/kernels; empty where none of these is set or RENSA_KERNEL_CACHE is.
std::string kernel_cache_folder();

/// All that a kernel's code depends on.
struct KernelKey {
  std::vector<std::string> parts;  // {"ab", "c"} is not {"a", "bc"}
  /// The compiler and its version; none where this machine has no compiler. Then the newest code
  /// for the parts will do, whichever compiler made it.
  std::optional<std::string> compiler;
};

/// Gives code for `key` to `load`: what the cache holds, else what `make()` gives. `load` throws an
/// Error where it cannot use the code: what came from the cache is then made anew, what was just
/// made is not kept and the error goes on to the caller.
///
/// What is loaded runs with the user's rights. Nothing is taken from a folder or a file that
/// belongs to somebody other than the user and root or that others may write to, from what is no
/// regular file, and from one whose content is not what was written. Such a folder is not used, and
/// a line on stderr says so once. New folders are for the user alone (0700), as files are (0600).
///
/// Processes that want one kernel at the same time wait for the first of them to make it (as long
/// as it lives, and a minute at most). Files appear whole. A cache that cannot be written is none.
void with_kernel_code(const KernelKey& key, const std::function<void(const std::string&)>& load,
                      const std::function<std::string()>& make);

}  // namespace rensa::detail
