// What has to come through fork() whole: locks that another thread may hold at that moment, and
// what they guard. GPUs are not among it: CUDA does not work in a child of a process that has used
// it.
#pragma once

namespace rensa {

/// The order in which locks are taken before a fork: whoever holds an inner one waits for no other.
enum class ForkOrder { outer, inner };

/// before(object) runs in the thread that forks, ahead of the fork; after(object, in_child) in the
/// parent and in the child. `object` has to live as long as the process.
void at_fork(ForkOrder order, void* object, void (*before)(void*), void (*after)(void*, bool));

/// Has `lock`, which lives as long as the process, held by the thread that forks, so that the child
/// finds it free and what it guards in order.
template <class Lock> void hold_over_fork(Lock& lock, ForkOrder order = ForkOrder::inner) {
  at_fork(
      order, &lock, [](void* held) { static_cast<Lock*>(held)->lock(); },
      [](void* held, bool) { static_cast<Lock*>(held)->unlock(); });
}

/// A lock, or an object with lock() and unlock(), that lives as long as the process and is held
/// over forks.
template <class Lock> Lock& make_held_over_fork(ForkOrder order = ForkOrder::inner) {
  auto* made = new Lock;
  hold_over_fork(*made, order);
  return *made;
}

/// How many forks lie between this process and the first one that used the library: what another
/// thread has begun in an earlier generation it will not end in this one.
int fork_generation();

}  // namespace rensa
