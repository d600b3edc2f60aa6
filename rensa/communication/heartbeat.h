// Heartbeat: how ranks hear of each other while none of them waits in an exchange.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rensa/communication/transport.h"

namespace rensa::communication {

/// One rank's end. GPUs exchange arrays by themselves: a rank that has failed, or whose GPU was
/// given another call, would keep the others' waiting for ever. So a thread of each rank tells the
/// others several times a second which calls it has made with them. It finds out that a rank has
/// ended or is stopped (as Transport does), that two ranks made other calls, and that one is behind
/// by a call for longer than the timeout.
class Heartbeat {
 public:
  /// `group` is for nothing else. `failed` is called once at most, by the thread, with what
  /// check() says from then on.
  Heartbeat(std::shared_ptr<Transport> group, std::chrono::seconds timeout,
            std::function<void(const std::string&)> failed);
  /// Tells the others that this rank makes no more calls.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// This rank is about to make a call that sends and receives these: any two ranks make the same
  /// calls with each other, in the same order.
  void note(const Label& label, std::span<const Outgoing> sent, std::span<const Incoming> received);
  /// This rank cannot do its part, or has not done it: the others fail, with its name and this
  /// text.
  void tell_failure(const std::string& text);
  /// Throws CommunicationError where the group has failed.
  void check() const;

 private:
  enum class State : std::int32_t { alive, left, failed };
  /// A call, of two ranks with each other.
  struct Call {
    Label label;
    std::int64_t sent = 0, received = 0;  // bytes, by the rank that made it
  };
  /// What a rank tells another one.
  struct Beat {
    State state = State::alive;
    std::int32_t new_calls = 0;  // which follow
    char failure[1000] = {};
  };
  /// What is known of another rank.
  struct Peer {
    State state = State::alive;
    std::deque<Call> own, theirs;  // the calls of both that are not compared yet
    std::size_t told = 0;          // of the own ones
    Clock::time_point moved;       // when it was last seen to make one, or was not behind
  };

  void run();
  /// Tells the others, and hears of them; whether the group works.
  bool beat(State state);
  std::string find_fault();  // empty where there is none
  void fail(const std::string& text);

  std::shared_ptr<Transport> group_;
  std::chrono::seconds timeout_;
  std::function<void(const std::string&)> failed_;

  mutable std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  bool leaves_ = false;
  std::string own_failure_;  // what this rank tells; empty where there is nothing
  std::string failure_;      // of the group; empty while it works
  std::vector<Peer> peers_;  // by rank; that of its own is not used
  Label last_;               // call of this rank's
  std::thread thread_;
};

}  // namespace rensa::communication
