// Processes of this program that are the ranks of a group.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "rensa/communication/socket.h"
#include "tests/child_process.h"

namespace rensa::testing {

/// For each of `jobs` a process that runs the test of that name, which asks rank_job() for it. They
/// begin at the same time, however long it takes to start them.
class StartedRanks {
 public:
  /// `timeout`: RENSA_COMMUNICATION_TIMEOUT, in seconds.
  StartedRanks(const std::string& test, const std::vector<std::string>& jobs, int timeout) {
    for (std::size_t rank = 0; rank < jobs.size(); ++rank) {
      processes_.emplace_back(
          test, std::vector<std::string>{
                    "RENSA_TEST_RANK=" + jobs[rank], fmt::format("RANK={}", rank),
                    fmt::format("WORLD_SIZE={}", jobs.size()), "MASTER_ADDR=127.0.0.1",
                    fmt::format("MASTER_PORT={}", port_.port()), "RENSA_NUM_THREADS=1",
                    fmt::format("RENSA_COMMUNICATION_TIMEOUT={}", timeout)});
    }
    for (ChildProcess& process : processes_) process.await_stop();
    for (ChildProcess& process : processes_) process.signal(SIGCONT);
  }
  ChildProcess& operator[](int rank) { return processes_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(processes_.size()); }

  /// What a rank told by tell_what_was_seen(), once it has ended; "it hangs" where it does not.
  std::string saw(int rank, std::chrono::seconds within) {
    std::optional<std::string> text = (*this)[rank].read_all(within);
    if (!text) return "it hangs";
    std::size_t at = text->find("\nsaw: ");
    return at == text->npos ? "it said nothing" : text->substr(at + 6);
  }

 private:
  communication::ReservedPort port_;
  std::vector<ChildProcess> processes_;
};

/// What this process is to do as a rank, when all are there; null where it is none.
inline const char* rank_job() {
  const char* job = std::getenv("RENSA_TEST_RANK");
  if (job) ::raise(SIGSTOP);
  return job;
}

inline void tell_what_was_seen(const std::string& text) {
  std::printf("\nsaw: %s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace rensa::testing
