// Messages between threads: who receives copies from where the sender has them.
#include "rensa/communication/thread_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "rensa/communication/communication_error.h"

namespace rensa::communication {

namespace {

/// What one thread offers another.
struct Offer {
  Label label;
  const void* data;
  std::int64_t nbytes;
  int* waiting;  // of the sender's offers, how many nobody has taken yet
};

constexpr int kNobody = -1;

/// What the ends of a group share.
struct Board {
  Board(int size, std::chrono::seconds timeout)
      : size(size), timeout(timeout), offers(static_cast<std::size_t>(size) * size) {}
  std::deque<Offer>& from_to(int from, int to) {
    return offers[static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
                  static_cast<std::size_t>(to)];
  }
  [[noreturn]] void fail(const std::string& text) {
    if (failure.empty()) failure = text;
    changed.notify_all();
    throw CommunicationError(failure);
  }

  /// Whom all those wait for that `rank` waits for: itself where it does not wait.
  int last_awaited(int rank) const {
    for (int turns = 0; turns < size; ++turns) {
      int next = awaited[static_cast<std::size_t>(rank)];
      if (next == kNobody || next == rank) break;
      rank = next;
    }
    return rank;
  }

  const int size;
  const std::chrono::seconds timeout;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<Offer>> offers;
  std::vector<bool> gone = std::vector<bool>(static_cast<std::size_t>(size));
  std::vector<int> awaited = std::vector<int>(static_cast<std::size_t>(size), kNobody);  // by each
  std::string failure;  // of the group; empty while it works
  /// By how many splits there were before and their color: the boards of groups split off, until
  /// all of their ranks have come.
  struct Part {
    std::shared_ptr<Board> board;
    int come = 0;
  };
  std::map<std::pair<std::int64_t, int>, Part> parts;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Board> board, int rank)
      : Transport(rank, board->size), board_(std::move(board)) {}
  ~ThreadTransport() override {
    std::lock_guard lock(board_->mutex);
    board_->gone[static_cast<std::size_t>(rank())] = true;
    board_->changed.notify_all();
  }

  std::string describe(int rank) const override { return fmt::format("rank {} (a thread)", rank); }
  std::string host(int) const override { return "this one"; }

  void exchange(const Label& label, std::span<const Outgoing> sent,
                std::span<const Incoming> received) override {
    Board& board = *board_;
    int waiting = static_cast<int>(sent.size());
    std::unique_lock lock(board.mutex);
    if (!board.failure.empty()) throw CommunicationError(board.failure);
    for (const Outgoing& out : sent) {
      board.from_to(rank(), out.peer).push_back({label, out.data, out.nbytes, &waiting});
    }
    board.changed.notify_all();
    try {
      for (const Incoming& in : received) take(lock, label, in);
      wait(
          lock, label, [&] { return who_has_to_take(&waiting); }, [&] { return waiting == 0; });
    } catch (const CommunicationError&) {
      withdraw(lock, &waiting);
      throw;
    }
  }

  std::shared_ptr<Transport> split(int color, int key) override {
    SplitGroup part = agree_on_split(*this, color, key);
    std::int64_t turn = splits_++;
    if (color < 0) return nullptr;
    std::lock_guard lock(board_->mutex);
    Board::Part& made = board_->parts[{turn, color}];
    int size = static_cast<int>(part.ranks.size());
    if (!made.board) made.board = std::make_shared<Board>(size, board_->timeout);
    std::shared_ptr<Board> board = made.board;
    if (++made.come == size) board_->parts.erase({turn, color});
    return std::make_shared<ThreadTransport>(std::move(board), part.rank);
  }

 private:
  /// Waits until `done`, or throws: at the deadline, or where the group fails or the rank that is
  /// waited for, `awaited()`, has gone.
  template <class Awaited, class Done>
  void wait(std::unique_lock<std::mutex>& lock, const Label& label, Awaited awaited, Done done) {
    Board& board = *board_;
    auto deadline = Clock::now() + board.timeout;
    auto own = static_cast<std::size_t>(rank());
    while (!done()) {
      if (!board.failure.empty()) throw CommunicationError(board.failure);
      int peer = board.awaited[own] = awaited();
      if (board.gone[static_cast<std::size_t>(peer)]) {
        board.fail(fmt::format("{}: {} has ended", label.str(), describe(peer)));
      }
      if (board.changed.wait_until(lock, deadline) == std::cv_status::timeout && !done()) {
        board.fail(silence(label, board.timeout, describe(board.last_awaited(peer))));
      }
    }
    board.awaited[own] = kNobody;
  }

  /// The first rank that has not come for its offer; this one where the last of them are being
  /// taken.
  int who_has_to_take(const int* waiting) const {
    for (int peer = 0; peer < size(); ++peer) {
      for (const Offer& offer : board_->from_to(rank(), peer)) {
        if (offer.waiting == waiting) return peer;
      }
    }
    return rank();
  }

  void take(std::unique_lock<std::mutex>& lock, const Label& label, const Incoming& in) {
    Board& board = *board_;
    std::deque<Offer>& offers = board.from_to(in.peer, rank());
    wait(
        lock, label, [&] { return in.peer; }, [&] { return !offers.empty(); });
    Offer offer = offers.front();
    Announced awaited{label, in.nbytes}, came{offer.label, offer.nbytes};
    if (came != awaited) board.fail(disagreement(awaited, came, in.peer));
    offers.pop_front();
    lock.unlock();  // the sender waits until it is counted down
    if (in.nbytes > 0) std::memcpy(in.data, offer.data, static_cast<std::size_t>(in.nbytes));
    lock.lock();
    --*offer.waiting;
    board.changed.notify_all();
  }

  /// Nobody takes any more what this rank has offered; who is copying just now ends it.
  void withdraw(std::unique_lock<std::mutex>& lock, const int* waiting) {
    int left = 0;
    for (int peer = 0; peer < size(); ++peer) {
      left +=
          static_cast<int>(std::erase_if(board_->from_to(rank(), peer), [&](const Offer& offer) {
            return offer.waiting == waiting;
          }));
    }
    board_->changed.wait(lock, [&] { return *waiting == left; });
  }

  std::shared_ptr<Board> board_;
  std::int64_t splits_ = 0;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> connect_threads(int size, std::chrono::seconds timeout) {
  auto board = std::make_shared<Board>(size, timeout);
  std::vector<std::shared_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) {
    ends.push_back(std::make_shared<ThreadTransport>(board, rank));
  }
  return ends;
}

}  // namespace rensa::communication
