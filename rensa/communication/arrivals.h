// Arrivals: those who connect to a port of this process.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rensa/communication/socket.h"

namespace rensa::communication {

/// Takes the connections to a port, each of which begins with as many bytes that say who has come.
/// Who says nothing keeps nobody else waiting and is dropped after a few seconds.
class Arrivals {
 public:
  /// Port 0 lets the system choose. Throws CommunicationError where the port is taken.
  Arrivals(int port, std::int64_t nbytes_of_introduction)
      : listener_(port), nbytes_(nbytes_of_introduction) {}
  int port() const { return listener_.port(); }

  /// One who has come and has said who he is; `introduction` takes what he said. Never waits.
  std::optional<Socket> next(void* introduction);
  /// The same, waiting. Throws CommunicationError, saying what was waited for, at the deadline.
  Socket await(void* introduction, Clock::time_point deadline,
               const std::function<std::string()>& awaited);
  /// Adds what to poll before next() is asked again.
  void add_to(std::vector<pollfd>& events) const;

 private:
  /// One who has not said all yet.
  struct Newcomer {
    Socket socket;
    Clock::time_point came;
    std::vector<char> said;
    std::int64_t done = 0;
  };
  bool has_introduced_itself(Newcomer& newcomer) const;

  Listener listener_;
  std::int64_t nbytes_;
  std::deque<Newcomer> newcomers_;
};

}  // namespace rensa::communication
