// OncePerKey: what is made once for each key.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "rensa/core/fork.h"

namespace rensa {

/// Values by key. One that is missing is made by the first thread that asks; others that ask for it
/// wait, those that ask for another do not. Where making throws, the next one who asks makes it.
template <class Key, class T> class OncePerKey {
 public:
  /// The value of `key`: make()'s, of this call or an earlier one.
  template <class Make> T get(const Key& key, Make&& make) {
    std::shared_ptr<Slot> slot;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      std::shared_ptr<Slot>& found = slots_[key];
      // What a thread of the parent was making when the process forked, nobody makes here.
      bool left_behind = found && !found->value && found->generation != fork_generation();
      if (!found || left_behind) found = std::make_shared<Slot>();
      if (found->value) return *found->value;
      slot = found;
    }
    std::lock_guard<std::mutex> making(slot->making);
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (slot->value) return *slot->value;
    }
    T value = make();
    std::lock_guard<std::mutex> hold(mutex_);
    slot->value = value;
    return value;
  }

  /// Held over a fork: hold_over_fork(*this).
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Slot {
    const int generation = fork_generation();
    std::mutex making;
    std::optional<T> value;  // guarded by mutex_
  };
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace rensa
