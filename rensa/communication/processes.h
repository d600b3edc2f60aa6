// Processes that find each other.
#pragma once

#include <chrono>
#include <memory>

#include "rensa/communication/launch_environment.h"
#include "rensa/communication/transport.h"

namespace rensa::communication {

/// How long a rank waits for another one before it gives the group up:
/// RENSA_COMMUNICATION_TIMEOUT seconds, 600 where it is not set.
std::chrono::seconds communication_timeout();

/// The group of all processes: those of higher ranks connect to rank 0, which tells everyone where
/// everyone is. Called by each of them once. Throws CommunicationError, saying who is missing,
/// where they do not come within the timeout.
std::shared_ptr<Transport> connect_processes(const LaunchEnvironment& environment,
                                             std::chrono::seconds timeout);

}  // namespace rensa::communication
