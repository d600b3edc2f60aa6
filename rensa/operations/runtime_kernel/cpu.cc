// A kernel compiled by the machine's compiler, over all cores.
#include "rensa/operations/runtime_kernel/runtime_kernel.h"

#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"

namespace rensa::operations {

void RuntimeKernel::run_cpu() {
  if (!host_function) {
    throw DeviceError(std::string(name()) +
                      ": it is a kernel for a GPU, its arrays are on the CPU");
  }
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> scratch((scratch_bytes + sizeof(Line) - 1) / sizeof(Line));
  std::vector<void*> addresses = argument_addresses(scratch.data(), nullptr);
  parallel_for(size, grain, [&](std::int64_t begin, std::int64_t end) {
    host_function(addresses.data(), begin, end);
  });
  if (second_size == 0) return;
  parallel_for(second_size, 1, [&](std::int64_t begin, std::int64_t end) {
    host_function(addresses.data(), size + begin, size + end);
  });
}

}  // namespace rensa::operations
