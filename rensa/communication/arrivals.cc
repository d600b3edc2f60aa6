// Connections that come to a port.
#include "rensa/communication/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rensa/communication/communication_error.h"

namespace rensa::communication {

namespace {
constexpr std::chrono::seconds kPatience{5};
}

bool Arrivals::has_introduced_itself(Newcomer& newcomer) const {
  while (newcomer.done < nbytes_) {
    std::int64_t n =
        newcomer.socket.receive_some(newcomer.said.data() + newcomer.done, nbytes_ - newcomer.done);
    if (n < 0) newcomer.socket.close();
    if (n <= 0) return false;
    newcomer.done += n;
  }
  return true;
}

std::optional<Socket> Arrivals::next(void* introduction) {
  for (Socket socket; (socket = listener_.accept_one()).is_open();) {
    newcomers_.push_back(
        {std::move(socket), Clock::now(), std::vector<char>(static_cast<std::size_t>(nbytes_))});
  }
  auto one =
      std::ranges::find_if(newcomers_, [&](Newcomer& n) { return has_introduced_itself(n); });
  std::optional<Socket> come;
  if (one != newcomers_.end()) {
    std::memcpy(introduction, one->said.data(), one->said.size());
    come = std::move(one->socket);
    newcomers_.erase(one);
  }
  auto now = Clock::now();
  std::erase_if(newcomers_, [&](const Newcomer& newcomer) {
    return !newcomer.socket.is_open() || now > newcomer.came + kPatience;
  });
  return come;
}

Socket Arrivals::await(void* introduction, Clock::time_point deadline,
                       const std::function<std::string()>& awaited) {
  for (;;) {
    if (std::optional<Socket> come = next(introduction)) return std::move(*come);
    auto now = Clock::now();
    if (now >= deadline) throw CommunicationError(fmt::format("waited in vain for {}", awaited()));
    std::vector<pollfd> events;
    add_to(events);
    wait_for_any(events, deadline);
  }
}

void Arrivals::add_to(std::vector<pollfd>& events) const {
  events.push_back({listener_.fd(), POLLIN, 0});
  for (const Newcomer& newcomer : newcomers_) events.push_back({newcomer.socket.fd(), POLLIN, 0});
}

}  // namespace rensa::communication
