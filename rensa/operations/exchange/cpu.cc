// Messages from and to the host's memory.
#include "rensa/operations/exchange/exchange.h"

namespace rensa::operations {

void Exchange::run_cpu() {
  std::vector<communication::Outgoing> outgoing;
  std::vector<communication::Incoming> incoming;
  for (const Part& part : sent) {
    outgoing.push_back({part.peer, part.array.view.data, part.array.view.nbytes()});
  }
  for (const Part& part : received) {
    incoming.push_back({part.peer, part.array.view.data, part.array.view.nbytes()});
  }
  transport->exchange(communication::Label(name(), subject), outgoing, incoming);
}

}  // namespace rensa::operations
