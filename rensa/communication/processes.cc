// The meeting of processes at rank 0.
#include "rensa/communication/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "rensa/communication/arrivals.h"
#include "rensa/communication/communication_error.h"
#include "rensa/communication/socket_transport.h"
#include "rensa/core/environment.h"

namespace rensa::communication {

namespace {

constexpr std::uint32_t kMagic = 0x524e534d;
constexpr std::uint32_t kVersion = 2;  // of what processes say to each other

/// What a process says of itself, and hears of the others. Plain bytes, of one machine's kind.
struct Card {
  std::uint32_t magic = kMagic, version = kVersion;
  std::int32_t rank = 0, size = 0, port = 0;
  std::int64_t process = 0;
  char host[256] = {};
  char ip[64] = {};
};

/// What rank 0 answers: what goes ahead of everyone's cards, or of the text of why there will be no
/// group.
struct Answer {
  std::uint32_t magic = kMagic, refused = 0;
  std::int64_t nbytes = 0;
};
constexpr std::int64_t kLongestText = 1 << 20;
constexpr std::chrono::seconds kGrace{5};  // for rank 0 to say that somebody is missing

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

/// Throws CommunicationError where a card does not fit the others.
void check_card(const Card& card, const LaunchEnvironment& environment,
                const std::vector<Card>& cards) {
  if (card.version != kVersion || card.size != environment.size || card.rank < 1 ||
      card.rank >= environment.size) {
    throw CommunicationError(fmt::format(
        "a process on {} says that it is rank {} of {} (version {}), but this is a group of {} "
        "(version {}): all have to be started with the same WORLD_SIZE and program",
        card.host, card.rank, card.size, card.version, environment.size, kVersion));
  }
  const Card& there = cards[static_cast<std::size_t>(card.rank)];
  if (there.size != 0) {
    throw CommunicationError(
        fmt::format("two processes say that they are rank {}: {} on {} and {} on {}", card.rank,
                    there.process, there.host, card.process, card.host));
  }
}

/// Tells one of those that have come, who may have ended since: that shows where he is waited for.
void answer(const Socket& socket, bool refused, const void* data, std::int64_t nbytes) {
  Answer head{kMagic, refused, nbytes};
  auto soon = Clock::now() + kGrace;
  try {
    socket.send_all(&head, sizeof head, soon);
    socket.send_all(data, nbytes, soon);
  } catch (const CommunicationError&) {}
}

/// What rank 0 does: hears everyone, then tells everyone.
std::vector<Card> gather_cards(const LaunchEnvironment& environment, Card own,
                               Clock::time_point deadline) {
  Arrivals arrivals(environment.port, sizeof(Card));
  std::vector<Card> cards(static_cast<std::size_t>(environment.size));
  std::strncpy(own.ip, environment.address.c_str(), sizeof own.ip - 1);
  cards[0] = own;
  std::vector<Socket> sockets;
  auto awaited = [&] {
    return fmt::format("rank(s) {} of {} to come to {}:{}", missing_ranks(cards), environment.size,
                       environment.address, environment.port);
  };
  try {
    while (std::ssize(sockets) < environment.size - 1) {
      Card card;
      Socket socket = arrivals.await(&card, deadline, awaited);
      if (card.magic != kMagic) continue;
      std::string ip = socket.peer_address();
      std::strncpy(card.ip, ip.c_str(), sizeof card.ip - 1);
      sockets.push_back(std::move(socket));
      check_card(card, environment, cards);
      cards[static_cast<std::size_t>(card.rank)] = card;
    }
  } catch (const CommunicationError& error) {
    std::string_view why = error.what();
    for (const Socket& socket : sockets) answer(socket, true, why.data(), std::ssize(why));
    throw;
  }
  for (const Socket& socket : sockets) {
    answer(socket, false, cards.data(), static_cast<std::int64_t>(cards.size() * sizeof(Card)));
  }
  return cards;
}

/// What the others do.
std::vector<Card> ask_for_cards(const LaunchEnvironment& environment, const Card& own,
                                std::chrono::seconds timeout) {
  try {
    auto now = Clock::now();
    Socket socket = connect_to(environment.address, environment.port, now + timeout);
    now = Clock::now();
    socket.send_all(&own, sizeof own, now + timeout);
    // Rank 0, which is there, waits for so long itself.
    auto deadline = now + timeout + kGrace;
    Answer head;
    socket.receive_all(&head, sizeof head, deadline);
    std::vector<Card> cards(static_cast<std::size_t>(environment.size));
    auto expected = static_cast<std::int64_t>(cards.size() * sizeof(Card));
    bool fits = head.refused ? head.nbytes < kLongestText : head.nbytes == expected;
    if (head.magic != kMagic || head.nbytes < 0 || !fits) {
      throw CommunicationError("what listens there is no rank 0 of this group");
    }
    if (head.refused) {
      std::string why(static_cast<std::size_t>(head.nbytes), '\0');
      socket.receive_all(why.data(), head.nbytes, deadline);
      throw CommunicationError(why);
    }
    socket.receive_all(cards.data(), expected, deadline);
    return cards;
  } catch (const CommunicationError& error) {
    throw CommunicationError(fmt::format("meeting at rank 0 ({}:{}), as rank {}: {}",
                                         environment.address, environment.port, environment.rank,
                                         error.what()));
  }
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
                                                  : ask_for_cards(environment, own, timeout);
  std::vector<Address> addresses;
  for (const Card& card : cards) addresses.push_back({card.host, card.ip, card.port, card.process});
  return std::make_shared<SocketTransport>(
      ProcessGroup{0, environment.rank, std::move(addresses), std::move(endpoint), timeout});
}

}  // namespace rensa::communication
