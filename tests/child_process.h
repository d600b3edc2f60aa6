// A test of this program that runs in a process of its own.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rensa::testing {

/// Starts the test of that name, with `variables` ("NAME=value") added to the environment. What it
/// prints is read here; what it says on stderr goes nowhere.
class ChildProcess {
 public:
  ChildProcess(const std::string& test, std::vector<std::string> variables) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    for (char** entry = environ; *entry; ++entry) {
      // A part of the tests (GTEST_SHARD_INDEX) may leave out the one that is meant.
      if (!std::string_view(*entry).starts_with("GTEST_")) variables.emplace_back(*entry);
    }
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string filter = "--gtest_filter=" + test;
    char program[] = "/proc/self/exe", brief[] = "--gtest_brief=1";
    char* arguments[] = {program, filter.data(), brief, nullptr};
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no process");
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, STDERR_FILENO);
      ::execve(program, arguments, environment.data());
      ::_exit(1);
    }
    ::close(ends[1]);
    told_ = ends[0];
  }
  ~ChildProcess() {
    kill();
    if (told_ >= 0) ::close(told_);
  }
  ChildProcess(ChildProcess&& other) noexcept
      : child_(std::exchange(other.child_, -1)),
        told_(std::exchange(other.told_, -1)),
        text_(std::move(other.text_)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// What it has printed, once it holds `wanted`; none where it ends before, or says nothing for a
  /// minute.
  std::optional<std::string> read_until(std::string_view wanted) {
    while (text_.find(wanted) == text_.npos) {
      if (!read_some(std::chrono::minutes(1))) return std::nullopt;
    }
    return text_;
  }
  /// All that it prints until it ends; none where it has not ended by then.
  std::optional<std::string> read_all(std::chrono::seconds within) {
    auto deadline = std::chrono::steady_clock::now() + within;
    for (;;) {
      auto left = deadline - std::chrono::steady_clock::now();
      if (!read_some(std::chrono::ceil<std::chrono::milliseconds>(left))) break;
    }
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    return text_;
  }
  /// Until it has stopped itself, or ended.
  void await_stop() const {
    ::waitid(P_PID, static_cast<id_t>(child_), nullptr, WSTOPPED | WEXITED | WNOWAIT);
  }
  void signal(int number) const { ::kill(child_, number); }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  /// Whether more came in time.
  bool read_some(std::chrono::milliseconds within) {
    char piece[1024];
    pollfd ready{told_, POLLIN, 0};
    if (within.count() <= 0 || ::poll(&ready, 1, static_cast<int>(within.count())) <= 0)
      return false;
    ssize_t size = ::read(told_, piece, sizeof piece);
    if (size > 0) text_.append(piece, static_cast<std::size_t>(size));
    return size > 0;
  }

  pid_t child_ = -1;
  int told_ = -1;
  std::string text_;
};

}  // namespace rensa::testing
