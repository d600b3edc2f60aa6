// SocketTransport: a group of processes, each connected to every other one.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rensa/communication/arrivals.h"
#include "rensa/communication/socket.h"
#include "rensa/communication/transport.h"

namespace rensa::communication {

/// Where a process listens.
struct Address {
  std::string host;  // its name, as it says itself: what errors say
  std::string ip;    // by which others reach it
  int port = 0;
  std::int64_t process = 0;  // its number on its host
};

/// What the groups of a process share: where it listens, and who connected before he was awaited.
class Endpoint {
 public:
  explicit Endpoint(int port);
  int port() const { return arrivals_.port(); }
  /// The connection of that rank of that group, where it has come; else one that is not open.
  Socket take(std::uint64_t group, int rank);
  /// Adds what to poll before take() is asked again.
  void add_to(std::vector<pollfd>& events) const { arrivals_.add_to(events); }

 private:
  Arrivals arrivals_;
  std::map<std::pair<std::uint64_t, int>, Socket> come_;
};

/// What a SocketTransport is made of.
struct ProcessGroup {
  std::uint64_t id = 0;            // other groups have others
  int rank = 0;                    // this process's
  std::vector<Address> addresses;  // by rank
  std::shared_ptr<Endpoint> endpoint;
  std::chrono::seconds timeout{0};  // for each wait
};

class SocketTransport final : public Transport {
 public:
  /// Connects to those of lower ranks and is connected to by those of higher ones; returns when all
  /// have met. Throws CommunicationError as exchange() does, and tells those who have come.
  explicit SocketTransport(ProcessGroup group);
  /// What this rank has sent arrives.
  ~SocketTransport() override;
  SocketTransport(const SocketTransport&) = delete;
  SocketTransport& operator=(const SocketTransport&) = delete;

  std::string describe(int rank) const override;
  std::string host(int rank) const override;
  void exchange(const Label& label, std::span<const Outgoing> sent,
                std::span<const Incoming> received) override;
  std::shared_ptr<Transport> split(int color, int key) override;

 private:
  /// What goes ahead of each message.
  struct Header {
    std::uint32_t magic = 0;
    std::uint32_t kind = 0;
    std::int64_t nbytes = 0;
    Label label;
  };
  struct Sending {
    Header header;
    const char* data;
    std::int64_t done = 0;  // of the header and the data
  };
  struct Receiving {
    char* data;
    std::int64_t nbytes;
  };
  /// A connection and what is under way on it.
  struct Peer {
    Socket socket;
    std::deque<Sending> sending;
    std::deque<Receiving> receiving;
    Header header;            // of the message that is coming
    std::int64_t done = 0;    // of it, with its header
    Clock::time_point heard;  // of it last
    std::string failure;      // the text of a message that says the group has failed
    bool gone = false;        // while nothing was wanted of it
    std::string unreachable;  // that one cannot be connected to, or is lost: he has ended
    bool is_busy() const { return !sending.empty() || !receiving.empty(); }
  };
  static constexpr std::int64_t kHead = sizeof(Header);

  void connect_to_lower(Clock::time_point deadline);
  void take_arrivals();                     // of higher ranks
  void await_late_ones();                   // of higher ranks, so that they hear of a failure
  void meet();                              // tells the others when all have come
  void look_for_higher();                   // now and then: whether they listen where they said
  bool push(int rank, const Label& label);  // whether anything went
  bool pull(int rank, const Label& label);  // whether anything came
  static std::span<const char> rest_of(const Sending& sending);  // of its header, else of its data
  static std::span<char> next_bytes(Peer& peer);
  void check(int rank, const Label& label);
  void listen(int rank, const Label& label);  // for a failure, where no message is awaited
  /// Until something can move. Fails where nothing has been heard of a rank for too long. A rank
  /// that waits itself says so now and then, so that who is stopped is given up first by those that
  /// wait for it.
  void wait(const Label& label);
  void poll_all(const Label& label, Clock::time_point until);
  Clock::duration notice_period() const { return Clock::duration(group_.timeout) / 4; }
  void tell_that_it_waits();
  /// Fails with what a rank said last, that takes nothing any more; else loses it.
  void hear_out(int rank, const Label& label);
  /// Fails, as it has ended: at the meeting only where no other says why soon.
  void lose(int rank, const Label& label);
  std::string unreachable_ranks() const;  // and why; empty where there are none
  /// Tells the others, and throws.
  [[noreturn]] void fail(const std::string& text);
  void tell_failure(Peer& peer) const;

  ProcessGroup group_;
  std::vector<Peer> peers_;   // by rank; that of its own is empty
  bool have_come_ = false;    // all others: they are connected
  Clock::time_point looked_;  // when higher ranks were last looked for
  std::uint64_t splits_ = 0;
  Clock::time_point progress_;  // when a part of a message last went or came
  Clock::time_point told_;      // when the others were last told that this one waits
  std::string failure_;         // of the group; empty while it works
};

}  // namespace rensa::communication
