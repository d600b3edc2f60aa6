// rensa-run: starts a program several times on this machine, as the processes of one group.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "rensa/communication/socket.h"
#include "rensa/device/timeline_ranks.h"

namespace {

using rensa::communication::Clock;
constexpr std::chrono::seconds kGrace{10};  // from the first failure: the others say what they saw

const char* const kUsage =
    "rensa-run -n N [--port P] PROGRAM [ARGUMENTS]\n"
    "  Starts PROGRAM N times on this machine. Each process has RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "  LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, as torchrun's have, and\n"
    "  rensa::create_communicator() gives the group of them. When one fails the others have 10 s\n"
    "  to end; the exit status is that of the first that failed, 128 and a signal's number for\n"
    "  one that was killed. RENSA_TIMELINE=trace.json gives a trace of each, trace.rank0.json and\n"
    "  so on, and trace.json of all.\n";

[[noreturn]] void refuse(const std::string& why) {
  std::fputs(fmt::format("rensa-run: {}\n{}", why, kUsage).c_str(), stderr);
  std::exit(2);
}

struct Command {
  int processes = 0;
  int port = 0;  // 0: one that is free
  char** program = nullptr;
};

int number_of(std::string_view option, const char* text, int most) {
  int value = 0;
  std::string_view all = text ? text : "";
  auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size() || value < 1 || value > most) {
    refuse(fmt::format("{} \"{}\": takes a number from 1 to {}", option, all, most));
  }
  return value;
}

Command read(int argc, char** argv) {
  Command command;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at += 2) {
    std::string_view option = argv[at];
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "-n") command.processes = number_of(option, argv[at + 1], 4096);
    else if (option == "--port") command.port = number_of(option, argv[at + 1], 65535);
    else refuse(fmt::format("{}: there is no such option", option));
  }
  if (command.processes == 0) refuse("how many processes? -n N");
  if (at >= argc) refuse("which program?");
  command.program = argv + at;
  return command;
}

pid_t start(const Command& command, int rank) {
  pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (auto [name, value] :
       {std::pair("RANK", rank), std::pair("LOCAL_RANK", rank),
        std::pair("WORLD_SIZE", command.processes),
        std::pair("LOCAL_WORLD_SIZE", command.processes), std::pair("MASTER_PORT", command.port)}) {
    ::setenv(name, std::to_string(value).c_str(), 1);
  }
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::execvp(command.program[0], command.program);
  std::fprintf(stderr, "rensa-run: %s: %s\n", command.program[0], std::strerror(errno));
  std::_Exit(127);
}

volatile sig_atomic_t asked_to_end = 0;

struct Process {
  pid_t id;
  bool runs = true;
};

void signal_all(const std::vector<Process>& processes, int signal) {
  for (const Process& p : processes) {
    if (p.runs) ::kill(p.id, signal);
  }
}

/// Of a process that has ended: 0, or what the shell would have as its exit status.
int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int wait_for(std::vector<Process>& processes) {
  int first_failure = 0;
  std::size_t running = processes.size();
  std::optional<Clock::time_point> kill_at;
  bool told_to_end = false;
  while (running > 0) {
    int wait_status = 0;
    pid_t ended = ::waitpid(-1, &wait_status, WNOHANG);
    for (std::size_t rank = 0; ended > 0 && rank < processes.size(); ++rank) {
      if (processes[rank].id != ended) continue;
      processes[rank].runs = false;
      --running;
      int status = status_of(wait_status);
      if (status == 0 || first_failure != 0) continue;
      first_failure = status;
      kill_at = Clock::now() + kGrace;
      std::fputs(
          fmt::format("rensa-run: rank {} (process {}) {} {}\n", rank, ended,
                      WIFSIGNALED(wait_status) ? "was killed by signal" : "ended with status",
                      WIFSIGNALED(wait_status) ? status - 128 : status)
              .c_str(),
          stderr);
    }
    if (asked_to_end && !told_to_end) {
      told_to_end = true;
      signal_all(processes, SIGTERM);
    }
    if (kill_at && Clock::now() > *kill_at) signal_all(processes, SIGKILL);
    if (ended <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return first_failure;
}

/// The files that RENSA_TIMELINE has each process write; none where there is one process.
std::vector<std::string> traces_of(const Command& command) {
  std::vector<std::string> traces;
  const char* path = std::getenv("RENSA_TIMELINE");
  for (int rank = 0; path && command.processes > 1 && rank < command.processes; ++rank) {
    traces.push_back(rensa::timeline::path_of_rank(path, rank));
  }
  return traces;
}

/// Beside the files of the ranks one of all, where all have written theirs.
void merge_timelines(const std::vector<std::string>& traces) {
  std::error_code ignored;
  for (const std::string& trace : traces) {
    if (!std::filesystem::exists(trace, ignored)) return;
  }
  if (traces.empty()) return;
  try {
    rensa::timeline::merge(traces, std::getenv("RENSA_TIMELINE"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rensa-run: RENSA_TIMELINE: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Command command = read(argc, argv);
  std::vector<std::string> traces = traces_of(command);
  std::error_code ignored;
  for (const std::string& trace : traces) std::filesystem::remove(trace, ignored);  // of other runs
  std::optional<rensa::communication::ReservedPort> reserved;  // until all have ended
  if (command.port == 0) command.port = reserved.emplace().port();
  // Ctrl-C comes to all of the terminal's processes; who ends is waited for.
  ::signal(SIGINT, [](int) {});
  ::signal(SIGTERM, [](int) { asked_to_end = 1; });
  std::vector<Process> processes;
  for (int rank = 0; rank < command.processes; ++rank) {
    pid_t id = start(command, rank);
    if (id < 0) {
      std::fprintf(stderr, "rensa-run: cannot start rank %d: %s\n", rank, std::strerror(errno));
      signal_all(processes, SIGKILL);
      return 1;
    }
    processes.push_back({id});
  }
  int status = wait_for(processes);
  if (status == 0) merge_timelines(traces);
  return status;
}
