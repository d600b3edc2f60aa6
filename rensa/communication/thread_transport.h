// Groups of the threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "rensa/communication/transport.h"

namespace rensa::communication {

/// The ends of a group of `size` threads, by rank: each thread uses its own. When one of them goes
/// while others still wait for it, they fail, as where a process ends.
std::vector<std::shared_ptr<Transport>> connect_threads(int size, std::chrono::seconds timeout);

}  // namespace rensa::communication
