// What a RuntimeKernel is on every device.
#include "rensa/device/runtime_kernel.h"

#include <cstring>
#include <mutex>
#include <set>

#include "rensa/core/fork.h"

namespace rensa {

const char* keep_name(const std::string& name) {
  static auto& mutex = make_held_over_fork<std::mutex>();
  static auto& names = *new std::set<std::string>;  // never destroyed: recordings may end later
  std::lock_guard<std::mutex> hold(mutex);
  return names.insert(name).first->c_str();
}

void RuntimeKernel::visit(OperandVisitor& v) {
  for (bool written : {false, true}) {  // inputs first, as in every operation
    for (KernelArgument& argument : arguments) {
      for (KernelArgument::Pointer& pointer : argument.pointers) {
        if (pointer.written != written) continue;
        written ? v.write(pointer.array) : v.read(pointer.array);
      }
    }
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

}  // namespace rensa
