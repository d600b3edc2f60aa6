// Messages are the host's; Communicator takes arrays of GPUs by way of it.
#include "rensa/core/error.h"
#include "rensa/operations/exchange/exchange.h"

namespace rensa::operations {

void Exchange::run_cuda(const cuda::LaunchContext&) {
  throw NotImplementedError("exchange: messages are sent from the host's memory, not from a GPU's");
}

}  // namespace rensa::operations
