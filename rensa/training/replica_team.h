// ReplicaTeam: threads that do one job together, again and again, and never wait for one that
// failed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace rensa::training {

/// `size` members: the thread that calls run(), as member 0, and size - 1 threads of the team's
/// own, which last as long as it does.
class ReplicaTeam {
 public:
  explicit ReplicaTeam(int size);
  ~ReplicaTeam();
  ReplicaTeam(const ReplicaTeam&) = delete;
  ReplicaTeam& operator=(const ReplicaTeam&) = delete;

  /// Calls job(member) on every member at the same time, under the caller's ThreadState without its
  /// reporter; returns when all are done. The first exception thrown is rethrown. Called by one
  /// thread at a time.
  void run(const std::function<void(int)>& job);
  /// Called within a job by every member: returns when all have come. When one of them fails
  /// instead, the others leave their job from here.
  void barrier();

 private:
  struct Aborted {};  // thrown by barrier() where another member failed
  void work(int member);
  void do_job(int member);
  void stop();
  /// Wakes those that wait, after a change under the mutex.
  void notify();
  template <class Done> void wait(std::unique_lock<std::mutex>& lock, Done done);

  int size_;
  bool spins_;  // before a thread sleeps: waking it takes longer than what it waits for
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::int64_t> changes_{0};
  const std::function<void(int)>* job_ = nullptr;
  std::int64_t jobs_ = 0;      // started so far
  int unfinished_ = 0;         // members still in the current job
  int waiting_ = 0;            // members at the barrier
  std::int64_t barriers_ = 0;  // passed so far
  bool stopping_ = false;
  std::exception_ptr error_;
  struct Shared;  // the caller's ThreadState
  std::unique_ptr<Shared> shared_;
};

}  // namespace rensa::training
