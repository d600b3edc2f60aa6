// The handler of SIGINT during a training run.
#include "rensa/training/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>

namespace rensa::training {

namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

/// The scopes of all threads: a signal's handler is the process's.
struct Scopes {
  std::mutex mutex;
  int count = 0;
  bool installed = false;
  struct sigaction previous = {};
};

Scopes& scopes() {
  static auto* all = new Scopes;  // never destroyed: a thread may end its run after main
  return *all;
}

void note(int) {
  interrupts.fetch_add(1);
  constexpr std::string_view kText =
      "\nrensa: ending the run after this iteration; Ctrl-C again ends it at once\n";
  int error = errno;
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  errno = error;
}

}  // namespace

InterruptScope::InterruptScope() : before_(interrupts.load()) {
  Scopes& all = scopes();
  std::lock_guard lock(all.mutex);
  if (all.count++ > 0) return;
  ::sigaction(SIGINT, nullptr, &all.previous);
  all.installed = (all.previous.sa_flags & SA_SIGINFO) == 0 && all.previous.sa_handler == SIG_DFL;
  if (!all.installed) return;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);  // the second one is the system's
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() {
  Scopes& all = scopes();
  std::lock_guard lock(all.mutex);
  if (--all.count == 0 && all.installed) ::sigaction(SIGINT, &all.previous, nullptr);
}

bool InterruptScope::interrupted() const { return interrupts.load() != before_; }

}  // namespace rensa::training
