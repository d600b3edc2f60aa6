// Socket: a stream between two processes, with a time by which each wait ends.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "rensa/communication/transport.h"

namespace rensa::communication {

/// Owns a file descriptor, which no program that is started inherits, by whichever thread. Reads
/// and writes never wait by themselves.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);  // takes over one of these kinds
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() { *this = Socket(); }

  /// Bytes that went now, 0 where it would have to wait. Throws CommunicationError.
  std::int64_t send_some(const void* data, std::int64_t nbytes) const;
  /// Bytes that came now, 0 where it would have to wait, -1 where the other side has closed.
  std::int64_t receive_some(void* data, std::int64_t nbytes) const;
  /// All of them. Throw CommunicationError when the other side closes, or at the deadline.
  void send_all(const void* data, std::int64_t nbytes, Clock::time_point deadline) const;
  void receive_all(void* data, std::int64_t nbytes, Clock::time_point deadline) const;

  /// Until the other side's system has all that was sent, or never will, or the deadline. Closing a
  /// socket of which something is unread takes back what is still on its way.
  void deliver(Clock::time_point deadline) const;
  /// Reads what has come, for nobody.
  void discard() const;

  std::string peer_address() const;  // "10.0.0.7"

 private:
  int fd_ = -1;
};

/// A socket that others connect to, on any of the machine's addresses. Port 0 lets the system
/// choose. Throws CommunicationError where the port is taken.
class Listener {
 public:
  explicit Listener(int port);
  int port() const { return port_; }
  int fd() const { return socket_.fd(); }
  /// One who has connected; not open where nobody has.
  Socket accept_one() const;

 private:
  Socket socket_;
  int port_ = 0;
};

/// A port for a Listener to come, of this process or of another: as long as this lasts the system
/// gives it to nobody who leaves the choice to it, and whoever connects to it before somebody
/// listens there is refused.
class ReservedPort {
 public:
  ReservedPort();
  int port() const { return port_; }

 private:
  Socket socket_;
  int port_ = 0;
};

/// What it means that nobody listens where somebody is looked for.
enum class Refusal { not_yet, has_ended };
/// Connects to a host's name or address. Where that fails tries again up to the deadline, but not
/// when who is looked for has ended; then throws CommunicationError naming the address and the
/// reason.
Socket connect_to(const std::string& host, int port, Clock::time_point deadline,
                  Refusal refusal = Refusal::not_yet);

/// Whether that host says that nobody listens there. Takes a moment at most, and says nothing to
/// who does. Throws CommunicationError where there is no such host.
bool nobody_listens(const std::string& host, int port);

/// Waits until one of these events has come, or until the deadline (or a minute). Throws
/// CommunicationError.
void wait_for_any(std::span<pollfd> events, Clock::time_point deadline);

}  // namespace rensa::communication
