// A build without CUDA has no GPUs.
#include "rensa/device/peers.h"

namespace rensa::cuda {

bool connect_peers(Device a, Device b) { return a == b; }

}  // namespace rensa::cuda
