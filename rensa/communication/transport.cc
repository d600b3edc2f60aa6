// Labels, and what all transports do alike.
#include "rensa/communication/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rensa::communication {

namespace {
template <std::size_t N> void put(char (&out)[N], std::string_view text) {
  std::memcpy(out, text.data(), std::min(text.size(), N - 1));
}
}  // namespace

Label::Label(std::string_view operation, std::string_view subject) {
  put(operation_, operation);
  put(subject_, subject);
}

std::string Label::str() const {
  return subject_[0] ? fmt::format("{} of {}", operation_, subject_) : operation_;
}

std::string Transport::disagreement(const Announced& awaited, const Announced& came,
                                    int sender) const {
  return fmt::format(
      "{} ({} bytes) on {}, but {} ({} bytes) on {}: all ranks of a group make the same calls with "
      "the same shapes, in the same order",
      awaited.label.str(), awaited.nbytes, describe(rank()), came.label.str(), came.nbytes,
      describe(sender));
}

std::string Transport::silence(const Label& label, std::chrono::seconds timeout,
                               const std::string& ranks) {
  return fmt::format(
      "{}: nothing came for {} s from {}: it is stopped, far behind or cut off; "
      "RENSA_COMMUNICATION_TIMEOUT is how long to wait",
      label.str(), timeout.count(), ranks);
}

void tell_all(Transport& group, const Label& label, void* all, std::int64_t nbytes_each) {
  auto of = [&](int rank) { return static_cast<char*>(all) + rank * nbytes_each; };
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank()) continue;
    sent.push_back({rank, of(group.rank()), nbytes_each});
    received.push_back({rank, of(rank), nbytes_each});
  }
  group.exchange(label, sent, received);
}

SplitGroup agree_on_split(Transport& group, int color, int key) {
  struct Wish {
    int color, key;
  };
  std::vector<Wish> wishes(static_cast<std::size_t>(group.size()));
  wishes[static_cast<std::size_t>(group.rank())] = {color, key};
  tell_all(group, Label("split", ""), wishes);
  SplitGroup result;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (wishes[static_cast<std::size_t>(rank)].color == color) result.ranks.push_back(rank);
  }
  std::ranges::stable_sort(result.ranks, {},
                           [&](int rank) { return wishes[static_cast<std::size_t>(rank)].key; });
  result.rank =
      static_cast<int>(std::ranges::find(result.ranks, group.rank()) - result.ranks.begin());
  return result;
}

}  // namespace rensa::communication
