// SpinLock: for critical sections of some tens of nanoseconds. Spins a little, then yields, so that
// it also works where threads outnumber cores.
#pragma once

#include <atomic>
#include <thread>

namespace rensa {

class SpinLock {
 public:
  void lock() {
    if (!locked_.exchange(true, std::memory_order_acquire)) return;
    for (int spins = 0;; ++spins) {
      if (!locked_.load(std::memory_order_relaxed) &&
          !locked_.exchange(true, std::memory_order_acquire)) {
        return;
      }
      if (spins > 100) std::this_thread::yield();
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace rensa
