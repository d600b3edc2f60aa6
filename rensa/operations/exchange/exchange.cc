#include "rensa/operations/exchange/exchange.h"

namespace rensa::operations {

std::vector<communication::Outgoing> Exchange::outgoing() const {
  std::vector<communication::Outgoing> result;
  for (const Part& part : sent) {
    result.push_back({part.peer, part.array.view.data, part.array.view.nbytes()});
  }
  return result;
}

std::vector<communication::Incoming> Exchange::incoming() const {
  std::vector<communication::Incoming> result;
  for (const Part& part : received) {
    result.push_back({part.peer, part.array.view.data, part.array.view.nbytes()});
  }
  return result;
}

}  // namespace rensa::operations
