// Texts of all ranks, held against each other.
#include "rensa/array/agreement.h"

#include <fmt/format.h>

#include <vector>

#include "rensa/core/error.h"

namespace rensa {

void check_agreement(const Communicator& communicator, std::string_view operation,
                     const std::string& own, std::string_view way_out) {
  bool ends = own.empty() || own.back() == '\n';  // every line does
  std::vector<std::string> all = communicator.allgather_bytes(ends ? own : own + '\n');
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const std::string &first = all[0], &other = all[static_cast<std::size_t>(rank)];
    if (first == other) continue;
    std::size_t begin = 0;  // of the first line that differs
    auto line = [&](const std::string& text) {
      return begin < text.size() ? text.substr(begin, text.find('\n', begin) - begin) : "nothing";
    };
    while (begin < first.size() && begin < other.size() && line(first) == line(other)) {
      begin = first.find('\n', begin) + 1;
    }
    throw ValueError(fmt::format("{}: {} has {} where {} has {}; {}", operation,
                                 communicator.describe(0), line(first), communicator.describe(rank),
                                 line(other), way_out));
  }
}

}  // namespace rensa
