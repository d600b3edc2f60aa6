// The handler of signals during a training run.
#include "rensa/training/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>

namespace rensa::training {

namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

std::atomic<int> interrupts{0}, latest{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

/// The scopes of all threads: a signal's handler is the process's.
struct Scopes {
  std::mutex mutex;
  int count = 0;
  std::array<bool, kSignals.size()> installed = {};
  std::array<struct sigaction, kSignals.size()> previous = {};
};

Scopes& scopes() {
  static auto* all = new Scopes;  // never destroyed: a thread may end its run after main
  return *all;
}

void note(int signal) {
  int error = errno;
  latest.store(signal);
  interrupts.fetch_add(1);
  struct sigaction now = {};
  ::sigaction(SIGINT, nullptr, &now);
  bool ours = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == note;
  if (ours) ::signal(SIGINT, SIG_DFL);  // the next one is the system's
  constexpr std::string_view kText =
      "\nrensa: ending the run after this iteration; Ctrl-C again ends it at once\n";
  if (ours) {
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  }
  errno = error;
}

}  // namespace

InterruptScope::InterruptScope() : before_(interrupts.load()) {
  Scopes& all = scopes();
  std::lock_guard lock(all.mutex);
  if (all.count++ > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction& before = all.previous[i];
    ::sigaction(kSignals[i], nullptr, &before);
    all.installed[i] = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    if (!all.installed[i]) continue;
    struct sigaction action = {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  Scopes& all = scopes();
  std::lock_guard lock(all.mutex);
  if (--all.count > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (all.installed[i]) ::sigaction(kSignals[i], &all.previous[i], nullptr);
  }
}

int InterruptScope::interrupted() const { return interrupts.load() == before_ ? 0 : latest.load(); }

}  // namespace rensa::training
