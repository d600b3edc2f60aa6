// Messages between the ranks of a group: what every collective is made of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/communication/transport.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// Sends and receives arrays, C-contiguous and on the CPU, at once (Transport::exchange). `subject`
/// says of what: all ranks have to say the same.
struct Exchange final : KindOf<Exchange> {
  struct Part {
    int peer;
    Operand array;
  };
  explicit Exchange(const char* name) : KindOf(name) {}
  std::shared_ptr<communication::Transport> transport;
  std::string subject;
  std::vector<Part> sent, received;

  template <class V> void fields(V& v) {
    for (Part& part : sent) v.read(part.array), v.number(part.peer);
    for (Part& part : received) v.write(part.array), v.number(part.peer);
    v.number(transport.get());
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
