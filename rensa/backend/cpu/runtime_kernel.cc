// A kernel compiled by the machine's compiler, over all cores.
#include "rensa/device/runtime_kernel.h"

#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"

namespace rensa {

void RuntimeKernel::run_cpu() {
  if (!host_function) {
    throw DeviceError(std::string(name()) +
                      ": it is a kernel for a GPU, its arrays are on the CPU");
  }
  constexpr std::int64_t kGrain = 16384;
  std::vector<void*> addresses = argument_addresses();
  parallel_for(size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    host_function(addresses.data(), begin, end);
  });
}

}  // namespace rensa
