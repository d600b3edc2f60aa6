// Which devices share memory.
#include "rensa/device/peers.h"

#include <algorithm>

namespace rensa::cuda {

bool share_memory(std::span<const Device> devices) {
  return std::ranges::all_of(devices, [&](Device a) {
    return std::ranges::all_of(devices, [&](Device b) {
      if (a.is_cpu() || b.is_cpu()) return a.is_cpu() && b.is_cpu();
      return connect_peers(a, b);
    });
  });
}

}  // namespace rensa::cuda
