// Messages between the ranks of a group: what every collective is made of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/communication/transport.h"
#include "rensa/device/kind.h"

namespace rensa::cuda {
class GpuLinks;
}  // namespace rensa::cuda

namespace rensa::operations {

/// Sends and receives arrays, C-contiguous, at once: on the CPU by the transport, or on the GPU
/// that the links connect. `subject` says of what: all ranks have to say the same.
struct Exchange final : KindOf<Exchange> {
  struct Part {
    int peer;
    Operand array;
  };
  explicit Exchange(const char* name) : KindOf(name) {}
  std::shared_ptr<communication::Transport> transport;
  std::shared_ptr<cuda::GpuLinks> links;
  Operand order;  // what exchanges that have to stay in one order write to
  std::string subject;
  std::vector<Part> sent, received;

  template <class V> void fields(V& v) {
    for (Part& part : sent) v.read(part.array), v.number(part.peer);
    for (Part& part : received) v.write(part.array), v.number(part.peer);
    v.write(order);
    v.number(transport.get(), links.get());
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  communication::Label label() const { return communication::Label(name(), subject); }
  // What the parts are to whom they are given to.
  std::vector<communication::Outgoing> outgoing() const;
  std::vector<communication::Incoming> incoming() const;
};

}  // namespace rensa::operations
