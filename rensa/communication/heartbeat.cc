#include "rensa/communication/heartbeat.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "rensa/communication/communication_error.h"

namespace rensa::communication {

namespace {
constexpr std::chrono::milliseconds kPeriod{200};
}  // namespace

Heartbeat::Heartbeat(std::shared_ptr<Transport> group, std::chrono::seconds timeout,
                     std::function<void(const std::string&)> failed)
    : group_(std::move(group)),
      timeout_(timeout),
      failed_(std::move(failed)),
      peers_(static_cast<std::size_t>(group_->size())) {
  for (Peer& peer : peers_) peer.moved = Clock::now();
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heartbeat::note(const Label& label, std::span<const Outgoing> sent,
                     std::span<const Incoming> received) {
  std::map<int, Call> calls;
  for (const Outgoing& out : sent) calls[out.peer].sent += out.nbytes;
  for (const Incoming& in : received) calls[in.peer].received += in.nbytes;
  std::lock_guard lock(mutex_);
  for (auto& [peer, call] : calls) {
    call.label = label;
    peers_[static_cast<std::size_t>(peer)].own.push_back(call);
  }
  last_ = label;
}

void Heartbeat::tell_failure(const std::string& text) {
  std::lock_guard lock(mutex_);
  own_failure_ = fmt::format("{}: {}", group_->describe(group_->rank()), text);
}

void Heartbeat::check() const {
  std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw CommunicationError(failure_);
}

void Heartbeat::run() {
  try {
    for (bool again = true; again;) {
      bool leaves;
      {
        std::unique_lock lock(mutex_);
        leaves = changed_.wait_for(lock, kPeriod, [&] { return leaves_; });
      }
      again = beat(leaves ? State::left : State::alive) && !leaves;
    }
  } catch (const std::exception& error) {
    std::string last;
    {
      std::lock_guard lock(mutex_);
      last = last_.str();
    }
    fail(last.empty() ? error.what() : fmt::format("{}; the last call was {}", error.what(), last));
  }
}

bool Heartbeat::beat(State state) {
  struct Exchanged {
    int rank;
    Beat own, other;
    std::vector<Call> own_calls, other_calls;
  };
  std::vector<Exchanged> all;
  std::string fault = find_fault();
  {
    std::lock_guard lock(mutex_);
    for (int rank = 0; rank < group_->size(); ++rank) {
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      if (rank == group_->rank() || peer.state != State::alive) continue;
      Exchanged& e = all.emplace_back();
      e.rank = rank;
      e.own_calls.assign(peer.own.begin() + static_cast<std::ptrdiff_t>(peer.told), peer.own.end());
      peer.told = peer.own.size();
      e.own.state = fault.empty() ? state : State::failed;
      e.own.new_calls = static_cast<std::int32_t>(e.own_calls.size());
      fault.copy(e.own.failure, sizeof(e.own.failure) - 1);
    }
  }
  std::vector<Outgoing> sent, sent_calls;
  std::vector<Incoming> received, received_calls;
  auto nbytes = [](std::vector<Call>& v) { return std::ssize(v) * std::int64_t{sizeof(Call)}; };
  for (Exchanged& e : all) {
    sent.push_back({e.rank, &e.own, sizeof(Beat)});
    received.push_back({e.rank, &e.other, sizeof(Beat)});
  }
  group_->exchange(Label("heartbeat", ""), sent, received);
  for (Exchanged& e : all) {
    e.other_calls.resize(static_cast<std::size_t>(e.other.new_calls));
    sent_calls.push_back({e.rank, e.own_calls.data(), nbytes(e.own_calls)});
    received_calls.push_back({e.rank, e.other_calls.data(), nbytes(e.other_calls)});
  }
  group_->exchange(Label("heartbeat", "calls"), sent_calls, received_calls);
  {
    std::lock_guard lock(mutex_);
    for (Exchanged& e : all) {
      Peer& peer = peers_[static_cast<std::size_t>(e.rank)];
      peer.state = e.other.state;
      peer.theirs.insert(peer.theirs.end(), e.other_calls.begin(), e.other_calls.end());
      if (!e.other_calls.empty()) peer.moved = Clock::now();
      if (peer.state == State::failed && fault.empty()) fault = e.other.failure;
    }
  }
  if (!fault.empty() && state != State::left) fail(fault);
  return fault.empty();
}

std::string Heartbeat::find_fault() {
  std::lock_guard lock(mutex_);
  if (!own_failure_.empty()) return own_failure_;
  for (int rank = 0; rank < group_->size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    for (; peer.told > 0 && !peer.theirs.empty(); --peer.told) {
      const Call &own = peer.own.front(), &other = peer.theirs.front();
      Transport::Announced awaited{own.label, own.received}, came{other.label, other.sent};
      if (awaited == came) awaited.nbytes = own.sent, came.nbytes = other.received;
      if (awaited != came) return group_->disagreement(awaited, came, rank);
      peer.own.pop_front();
      peer.theirs.pop_front();
    }
    bool is_behind = !peer.own.empty() && peer.theirs.empty();
    if (is_behind && peer.state == State::left) {
      return fmt::format("{}: {} has ended", peer.own.front().label.str(), group_->describe(rank));
    }
    if (!is_behind) peer.moved = Clock::now();
    if (Clock::now() - peer.moved > timeout_) {
      return Transport::silence(peer.own.front().label, timeout_, group_->describe(rank));
    }
  }
  return "";
}

void Heartbeat::fail(const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    failure_ = text;
  }
  failed_(text);
}

}  // namespace rensa::communication
