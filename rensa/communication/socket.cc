// Sockets of TCP.
#include "rensa/communication/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "rensa/communication/communication_error.h"

namespace rensa::communication {

namespace {

/// Set as a socket is made, so that no program which another thread starts meanwhile inherits it.
constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

[[noreturn]] void fail(const std::string& what, int error) {
  throw CommunicationError(fmt::format("{}: {}", what, std::strerror(error)));
}

/// Waits for `events`; whether they came before the deadline.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd one{fd, events, 0};
    wait_for_any({&one, 1}, deadline);
    if (one.revents) return true;
    if (Clock::now() >= deadline) return false;
  }
}

/// A socket that is connected to nothing yet. Unless it listens itself, others may listen on the
/// port that it has or had.
Socket new_socket(const std::string& what) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | kFlags, 0));
  if (!socket.is_open()) fail(what, errno);
  int one = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  return socket;
}

/// Has a port of all the machine's addresses, for port 0 one that is free; which it is.
int bind_to(const Socket& socket, int port, const std::string& what) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (::bind(socket.fd(), generic, length) != 0 ||
      ::getsockname(socket.fd(), generic, &length) != 0) {
    fail(what, errno);
  }
  return ntohs(address.sin_port);
}

/// Whether a socket's two ends are one: who connects to a port of this machine where nobody listens
/// may be given that port for his own end.
bool is_connected_to_itself(const Socket& socket) {
  sockaddr_in own{}, other{};
  socklen_t length = sizeof own;
  return ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
         ::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&other), &length) == 0 &&
         own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

}  // namespace

Socket::Socket(int fd) : fd_(fd) {
  if (fd_ < 0) return;
  int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // short messages go at once
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

std::int64_t Socket::send_some(const void* data, std::int64_t nbytes) const {
  ssize_t n = ::send(fd_, data, static_cast<std::size_t>(nbytes), MSG_NOSIGNAL);
  if (n >= 0) return n;
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail("send", errno);
}

std::int64_t Socket::receive_some(void* data, std::int64_t nbytes) const {
  ssize_t n = ::recv(fd_, data, static_cast<std::size_t>(nbytes), 0);
  if (n > 0) return n;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  return -1;  // closed, or reset by one that was killed
}

void Socket::send_all(const void* data, std::int64_t nbytes, Clock::time_point deadline) const {
  const char* at = static_cast<const char*>(data);
  while (nbytes > 0) {
    std::int64_t n = send_some(at, nbytes);
    at += n, nbytes -= n;
    if (n == 0 && !wait_for(fd_, POLLOUT, deadline)) {
      throw CommunicationError(fmt::format("{} takes nothing", peer_address()));
    }
  }
}

void Socket::receive_all(void* data, std::int64_t nbytes, Clock::time_point deadline) const {
  char* at = static_cast<char*>(data);
  while (nbytes > 0) {
    std::int64_t n = receive_some(at, nbytes);
    if (n < 0) throw CommunicationError(fmt::format("{} has closed", peer_address()));
    at += n, nbytes -= n;
    if (n == 0 && !wait_for(fd_, POLLIN, deadline)) {
      throw CommunicationError(fmt::format("{} says nothing", peer_address()));
    }
  }
}

void Socket::deliver(Clock::time_point deadline) const {
  for (int on_its_way = 1; on_its_way > 0 && Clock::now() < deadline;) {
    if (::ioctl(fd_, SIOCOUTQ, &on_its_way) != 0) return;
    pollfd one{fd_, 0, 0};
    if (on_its_way > 0 && ::poll(&one, 1, 1) > 0) return;  // the connection is lost
  }
}

void Socket::discard() const {
  char rest[4096];
  while (receive_some(rest, sizeof rest) > 0) {}
}

std::string Socket::peer_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST] = "?";
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST);
  }
  return text;
}

Listener::Listener(int port) {
  std::string what = fmt::format("listening on port {}", port);
  socket_ = new_socket(what);
  port_ = bind_to(socket_, port, what);
  if (::listen(fd(), 1024) != 0) fail(what, errno);
}

Socket Listener::accept_one() const {
  for (;;) {
    int fd = ::accept4(socket_.fd(), nullptr, nullptr, kFlags);
    if (fd >= 0) return Socket(fd);
    if (errno == EAGAIN) return {};
    if (errno != EINTR && errno != ECONNABORTED) fail("accept", errno);
  }
}

ReservedPort::ReservedPort()
    : socket_(new_socket("reserving a port")), port_(bind_to(socket_, 0, "reserving a port")) {}

namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found find_address(const std::string& host, int port, const std::string& what) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    throw CommunicationError(fmt::format("{}: {}", what, ::gai_strerror(error)));
  }
  return {found, ::freeaddrinfo};
}

/// errno of one try, 0 where it went well.
int try_to_connect(const Socket& socket, const addrinfo& address, Clock::time_point deadline) {
  int error = 0;
  if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    if (!wait_for(socket.fd(), POLLOUT, deadline)) return ETIMEDOUT;
    socklen_t length = sizeof error;
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  return error == 0 && is_connected_to_itself(socket) ? ECONNREFUSED : error;
}

}  // namespace

Socket connect_to(const std::string& host, int port, Clock::time_point deadline, Refusal refusal) {
  std::string what = fmt::format("connecting to {}:{}", host, port);
  Found address = find_address(host, port, what);
  for (;;) {
    Socket socket = new_socket(what);
    int error = try_to_connect(socket, *address, deadline);
    if (error == 0) return socket;
    bool has_ended = error == ECONNREFUSED && refusal == Refusal::has_ended;
    if (has_ended || Clock::now() >= deadline) fail(what, error);
    socket.close();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

bool nobody_listens(const std::string& host, int port) {
  std::string what = fmt::format("looking for {}:{}", host, port);
  auto soon = Clock::now() + std::chrono::milliseconds(200);
  try {
    Found address = find_address(host, port, what);
    return try_to_connect(new_socket(what), *address, soon) == ECONNREFUSED;
  } catch (const CommunicationError&) {
    return false;  // that is not known
  }
}

void wait_for_any(std::span<pollfd> events, Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  int milliseconds = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  if (::poll(events.data(), events.size(), milliseconds) < 0 && errno != EINTR) fail("poll", errno);
}

}  // namespace rensa::communication
