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
constexpr std::chrono::milliseconds kGrace{500};  // for others to say why a rank is not there
constexpr std::chrono::seconds kLook{1};  // from one look for those who have not come to the next
constexpr std::int64_t kLongestHeardOut = 1 << 30;  // bytes of a message that nobody takes any more

/// What every rank tells the others once it is connected to all: who hears it from all has met
/// them.
const Label kMeeting("meeting", "");

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

Endpoint::Endpoint(int port) : arrivals_(port, sizeof(Greeting)) {}

Socket Endpoint::take(std::uint64_t group, int rank) {
  Greeting greeting;
  while (std::optional<Socket> socket = arrivals_.next(&greeting)) {
    if (greeting.magic == kMagic) {
      come_.insert_or_assign({greeting.group, greeting.rank}, std::move(*socket));
    }
  }
  auto found = come_.find({group, rank});
  return found == come_.end() ? Socket() : std::move(come_.extract(found).mapped());
}

SocketTransport::SocketTransport(ProcessGroup group)
    : Transport(group.rank, static_cast<int>(group.addresses.size())),
      group_(std::move(group)),
      peers_(group_.addresses.size()) {
  looked_ = Clock::now();
  connect_to_lower(looked_ + group_.timeout);
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) received.push_back({peer, nullptr, 0});
  }
  SocketTransport::exchange(kMeeting, {}, received);
}

SocketTransport::~SocketTransport() {
  for (const Peer& peer : peers_) {
    if (peer.socket.is_open()) peer.socket.discard();  // that the others wait, and say so
  }
}

void SocketTransport::connect_to_lower(Clock::time_point deadline) {
  for (int r = 0; r < rank(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    const Address& address = group_.addresses[static_cast<std::size_t>(r)];
    try {
      Socket socket = connect_to(address.ip, address.port, deadline, Refusal::has_ended);
      Greeting greeting{kMagic, rank(), group_.id};
      socket.send_all(&greeting, sizeof greeting, deadline);
      peer.socket = std::move(socket);
    } catch (const CommunicationError& error) {
      peer.unreachable =
          fmt::format("{} cannot be reached, or has ended: {}", describe(r), error.what());
    }
  }
}

void SocketTransport::take_arrivals() {
  have_come_ = true;
  for (int r = 0; r < size(); ++r) {
    Socket& socket = peers_[static_cast<std::size_t>(r)].socket;
    if (r > rank() && !socket.is_open()) socket = group_.endpoint->take(group_.id, r);
    if (r != rank()) have_come_ &= socket.is_open();
  }
}

void SocketTransport::await_late_ones() {
  auto deadline = Clock::now() + kGrace;
  auto is_late = [](const Peer& p) { return !p.socket.is_open() && p.unreachable.empty(); };
  take_arrivals();
  while (std::any_of(peers_.begin() + rank() + 1, peers_.end(), is_late) &&
         Clock::now() < deadline) {
    std::vector<pollfd> events;
    group_.endpoint->add_to(events);
    wait_for_any(events, deadline);
    take_arrivals();
  }
}

void SocketTransport::meet() {
  take_arrivals();
  if (!have_come_) return;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    peers_[static_cast<std::size_t>(r)].sending.push_back(
        {{kMagic, message, 0, kMeeting}, nullptr});
  }
}

// A rank that has ended before it connected to this one is missed by nobody else where it is the
// highest.
void SocketTransport::look_for_higher() {
  if (Clock::now() < looked_ + kLook) return;
  for (int r = rank() + 1; r < size(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    const Address& address = group_.addresses[static_cast<std::size_t>(r)];
    if (peer.socket.is_open() || !peer.unreachable.empty()) continue;
    if (nobody_listens(address.ip, address.port)) {
      peer.unreachable = fmt::format("{} has ended: nobody listens at {}:{}", describe(r),
                                     address.ip, address.port);
    }
  }
  looked_ = Clock::now();
}

std::string SocketTransport::describe(int rank) const {
  const Address& address = group_.addresses[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (host {}, process {})", rank, address.host, address.process);
}

std::string SocketTransport::host(int rank) const {
  return group_.addresses[static_cast<std::size_t>(rank)].host;
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
    if (!have_come_) meet();
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
  while (peer.socket.is_open() && !peer.sending.empty()) {
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
  while (peer.socket.is_open() && !peer.receiving.empty()) {
    if (peer.done == kHead) check(rank, label);
    if (peer.done >= kHead && peer.done == kHead + peer.header.nbytes) {
      if (peer.header.kind == failure) fail(peer.failure);
      peer.done = 0;
      if (peer.header.kind == message) peer.receiving.pop_front();
      continue;
    }
    std::span<char> to = next_bytes(peer);
    std::int64_t n = peer.socket.receive_some(to.data(), std::ssize(to));
    if (n < 0) lose(rank, label);
    if (n <= 0) return moved;
    peer.done += n;
    moved = true, peer.heard = Clock::now();
    if (peer.done > kHead || peer.header.kind == message) progress_ = peer.heard;
  }
  return moved;
}

void SocketTransport::listen(int rank, const Label& label) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  std::span<char> to = next_bytes(peer);
  std::int64_t n = peer.socket.receive_some(to.data(), std::ssize(to));
  peer.gone = n < 0;
  peer.done += std::max<std::int64_t>(n, 0);
  if (peer.done < kHead) return;
  if (peer.header.kind == failure) hear_out(rank, label);
  if (peer.header.kind == waiting) peer.done = 0;
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
  lose(rank, label);
}

void SocketTransport::lose(int rank, const Label& label) {
  std::string others = unreachable_ranks();
  std::string why =
      fmt::format("{} has ended, or the connection to it is lost; what it said itself tells more",
                  describe(rank));
  if (label != kMeeting) {
    fail(fmt::format("{}: {}{}{}", label.str(), why, others.empty() ? "" : "; ", others));
  }
  // Before it could say why another has not come, perhaps, which that other's neighbours can.
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.unreachable = std::move(why), peer.heard = Clock::now();
  peer.socket.close();
}

std::string SocketTransport::unreachable_ranks() const {
  std::string list;
  for (const Peer& peer : peers_) {
    if (!peer.unreachable.empty()) list += (list.empty() ? "" : "; ") + peer.unreachable;
  }
  return list;
}

void SocketTransport::check(int rank, const Label& label) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const Header& header = peer.header;
  if (header.magic != kMagic || header.nbytes < 0) {
    fail(fmt::format("{}: what {} sends is none of Rensa's messages", label.str(), describe(rank)));
  }
  if (header.kind == failure) peer.failure.resize(static_cast<std::size_t>(header.nbytes));
  if (header.kind != message) return;
  Announced awaited{label, peer.receiving.front().nbytes}, came{header.label, header.nbytes};
  if (came != awaited) fail(disagreement(awaited, came, rank));
}

void SocketTransport::wait(const Label& label) {
  if (!have_come_) look_for_higher();
  auto now = Clock::now(), next = told_ + notice_period();
  if (!have_come_) next = std::min(next, looked_ + kLook);
  std::string silent, awaited;
  auto name = [&](std::string& list, int r) { list += (list.empty() ? "" : ", ") + describe(r); };
  for (int r = 0; r < size(); ++r) {
    const Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (!peer.is_busy()) continue;
    name(awaited, r);
    auto patience = peer.heard + group_.timeout;
    if (!peer.unreachable.empty()) {
      patience = std::min(patience, peer.heard + kGrace);
      if (now >= patience) fail(fmt::format("{}: {}", label.str(), unreachable_ranks()));
    }
    if (now >= patience) name(silent, r);
    next = std::min(next, patience);
  }
  if (!silent.empty()) fail(silence(label, group_.timeout, silent));
  if (now >= progress_ + kPatience * group_.timeout) {
    fail(
        fmt::format("{}: {} waits itself for what does not come, for {} s: calls that do not fit "
                    "together, such as recv() on either side",
                    label.str(), awaited, kPatience * group_.timeout.count()));
  }
  if (now >= told_ + notice_period()) tell_that_it_waits();
  poll_all(label, next);
}

void SocketTransport::poll_all(const Label& label, Clock::time_point until) {
  std::vector<pollfd> events;
  std::vector<int> idle;  // the ranks of the first of these, of which nothing is wanted
  for (int r = 0; r < size(); ++r) {
    const Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (peer.is_busy() || !peer.socket.is_open() || peer.gone || peer.done >= kHead) continue;
    events.push_back({peer.socket.fd(), POLLIN, 0});
    idle.push_back(r);
  }
  for (const Peer& peer : peers_) {
    if (!peer.is_busy() || !peer.socket.is_open()) continue;
    events.push_back({peer.socket.fd(),
                      static_cast<short>((peer.receiving.empty() ? 0 : POLLIN) |
                                         (peer.sending.empty() ? 0 : POLLOUT)),
                      0});
  }
  if (!have_come_) group_.endpoint->add_to(events);
  wait_for_any(events, until);
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (events[i].revents) listen(idle[i], label);
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
    if (!have_come_) await_late_ones();
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
