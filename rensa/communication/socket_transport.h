// SocketTransport: a group of processes, each connected to every other one.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

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
  explicit Endpoint(int port) : listener_(port) {}
  int port() const { return listener_.port(); }
  const Listener& listener() const { return listener_; }
  /// The connection of that rank of that group.
  Socket accept(std::uint64_t group, int rank, Clock::time_point deadline,
                const std::string& awaited);
  /// That connection, where it has come already; else one that is not open.
  Socket take_early(std::uint64_t group, int rank);

 private:
  Listener listener_;
  std::map<std::pair<std::uint64_t, int>, Socket> early_;
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
  /// Connects to those of lower ranks and waits for those of higher ones. Throws
  /// CommunicationError, and tells those who have come, where one does not come within the timeout.
  explicit SocketTransport(ProcessGroup group);
  /// What this rank has sent arrives.
  ~SocketTransport() override;
  SocketTransport(const SocketTransport&) = delete;
  SocketTransport& operator=(const SocketTransport&) = delete;

  std::string describe(int rank) const override;
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
    bool is_busy() const { return !sending.empty() || !receiving.empty(); }
  };
  static constexpr std::int64_t kHead = sizeof(Header);

  void connect_to_lower(Clock::time_point deadline);
  void await_higher(Clock::time_point deadline);
  bool push(int rank, const Label& label);                       // whether anything went
  bool pull(int rank, const Label& label);                       // whether anything came
  static std::span<const char> rest_of(const Sending& sending);  // of its header, else of its data
  static std::span<char> next_bytes(Peer& peer);
  void check(int rank, const Label& label);
  /// Until something can move. Fails where nothing has been heard of a rank for too long. A rank
  /// that waits itself says so now and then, so that who is stopped is given up first by those that
  /// wait for it.
  void wait(const Label& label);
  void tell_that_it_waits();
  /// Fails with what a rank said last, that takes nothing any more.
  [[noreturn]] void hear_out(int rank, const Label& label);
  [[noreturn]] void fail_as_ended(int rank, const Label& label);
  /// Tells the others, and throws.
  [[noreturn]] void fail(const std::string& text);
  void tell_failure(Peer& peer) const;

  ProcessGroup group_;
  std::vector<Peer> peers_;  // by rank; that of its own is empty
  std::uint64_t splits_ = 0;
  Clock::time_point progress_;  // when a part of a message last went or came
  Clock::time_point told_;      // when the others were last told that this one waits
  std::string failure_;         // of the group; empty while it works
};

}  // namespace rensa::communication
