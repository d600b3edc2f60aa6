// One handler of pthread_atfork for everything that registers.
#include "rensa/core/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace rensa {

namespace {

struct Participant {
  ForkOrder order;
  void* object;
  void (*before)(void*);
  void (*after)(void*, bool);
};

std::atomic<int> generation{0};

class Participants {
 public:
  static Participants& instance() {
    static auto* all = [] {
      auto* made = new Participants;  // never destroyed
      pthread_atfork([] { instance().before(); }, [] { instance().after(false); },
                     [] { instance().after(true); });
      return made;
    }();
    return *all;
  }

  void add(const Participant& participant) {
    std::lock_guard<std::mutex> hold(mutex_);
    auto behind = std::upper_bound(
        all_.begin(), all_.end(), participant,
        [](const Participant& a, const Participant& b) { return a.order < b.order; });
    all_.insert(behind, participant);
  }

 private:
  void before() {
    mutex_.lock();
    for (const Participant& p : all_) p.before(p.object);
  }

  void after(bool in_child) {
    if (in_child) generation.fetch_add(1, std::memory_order_relaxed);
    for (auto p = all_.rbegin(); p != all_.rend(); ++p) p->after(p->object, in_child);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<Participant> all_;  // by their order
};

}  // namespace

void at_fork(ForkOrder order, void* object, void (*before)(void*), void (*after)(void*, bool)) {
  Participants::instance().add({order, object, before, after});
}

int fork_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace rensa
