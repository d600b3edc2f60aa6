// Messages between processes over TCP.
#include "rensa/communication/socket_transport.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rensa/communication/communication_error.h"

namespace rensa::communication {

namespace {

constexpr std::uint32_t kMagic = 0x524e5341;
enum Kind : std::uint32_t { message = 1, failure, waiting };
constexpr int kPatience = 4;  // timeouts for ranks that are there and wait themselves
constexpr std::int64_t kLongestHeardOut = 1 << 30;  // bytes of a message that nobody takes any more

/// How who connects says for whom he is.
struct Greeting {
  std::uint32_t magic = kMagic;
  std::int32_t rank = 0;
  std::uint64_t group = 0;
};

/// The id of a group that is split off, equal on all of its ranks (FNV-1a).
std::uint64_t id_of_part(std::uint64_t group, std::uint64_t splits, int color) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint64_t word : {group, splits, static_cast<std::uint64_t>(color)}) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (word >> 8 * byte & 0xff)) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace

Socket Endpoint::accept(std::uint64_t group, int rank, Clock::time_point deadline,
                        const std::string& awaited) {
  for (;;) {
    if (Socket come = take_early(group, rank); come.is_open()) return come;
    Socket socket = listener_.accept(deadline, awaited);
    Greeting greeting;
    if (!socket.introduces_itself(&greeting, sizeof greeting, deadline)) continue;
    if (greeting.magic == kMagic) {
      early_.insert_or_assign({greeting.group, greeting.rank}, std::move(socket));
    }
  }
}

Socket Endpoint::take_early(std::uint64_t group, int rank) {
  auto found = early_.find({group, rank});
  return found == early_.end() ? Socket() : std::move(early_.extract(found).mapped());
}

SocketTransport::SocketTransport(ProcessGroup group)
    : Transport(group.rank, static_cast<int>(group.addresses.size())),
      group_(std::move(group)),
      peers_(group_.addresses.size()) {
  auto deadline = Clock::now() + group_.timeout;
  try {
    connect_to_lower(deadline);
    await_higher(deadline);
  } catch (const CommunicationError& error) {
    for (int peer = rank() + 1; peer < size(); ++peer) {
      Socket& socket = peers_[static_cast<std::size_t>(peer)].socket;
      if (!socket.is_open()) socket = group_.endpoint->take_early(group_.id, peer);
    }
    fail(error.what());
  }
}

SocketTransport::~SocketTransport() {
  for (const Peer& peer : peers_) {
    if (peer.socket.is_open()) peer.socket.discard();  // that the others wait, and say so
  }
}

void SocketTransport::connect_to_lower(Clock::time_point deadline) {
  for (int peer = 0; peer < rank(); ++peer) {
    const Address& address = group_.addresses[static_cast<std::size_t>(peer)];
    try {
      Socket socket = connect_to(address.ip, address.port, deadline);
      Greeting greeting{kMagic, rank(), group_.id};
      socket.send_all(&greeting, sizeof greeting, deadline);
      peers_[static_cast<std::size_t>(peer)].socket = std::move(socket);
    } catch (const CommunicationError& error) {
      throw CommunicationError(
          fmt::format("{} cannot be reached, or has ended: {}", describe(peer), error.what()));
    }
  }
}

void SocketTransport::await_higher(Clock::time_point deadline) {
  for (int peer = rank() + 1; peer < size(); ++peer) {
    peers_[static_cast<std::size_t>(peer)].socket =
        group_.endpoint->accept(group_.id, peer, deadline, describe(peer));
  }
}

std::string SocketTransport::describe(int rank) const {
  const Address& address = group_.addresses[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (host {}, process {})", rank, address.host, address.process);
}

void SocketTransport::exchange(const Label& label, std::span<const Outgoing> sent,
                               std::span<const Incoming> received) {
  if (!failure_.empty()) throw CommunicationError(failure_);
  for (const Outgoing& out : sent) {
    peers_.at(static_cast<std::size_t>(out.peer))
        .sending.push_back(
            {{kMagic, message, out.nbytes, label}, static_cast<const char*>(out.data)});
  }
  for (const Incoming& in : received) {
    peers_.at(static_cast<std::size_t>(in.peer))
        .receiving.push_back({static_cast<char*>(in.data), in.nbytes});
  }
  progress_ = told_ = Clock::now();
  for (Peer& peer : peers_) peer.heard = progress_;
  for (;;) {
    bool moved = false, busy = false;
    for (int r = 0; r < size(); ++r) {
      moved |= push(r, label);
      moved |= pull(r, label);
      busy |= peers_[static_cast<std::size_t>(r)].is_busy();
    }
    if (!busy) return;
    if (!moved) wait(label);
  }
}

std::span<const char> SocketTransport::rest_of(const Sending& s) {
  if (s.done < kHead) {
    return {reinterpret_cast<const char*>(&s.header) + s.done,
            static_cast<std::size_t>(kHead - s.done)};
  }
  std::int64_t at = s.done - kHead;
  return {s.data + at, static_cast<std::size_t>(s.header.nbytes - at)};
}

bool SocketTransport::push(int rank, const Label& label) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (!peer.sending.empty()) {
    Sending& s = peer.sending.front();
    std::span<const char> rest = rest_of(s);
    std::int64_t n = 0;
    try {
      if (!rest.empty()) n = peer.socket.send_some(rest.data(), std::ssize(rest));
    } catch (const CommunicationError&) {
      hear_out(rank, label);  // it may have said why before it closed
    }
    s.done += n;
    if (n > 0) moved = true, peer.heard = progress_ = Clock::now();
    if (s.done == kHead + s.header.nbytes) peer.sending.pop_front();
    else if (n == 0) return moved;
  }
  return moved;
}

std::span<char> SocketTransport::next_bytes(Peer& peer) {
  if (peer.done < kHead) {
    return {reinterpret_cast<char*>(&peer.header) + peer.done,
            static_cast<std::size_t>(kHead - peer.done)};
  }
  std::int64_t at = peer.done - kHead;
  char* data = peer.header.kind == failure ? peer.failure.data() : peer.receiving.front().data;
  return {data + at, static_cast<std::size_t>(peer.header.nbytes - at)};
}

bool SocketTransport::pull(int rank, const Label& label) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (!peer.receiving.empty()) {
    std::span<char> to = next_bytes(peer);
    std::int64_t n = to.empty() ? 0 : peer.socket.receive_some(to.data(), std::ssize(to));
    if (n < 0) fail_as_ended(rank, label);
    peer.done += n;
    if (n > 0) {
      moved = true, peer.heard = Clock::now();
      if (peer.done > kHead || peer.header.kind == message) progress_ = peer.heard;
    }
    if (peer.done == kHead && n > 0) {
      check(rank, label);
      if (peer.header.kind == failure)
        peer.failure.resize(static_cast<std::size_t>(peer.header.nbytes));
    }
    if (peer.done >= kHead && peer.done == kHead + peer.header.nbytes) {
      if (peer.header.kind == failure) fail(peer.failure);
      peer.done = 0;
      if (peer.header.kind == message) peer.receiving.pop_front();
    } else if (n == 0) {
      return moved;
    }
  }
  return moved;
}

void SocketTransport::hear_out(int rank, const Label& label) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  std::string rest(kHead, '\0');
  auto soon = Clock::now() + std::chrono::seconds(1);
  try {
    for (;;) {
      if (peer.done < kHead) {
        peer.socket.receive_all(reinterpret_cast<char*>(&peer.header) + peer.done,
                                kHead - peer.done, soon);
        peer.done = kHead;
      }
      if (peer.header.magic != kMagic || peer.header.nbytes > kLongestHeardOut) break;
      rest.resize(static_cast<std::size_t>(peer.header.nbytes - (peer.done - kHead)));
      peer.socket.receive_all(rest.data(), std::ssize(rest), soon);
      if (peer.header.kind == failure) fail(rest);
      peer.done = 0;
    }
  } catch (const CommunicationError&) {
    if (!failure_.empty()) throw;
  }
  fail_as_ended(rank, label);
}

void SocketTransport::fail_as_ended(int rank, const Label& label) {
  fail(fmt::format(
      "{}: {} has ended, or the connection to it is lost; what it said itself tells more",
      label.str(), describe(rank)));
}

void SocketTransport::check(int rank, const Label& label) {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const Header& header = peer.header;
  if (header.magic != kMagic || header.nbytes < 0) {
    fail(fmt::format("{}: what {} sends is none of Rensa's messages", label.str(), describe(rank)));
  }
  if (header.kind != message) return;
  Announced awaited{label, peer.receiving.front().nbytes}, came{header.label, header.nbytes};
  if (came != awaited) fail(disagreement(awaited, came, rank));
}

void SocketTransport::wait(const Label& label) {
  auto now = Clock::now(), next = told_ + group_.timeout / 4;
  std::vector<pollfd> events;
  std::string silent, awaited;
  auto name = [&](std::string& list, int r) { list += (list.empty() ? "" : ", ") + describe(r); };
  for (int r = 0; r < size(); ++r) {
    const Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (!peer.is_busy()) continue;
    events.push_back({peer.socket.fd(),
                      static_cast<short>((peer.receiving.empty() ? 0 : POLLIN) |
                                         (peer.sending.empty() ? 0 : POLLOUT)),
                      0});
    name(awaited, r);
    if (now >= peer.heard + group_.timeout) name(silent, r);
    next = std::min(next, peer.heard + group_.timeout);
  }
  if (!silent.empty()) fail(silence(label, group_.timeout, silent));
  if (now >= progress_ + kPatience * group_.timeout) {
    fail(
        fmt::format("{}: {} waits itself for what does not come, for {} s: calls that do not fit "
                    "together, such as recv() on either side",
                    label.str(), awaited, kPatience * group_.timeout.count()));
  }
  if (now >= told_ + group_.timeout / 4) tell_that_it_waits();
  auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  int milliseconds = static_cast<int>(std::clamp<std::int64_t>(left, 1, 60'000));
  if (::poll(events.data(), events.size(), milliseconds) < 0 && errno != EINTR) {
    fail(fmt::format("{}: poll: {}", label.str(), std::strerror(errno)));
  }
}

void SocketTransport::tell_that_it_waits() {
  told_ = Clock::now();
  for (Peer& peer : peers_) {
    if (!peer.socket.is_open() || !peer.sending.empty()) continue;
    Sending notice{{kMagic, waiting, 0, {}}, nullptr};
    try {
      notice.done = peer.socket.send_some(&notice.header, kHead);
    } catch (const CommunicationError&) {
      continue;  // it has ended, which matters where something is wanted of it
    }
    if (notice.done > 0 && notice.done < kHead) peer.sending.push_back(notice);
  }
}

void SocketTransport::tell_failure(Peer& peer) const {
  if (!peer.socket.is_open()) return;
  Header header{kMagic, failure, static_cast<std::int64_t>(failure_.size()), {}};
  auto soon = Clock::now() + std::chrono::seconds(1);
  try {
    // A message that is half sent has to be whole before another is looked for.
    if (!peer.sending.empty() && peer.sending.front().done > 0) {
      Sending& s = peer.sending.front();
      for (auto rest = rest_of(s); !rest.empty(); rest = rest_of(s)) {
        peer.socket.send_all(rest.data(), std::ssize(rest), soon);
        s.done += std::ssize(rest);
      }
    }
    peer.socket.send_all(&header, sizeof header, soon);
    peer.socket.send_all(failure_.data(), header.nbytes, soon);
    peer.socket.deliver(soon);
  } catch (const CommunicationError&) {
    // It has gone too, or is stuck; the connection is closed either way.
  }
}

void SocketTransport::fail(const std::string& text) {
  if (failure_.empty()) {
    failure_ = text;
    for (Peer& peer : peers_) {
      tell_failure(peer);
      peer.socket.close();
    }
  }
  throw CommunicationError(failure_);
}

std::shared_ptr<Transport> SocketTransport::split(int color, int key) {
  SplitGroup part = agree_on_split(*this, color, key);
  std::uint64_t id = id_of_part(group_.id, ++splits_, color);
  if (color < 0) return nullptr;
  std::vector<Address> addresses;
  for (int r : part.ranks) {
    addresses.push_back(group_.addresses[static_cast<std::size_t>(r)]);
  }
  return std::make_shared<SocketTransport>(
      ProcessGroup{id, part.rank, std::move(addresses), group_.endpoint, group_.timeout});
}

}  // namespace rensa::communication
