// Messages from GPU to GPU.
#include "rensa/operations/exchange/exchange.h"
#include "rensa/operations/exchange/gpu_links.h"

namespace rensa::operations {

void Exchange::run_cuda(const cuda::LaunchContext& context) {
  links->exchange(outgoing(), incoming(), context);
}

}  // namespace rensa::operations
