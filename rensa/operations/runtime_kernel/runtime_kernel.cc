// What a RuntimeKernel is on every device.
#include "rensa/operations/runtime_kernel/runtime_kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>

#include "rensa/core/fork.h"

namespace rensa::operations {

const char* keep_name(const std::string& name) {
  static auto& mutex = make_held_over_fork<std::mutex>();
  static auto& names = *new std::set<std::string>;  // never destroyed: recordings may end later
  std::lock_guard<std::mutex> hold(mutex);
  return names.insert(name).first->c_str();
}

void RuntimeKernel::numbers(std::vector<std::int64_t>& bits) {
  const void* code = function ? function : std::bit_cast<const void*>(host_function);
  bits.push_back(std::bit_cast<std::int64_t>(code));
  bits.insert(bits.end(), {grid.x, grid.y, grid.z, block.x, block.y, block.z, size, second_size});
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    std::vector<std::byte> bytes = arguments[k].bytes;
    auto clear = [&](std::size_t offset, std::size_t count) {
      for (std::size_t i = offset; i < std::min(offset + count, bytes.size()); ++i) bytes[i] = {};
    };
    for (const auto& pointer : arguments[k].pointers) clear(pointer.offset, sizeof(void*));
    if (k == 0 && scratch_bytes > 0) clear(scratch_offset, 2 * sizeof(void*));
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    bits.push_back(static_cast<std::int64_t>(std::hash<std::string_view>()(text)));
  }
}

std::vector<void*> RuntimeKernel::argument_addresses(void* scratch, void* semaphores) {
  std::vector<void*> addresses;
  addresses.reserve(arguments.size());
  for (KernelArgument& argument : arguments) {
    for (const KernelArgument::Pointer& pointer : argument.pointers) {
      std::memcpy(argument.bytes.data() + pointer.offset, &pointer.array.view.data,
                  sizeof(pointer.array.view.data));
    }
    addresses.push_back(argument.bytes.data());
  }
  if (scratch_bytes > 0) {
    std::byte* at = arguments.front().bytes.data() + scratch_offset;
    std::memcpy(at, &scratch, sizeof(scratch));
    std::memcpy(at + sizeof(scratch), &semaphores, sizeof(semaphores));
  }
  return addresses;
}

}  // namespace rensa::operations
