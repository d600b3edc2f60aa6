// The meeting of processes at rank 0.
#include "rensa/communication/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "rensa/communication/communication_error.h"
#include "rensa/communication/socket_transport.h"
#include "rensa/core/environment.h"

namespace rensa::communication {

namespace {

constexpr std::uint32_t kMagic = 0x524e534d;
constexpr std::uint32_t kVersion = 1;  // of what processes say to each other

/// What a process says of itself, and hears of the others. Plain bytes, of one machine's kind.
struct Card {
  std::uint32_t magic = kMagic, version = kVersion;
  std::int32_t rank = 0, size = 0, port = 0;
  std::int64_t process = 0;
  char host[256] = {};
  char ip[64] = {};
};

Card own_card(const LaunchEnvironment& environment, int port) {
  Card card;
  card.rank = environment.rank;
  card.size = environment.size;
  card.port = port;
  card.process = ::getpid();
  ::gethostname(card.host, sizeof card.host - 1);
  return card;
}

std::string missing_ranks(const std::vector<Card>& cards) {
  std::string missing;
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    if (cards[rank].size == 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  return missing;
}

/// What rank 0 does: hears everyone, then tells everyone.
std::vector<Card> gather_cards(const LaunchEnvironment& environment, Card own,
                               Clock::time_point deadline) {
  Listener listener(environment.port);
  std::vector<Card> cards(static_cast<std::size_t>(environment.size));
  std::strncpy(own.ip, environment.address.c_str(), sizeof own.ip - 1);
  cards[0] = own;
  std::vector<Socket> sockets(cards.size());
  for (int come = 1; come < environment.size;) {
    Socket socket = listener.accept(
        deadline, fmt::format("rank(s) {} of {} to come to {}:{}", missing_ranks(cards),
                              environment.size, environment.address, environment.port));
    Card card;
    if (!socket.introduces_itself(&card, sizeof card, deadline)) continue;
    if (card.magic != kMagic) continue;
    if (card.version != kVersion || card.size != environment.size || card.rank < 1 ||
        card.rank >= environment.size) {
      throw CommunicationError(fmt::format(
          "a process on {} says that it is rank {} of {} (version {}), but this is a group of {} "
          "(version {}): all have to be started with the same WORLD_SIZE and program",
          card.host, card.rank, card.size, card.version, environment.size, kVersion));
    }
    auto place = static_cast<std::size_t>(card.rank);
    if (cards[place].size != 0) {
      throw CommunicationError(
          fmt::format("two processes say that they are rank {}: {} on {} and {} on {}", card.rank,
                      cards[place].process, cards[place].host, card.process, card.host));
    }
    std::strncpy(card.ip, socket.peer_address().c_str(), sizeof card.ip - 1);
    cards[place] = card;
    sockets[place] = std::move(socket);
    ++come;
  }
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    sockets[rank].send_all(cards.data(), static_cast<std::int64_t>(cards.size() * sizeof(Card)),
                           deadline);
  }
  return cards;
}

/// What the others do.
std::vector<Card> ask_for_cards(const LaunchEnvironment& environment, const Card& own,
                                Clock::time_point deadline) {
  Socket socket = connect_to(environment.address, environment.port, deadline);
  socket.send_all(&own, sizeof own, deadline);
  std::vector<Card> cards(static_cast<std::size_t>(environment.size));
  try {
    socket.receive_all(cards.data(), static_cast<std::int64_t>(cards.size() * sizeof(Card)),
                       deadline);
  } catch (const CommunicationError& error) {
    throw CommunicationError(
        fmt::format("meeting at rank 0 ({}:{}), as rank {}: {}; what rank 0 said tells more",
                    environment.address, environment.port, environment.rank, error.what()));
  }
  return cards;
}

}  // namespace

std::chrono::seconds communication_timeout() {
  return std::chrono::seconds(
      environment::number("RENSA_COMMUNICATION_TIMEOUT", 1, 1'000'000).value_or(600));
}

std::shared_ptr<Transport> connect_processes(const LaunchEnvironment& environment,
                                             std::chrono::seconds timeout) {
  auto deadline = Clock::now() + timeout;
  auto endpoint = std::make_shared<Endpoint>(0);
  Card own = own_card(environment, endpoint->port());
  std::vector<Card> cards = environment.rank == 0 ? gather_cards(environment, own, deadline)
                                                  : ask_for_cards(environment, own, deadline);
  std::vector<Address> addresses;
  for (const Card& card : cards) addresses.push_back({card.host, card.ip, card.port, card.process});
  return std::make_shared<SocketTransport>(
      ProcessGroup{0, environment.rank, std::move(addresses), std::move(endpoint), timeout});
}

}  // namespace rensa::communication
